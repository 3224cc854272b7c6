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

// leftover is something that exists after a finished move and that an operator can remove.
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
	}{{"the old", r.From}, {"dead letters:", r.LettersFrom}, {"parked messages:", r.Parked}, {"shadow of mirror:", r.Shadow}, {"second queue of mirror:", r.Tap}} {
		n, exists := present(ctx, p.src)
		if exists {
			all = append(all, leftover{What: p.what + " " + nameOf(p.src), Messages: n, Command: deletion(p.src)})
		}
	}
	all = append(all, ownGroups(ctx, r)...)
	if r.Ledger != "" {
		all = append(all, leftover{What: "the ledger; verify needs it", Command: "rm " + filepath.Join(r.Ledger, "*.ledger")})
	}
	return append(all, leftover{What: "the saved state; remove it before you move this route again", Command: "rm " + filepath.Join(r.StateDir, r.Name, "state.json")})
}

// ownGroups lists the Kafka groups that only the bridge uses. The groups of From and To belong to
// the service.
func ownGroups(ctx context.Context, r *config.Route) (all []leftover) {
	for _, src := range []transport.Source{r.Parked, r.LettersFrom, r.LettersTo, r.Shadow, r.Lock} {
		g, ok := src.(transport.GroupRemovable)
		if !ok {
			continue
		}
		if name, command, err := g.GroupRemoval(ctx); !errors.Is(err, longshore.CodeNotFound) {
			all = append(all, leftover{What: fmt.Sprintf("consumer group %q of the bridge", name), Command: command})
		}
	}
	return all
}

// present reports whether a place exists, and how many messages it holds. A place that cannot be
// counted is listed, so that the operator looks.
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

// byHand formats the list for the terminal.
func byHand(all []leftover) string {
	var t strings.Builder
	t.WriteString("the bridge deletes nothing; remove these yourself once no program uses them:\n")
	for _, l := range all {
		held := ""
		if l.Messages > 0 {
			held = fmt.Sprintf(" (%s)", messages(int(l.Messages)))
		}
		fmt.Fprintf(&t, "  %s%s\n      %s\n", l.What, held, l.Command)
	}
	return t.String()
}
