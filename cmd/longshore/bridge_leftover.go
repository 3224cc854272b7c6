package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/transport"
)

// leftover is something that a finished move leaves for a person to remove.
type leftover struct {
	What     string `json:"what"`
	Messages int64  `json:"messages"`
	Command  string `json:"command"`
}

// leftovers lists what exists after a move: the bridge deletes nothing, because another program
// may use it.
func (b *bridgeCommand) leftovers(ctx context.Context, r *config.Route) []leftover {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	var all []leftover
	for _, p := range []struct {
		what string
		src  transport.Source
	}{{"the old place", r.From}, {"its dead letters", r.LettersFrom}, {"the parking place", r.Parked}, {"the shadow of mirror", r.Shadow}, {"the second queue of mirror", r.Tap}} {
		n, exists := present(ctx, p.src)
		if exists {
			all = append(all, leftover{What: p.what + " " + nameOf(p.src), Messages: n, Command: deletion(p.src)})
		}
	}
	if r.Ledger != "" {
		all = append(all, leftover{What: "the ledger, for as long as verify is to be repeated", Command: "rm " + filepath.Join(r.Ledger, "*.ledger")})
	}
	return append(all, leftover{What: "the state, before another move of this route", Command: "rm " + filepath.Join(r.StateDir, r.Name, "state.json")})
}

// present tells whether a place exists, and how many messages are there. One that cannot be
// counted is listed: a person will look.
func present(ctx context.Context, src transport.Source) (messages int64, exists bool) {
	c, ok := src.(transport.Remainder)
	if src == nil || !ok {
		return 0, src != nil
	}
	left, err := c.Remaining(ctx)
	return left.Messages(), !errors.Is(err, longshore.CodeNotFound)
}

// deletion is the command of the broker's own tools.
func deletion(src transport.Source) string {
	r, ok := src.(transport.Removable)
	if !ok {
		return ""
	}
	return r.RemovalCommand()
}

// byHand is the list for people.
func byHand(all []leftover) string {
	var t strings.Builder
	t.WriteString("the bridge deletes nothing; what is left to remove by hand, when nobody needs it:\n")
	for _, l := range all {
		held := ""
		if l.Messages > 0 {
			held = fmt.Sprintf(" (%d messages)", l.Messages)
		}
		fmt.Fprintf(&t, "  %s%s\n      %s\n", l.What, held, l.Command)
	}
	return t.String()
}
