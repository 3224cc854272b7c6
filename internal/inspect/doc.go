// Package inspect turns files into messages and messages into text, for the verbs
// that publish and look:
//
//	msgs, err := inspect.Draft{Key: "c-91", HasKey: true, Lines: true}.Read(os.Stdin)
//	f, err := inspect.ParseFormat(`%k %v\n`)
//	os.Stdout.WriteString(f.Render(n, delivery))
package inspect
