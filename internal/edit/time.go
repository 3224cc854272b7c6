package edit

import (
	"fmt"
	"strconv"
	"strings"
)

// TimeHint is what to write instead of text, which time.ParseDuration has refused.
func TimeHint(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return fmt.Sprintf("it needs a unit: %sms, %ss, %sm or %sh", text, text, text, text)
	}
	if n, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.Atoi(n); err == nil && days > 0 && days < 1000 {
			return fmt.Sprintf("days are written in hours: %dh", 24*days)
		}
	}
	return "write for example 250ms, 30s or 5m"
}
