package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/docs"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/table"
)

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain an error code; without one, list them",
		Example: "  longshore explain not-found\n" +
			"  longshore explain 'error[not-found]'",
		Args:              atMost(1),
		ValidArgsFunction: completeCodes,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listCodes(a)
			}
			return explainCode(a, args[0])
		},
	}
}

func completeCodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if len(args) == 0 {
		for _, page := range docs.ErrorPages() {
			out = append(out, cobra.CompletionWithDesc(page.Code, page.Summary))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func listCodes(a *app) error {
	pages := docs.ErrorPages()
	if a.print.JSON {
		return a.print.Document(pages)
	}
	t := a.print.Table(table.Column{Name: "code"}, table.Column{Name: "meaning", Min: 30, Wrap: true})
	for _, page := range pages {
		t.Add(page.Code, page.Summary)
	}
	return a.print.Rows(t)
}

// explainCode prints the section of docs/reference/errors.md, which is compiled in: the explanation
// belongs to this version, and a host in trouble may have no network.
func explainCode(a *app, asked string) error {
	code := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(asked), "error["), "]")
	page, ok := docs.ErrorPage(code)
	if !ok {
		hint := "longshore explain lists all codes"
		if near := docs.Nearest(code); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return &cli.UsageError{Text: "unknown code " + quote(asked), Hint: hint}
	}
	if a.print.JSON {
		return a.print.Document(page)
	}
	return a.print.Printf("%s\n\n%s\n", a.print.PaintOut(cli.Bold, page.Code+": "+page.Summary), plainPage(a, page.Text))
}

// plain is a page for a terminal: headings in bold, links by their text alone.
func plainPage(a *app, markdown string) string {
	links := regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)
	strong := regexp.MustCompile(`\*\*([^*]+)\*\*`)
	return strong.ReplaceAllStringFunc(links.ReplaceAllString(markdown, "$1"), func(s string) string {
		return a.print.PaintOut(cli.Bold, strings.Trim(s, "*"))
	})
}
