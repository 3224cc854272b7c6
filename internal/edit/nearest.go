package edit

import "strings"

// Nearest is the word that a misspelt one most likely stands for, "" if none is near.
func Nearest(typed string, words []string) string {
	typed = strings.ToLower(typed)
	best, least := "", 3
	for _, w := range words {
		d := Distance(typed, w)
		if len(typed) > 1 && strings.HasPrefix(w, typed) { // not finished
			d = 1
		}
		if d < min(least, len(w)) {
			best, least = w, d
		}
	}
	return best
}
