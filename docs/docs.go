package docs

import (
	_ "embed" // the pages
	"strings"

	"github.com/longshore-go/longshore/internal/edit"
)

//go:embed reference/errors.md
var errorsPage string

// Page is the text about one error code.
type Page struct {
	Code    string `json:"code"`
	Summary string `json:"summary"` // one line
	Text    string `json:"text"`    // Markdown
}

// ErrorPages returns all pages in the order of reference/errors.md.
func ErrorPages() []Page {
	var pages []Page
	for _, section := range strings.Split(errorsPage, "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		summary, text, _ := strings.Cut(strings.TrimSpace(body), "\n")
		pages = append(pages, Page{Code: strings.TrimSpace(title), Summary: summary, Text: strings.TrimSpace(text)})
	}
	return pages
}

// ErrorPage returns the page of a code.
func ErrorPage(code string) (Page, bool) {
	for _, p := range ErrorPages() {
		if p.Code == code {
			return p, true
		}
	}
	return Page{}, false
}

// Nearest returns the code that was probably meant, "" if none is close.
func Nearest(code string) string {
	best, nearest := len(code)/2+1, ""
	for _, p := range ErrorPages() {
		if d := edit.Distance(strings.ToLower(code), p.Code); d < best {
			best, nearest = d, p.Code
		}
	}
	return nearest
}
