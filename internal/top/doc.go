// Package top is the full-screen program of longshore top. [Screen] is everything that is
// shown: its View is a pure function, and so is what a key does to it. Only [Run] knows the
// terminal.
//
//	s := top.Screen{Width: 80, Height: 24, Now: now, Fleet: f.Snapshot()}
//	fmt.Print(s.View())                    // what a terminal of that size shows
//	err := top.Run(ctx, f, top.Config{In: os.Stdin, Out: os.Stdout})
//
// In reading order: screen.go (the frame and what is shown), overview.go and one.go (the two
// pages), records.go, keys.go (what a key does), dialog.go, look.go (colours), lines.go (plain
// lines in a pipe), program.go (the terminal).
package top
