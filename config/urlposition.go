package config

import "strings"

// This file finds the parts of a URL that stands in the file.

// inURL points at a parameter of the URL at a path, or at its source's; otherwise at
// fallback.
func (doc *document) inURL(path, parameter string, fallback spot) spot {
	return doc.wordInURL(path, fallback, func(string) string { return parameter }, "?", "&")
}

// portInURL points at the first port of the URL that is not a number.
func (doc *document) portInURL(path string, fallback spot) spot {
	return doc.wordInURL(path, fallback, badPort, ":")
}

// wordInURL points at a word of a URL that stands behind one of the leads.
func (doc *document) wordInURL(path string, fallback spot, word func(url string) string, leads ...string) spot {
	e, ok := doc.at[path]
	if !ok {
		return fallback
	}
	n := resolved(e.value)
	if u := entry(n, "url"); u != nil {
		n = resolved(u)
	}
	if !strings.Contains(n.Value, "://") || n.Line == 0 {
		return fallback
	}
	at := doc.spotOf(n)
	if fallback.line == 0 {
		at = fallback
	}
	from, to := doc.extent(n)
	raw := string(doc.line(n.Line)[from:to])
	w := word(raw)
	for _, lead := range leads {
		behind := lead + w
		if lead != ":" {
			behind += "="
		}
		if i := strings.Index(raw, behind); w != "" && i >= 0 {
			return spot{line: n.Line, column: from + len([]rune(raw[:i])) + 2, length: len([]rune(w))}
		}
	}
	return at
}

// badPort is the first port of a URL that is not a number.
func badPort(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	hosts, _, _ := strings.Cut(rest, "/")
	for h := range strings.SplitSeq(hosts, ",") {
		if _, port, ok := strings.Cut(h, ":"); ok && strings.Trim(port, "0123456789") != "" {
			return port
		}
	}
	return ""
}
