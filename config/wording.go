package config

import (
	"regexp"
	"strings"
)

var urlForm = regexp.MustCompile(`^source URL of the form ([^ ]+): `)

// reworded says what a constructor of Go says in the words of the file.
func reworded(text, hint string) (newText, newHint string) {
	form := ""
	if m := urlForm.FindStringSubmatch(text); m != nil {
		form = m[1]
		text = strings.TrimPrefix(text, m[0])
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "rabbitmq address: "), "kafka address: ")
	switch {
	case text == `parameter "group" is missing`:
		return "source has no consumer group", "add ?group=NAME; offsets are committed under it. ?broadcast=true reads everything without one"
	case text == `parameter "queue" is missing`:
		return "source has no queue", "add ?queue=NAME"
	case strings.Contains(text, "its port is not a number"):
		return "the port is not a number from 1 to 65535", "leave it out for 5672, 5671 with amqps; percent-encode / ? # @ : % in a password, or write password: env:NAME"
	}
	hint = strings.ReplaceAll(hint, "use Config.User and Config.Password, which take them as they are", "write password: env:NAME, which is taken as it is")
	if hint == "" && form != "" {
		hint = "the form is " + form
	}
	return text, hint
}
