// Package table lays out borderless tables that fit the terminal: numbers are aligned right, long
// cells are narrowed or wrapped, and states carry a glyph alongside their word and colour.
//
//	t := &table.Table{Width: 80, Columns: []table.Column{
//		{Name: "queue", Min: 8},
//		{Name: "backlog", Right: true},
//		{Name: "state", Tone: table.ByWord(map[string]table.Tone{"running": table.Good})},
//	}}
//	t.Add("orders", "12,040", "running")
//	for _, line := range t.Lines() { fmt.Println(line) }
package table
