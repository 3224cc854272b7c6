package urls

import "strings"

// nearest is the word that a misspelt one most likely stands for, "" if none is
// near.
func nearest(typed string, words []string) string {
	typed = strings.ToLower(typed)
	best, least := "", 3
	for _, w := range words {
		d := distance(typed, w)
		if len(typed) > 1 && strings.HasPrefix(w, typed) { // not finished
			d = 1
		}
		if d < min(least, len(w)) {
			best, least = w, d
		}
	}
	return best
}

// distance counts the letters to change, add or leave out.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
