package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The page that shows newcomers where things are names files that exist.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	page, err := os.ReadFile("explanation/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`((?:transport|container|config|telemetry|internal|bridge|lifecycle|cmd)[a-z/_]*(?:\\.go)?)`").FindAllSubmatch(page, -1)
	for _, m := range found {
		if _, err := os.Stat(filepath.Join("..", string(m[1]))); err != nil {
			t.Errorf("%s is not there", m[1])
		}
	}
	if len(found) < 40 {
		t.Errorf("only %d names were recognised", len(found))
	}
}
