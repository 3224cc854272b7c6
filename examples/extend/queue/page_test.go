package queue_test

import (
	"os"
	"strings"
	"testing"
)

// The page for those who write a transport shows this package as it is.
func TestPageShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/write-a-transport.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"queue.go", "conformance_test.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "\n"+string(code)+"```\n") {
			t.Errorf("docs/how-to/write-a-transport.md does not show %s as it is", file)
		}
	}
}
