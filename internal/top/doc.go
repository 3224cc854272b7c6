// Package top is the full-screen program of longshore top. [Screen] is everything that is
// shown: its View is a pure function, and so is what a key does to it. Only [Run] knows the
// terminal.
package top
