package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-go/longshore/transport"
)

// secret decodes env:NAME, file:PATH, or the value itself, which belongs into a variable and
// not into the file; literal:VALUE is the value for any VALUE.
func (l *loader) secret(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode || isNull(n) || n.Value == "" {
		l.hideAll(n, maxAliases)
		l.report(l.spotOf(n), Problem{Code: CodeMissing, Path: path, Text: relative(path) + " has no value", Hint: "write env:NAME or file:PATH"})
		return
	}
	s := secret{}
	if name, ok := strings.CutPrefix(n.Value, "env:"); ok {
		s.Secret = l.fromEnv(path, n, name)
	} else if file, ok := strings.CutPrefix(n.Value, "file:"); ok {
		s.Secret = l.fromFile(path, n, file)
	} else {
		value := strings.TrimPrefix(n.Value, "literal:") // for a value that begins with env: or file:
		s.Secret = transport.Func("the configuration", func(context.Context) (string, error) { return value, nil })
		if variable := l.env[n]; variable != "" {
			s.Secret = transport.Func("env:"+variable, func(context.Context) (string, error) { return value, nil })
		} else {
			s.written = true
			l.hide(n)
			l.report(l.spotOf(n), Problem{Code: CodeSecretInFile, Warning: true, Path: path, Text: relative(path) + " is written into the file",
				Hint: "use env:NAME or file:PATH"})
			delete(l.broken, path)
		}
	}
	v.Set(reflect.ValueOf(s))
}

// fromEnv reads a variable at each connect if the environment is the process's own. A missing one is a
// warning in a check, which may run on another host than the service.
func (l *loader) fromEnv(path string, n *yaml.Node, name string) transport.Secret {
	if strings.TrimSpace(name) == "" || strings.ContainsAny(name, "= ") {
		l.report(l.spotOf(n), Problem{Code: CodeBadValue, Path: path, Text: relative(path) + " names no variable", Hint: "write env:NAME"})
		return transport.Secret{}
	}
	if _, ok := l.lookup(name); !ok {
		l.report(l.spotOf(n), Problem{Code: CodeSecretMissing, Warning: l.check, Path: path, Text: fmt.Sprintf("environment variable %s is not set", name),
			Hint: "set it before the service starts"})
	}
	return transport.Func("env:"+name, func(context.Context) (string, error) {
		if v, ok := l.lookup(name); ok {
			return v, nil
		}
		return "", fmt.Errorf("environment variable %s is not set", name)
	})
}

// fromFile reads a file at each connect, so that a rotated password is used without a restart.
func (l *loader) fromFile(path string, n *yaml.Node, name string) transport.Secret {
	at := l.beside(name)
	if f, err := os.Open(at); err != nil {
		why := "cannot be read"
		if os.IsNotExist(err) {
			why = "does not exist"
		}
		l.report(l.spotOf(n), Problem{Code: CodeSecretMissing, Warning: l.check, Path: path, Text: fmt.Sprintf("file %s %s", at, why),
			Hint: "paths are relative to the configuration file"})
	} else {
		_ = f.Close() // it was only looked at
	}
	return transport.Func("file:"+at, transport.File(at).Get)
}

// beside is a path relative to the configuration file.
func (on *surroundings) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(on.dir, path)
}

// lookup reads a variable when it is needed. Of an Environ with duplicates the last one counts, as
// in a process.
func (on *surroundings) lookup(name string) (string, bool) {
	if on.live {
		return os.LookupEnv(name)
	}
	for i := len(on.Environ) - 1; i >= 0; i-- {
		if n, v, ok := strings.Cut(on.Environ[i], "="); ok && n == name {
			return v, true
		}
	}
	return "", false
}
