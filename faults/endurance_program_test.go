package faults

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// edit is one place of a program that is written differently, once.
type edit struct{ from, to string }

// readmePrograms returns the README's first program, and the lines beside it that it
// gives for other brokers.
func readmePrograms(t *testing.T) (program, kafkaLine, sqsLine string) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var snippets []string
	for i, block := range strings.Split(string(text), "\n```go")[1:] {
		kind, rest, _ := strings.Cut(block, "\n")
		code, _, ok := strings.Cut(rest, "```")
		if !ok || (kind == "") != (i == 0) {
			t.Fatalf("README.md: block %d is not what stands there for an endurance run", i+1)
		}
		snippets = append(snippets, code)
	}
	if len(snippets) != 3 || !strings.HasPrefix(snippets[1], "orders := kafka.") || !strings.HasPrefix(snippets[2], "orders := sqs.") {
		t.Fatalf("README.md has %d Go blocks; want the program, and its line for Kafka and for SQS", len(snippets))
	}
	return snippets[0], strings.TrimSpace(snippets[1]), strings.TrimSpace(snippets[2])
}

// programFor is the README's program on a broker: as it stands there but for the
// address, and on Kafka and SQS with the one line and its import that the README
// gives. These brokers are shared, so a name of the run's own takes the place of
// "orders"; on RabbitMQ the address has a vhost of its own.
func programFor(t *testing.T, kind, addr, name string) string {
	t.Helper()
	program, kafkaLine, sqsLine := readmePrograms(t)
	var edits []edit
	other := func(line string) {
		begin := strings.Index(program, "\torders := ")
		old, _, _ := strings.Cut(program[begin+1:], "\n")
		edits = append(edits, edit{old, line}, edit{"longshore/transport/amqp", "longshore/transport/" + kind})
	}
	switch kind {
	case "amqp":
		edits = []edit{{"amqp://guest:guest@localhost/", addr}}
	case "kafka":
		quoted := `"` + strings.Join(strings.Split(addr, ","), `", "`) + `"`
		other(kafkaLine)
		edits = append(edits, edit{`"localhost:9092"`, quoted}, edit{`"billing"`, fmt.Sprintf("%q", name)}, edit{`"orders"`, fmt.Sprintf("%q", name)},
			edit{`"orders.dlq"`, fmt.Sprintf("%q", name+".dlq")})
	case "sqs":
		other(sqsLine)
		edits = append(edits, edit{`sqs.Config{`, fmt.Sprintf("sqs.Config{Endpoint: %q, ", addr)}, edit{`"orders"`, fmt.Sprintf("%q", name)},
			edit{`"orders.dlq"`, fmt.Sprintf("%q", name+"-dlq")})
	}
	for _, e := range edits {
		if n := strings.Count(program, e.from); n != 1 {
			t.Fatalf("README.md: %q stands %d times in the program, want once", e.from, n)
		}
		program = strings.Replace(program, e.from, e.to, 1)
	}
	return program
}

// build compiles a program inside of this module.
func build(t *testing.T, program string) (path string) {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(folder, "program")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "build", "-o", path, file)
	cmd.Dir = ".." // imports are found by the module
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, program)
	}
	return path
}

// The README's program can be pointed at each broker by the edits that the README
// tells, and by no others; `make endurance` runs them.
func TestTheReadmesProgramIsOneForEachBroker(t *testing.T) {
	t.Parallel()
	original, _, _ := readmePrograms(t)
	for kind, changed := range map[string]int{"amqp": 1, "kafka": 3, "sqs": 3} {
		program := programFor(t, kind, "amqp://there/", "bills")
		if _, err := parser.ParseFile(token.NewFileSet(), kind, program, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		differ := 0
		was := strings.Split(original, "\n")
		for i, line := range strings.Split(program, "\n") {
			if i >= len(was) || was[i] != line {
				differ++
			}
		}
		if differ != changed {
			t.Errorf("%s: %d lines differ from the README's, want %d: the broker, its import, the dead-letter destination's name", kind, differ, changed)
		}
	}
}
