package table

// Tone says how well the state in a cell is.
type Tone int

// The tones. Each but Plain and Header has a glyph, so that no state depends on its colour.
const (
	Plain  Tone = iota
	Good        // all is well
	Note        // a person chose it, or it passes: paused, draining
	Warn        // needs a look
	Bad         // needs a person
	Header      // the header of a table
)

// Glyph returns the sign that stands before the word.
func (t Tone) Glyph() string {
	switch t {
	case Good:
		return "✓"
	case Note:
		return "•"
	case Warn:
		return "!"
	case Bad:
		return "✗"
	case Plain, Header:
	}
	return ""
}

// ByWord finds the tone of a cell in a map; other words are Plain.
func ByWord(tones map[string]Tone) func(string) Tone {
	return func(word string) Tone { return tones[word] }
}
