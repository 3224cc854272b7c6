package top

import (
	"slices"

	"github.com/longshore-go/longshore/internal/fleet"
)

// Effect is what a key asks for beyond the screen.
type Effect struct {
	Quit bool
	// Act is a change to ask the instances for; nil: none.
	Act *Action
}

// Press returns the screen after a key. key is its name as "enter", "ctrl+c" or "p"; text is
// what it types, "" for keys that type nothing.
func (s Screen) Press(key, text string) (Screen, Effect) {
	if key == "ctrl+c" {
		return s, Effect{Quit: true}
	}
	if s.Dialog.Kind != NoDialog {
		return s.answer(key, text)
	}
	s.Note = Note{}
	switch key {
	case "q":
		return s, Effect{Quit: true}
	case "?":
		s.Page = Help
	case "esc", "backspace", "left":
		if s.Page == Overview {
			s.Filter = ""
		}
		s.Page = Overview
	case "enter", "right":
		if g := s.current(); g != nil && s.Page == Overview {
			s.Page, s.Selected, s.Held = One, g.Name, Held{}
		}
	case "up", "k":
		s.move(-1)
	case "down", "j":
		s.move(1)
	case "home", "g":
		s.move(-len(s.groups()))
	case "end", "G":
		s.move(len(s.groups()))
	case "i":
		s.nextScope()
	case "/":
		s.Page, s.Dialog = Overview, Dialog{Kind: Filtering, Fields: []Field{{Label: "filter", Text: s.Filter}}}
	default:
		return s.ask(key), Effect{}
	}
	return s, Effect{}
}

// move selects another container.
func (s *Screen) move(by int) {
	if s.Page == One {
		s.choose(by)
		return
	}
	list := s.groups()
	if len(list) == 0 || s.Page == Help {
		return
	}
	at := max(slices.IndexFunc(list, func(g fleet.Group) bool { return g.Name == s.Selected }), 0)
	s.Selected = list[min(max(at+by, 0), len(list)-1)].Name
	s.Held = Held{}
}

// nextScope goes on to the next instance, after the last one to all of them.
func (s *Screen) nextScope() {
	in := s.Fleet.Instances
	at := slices.IndexFunc(in, func(i fleet.Instance) bool { return i.Name == s.Scope })
	s.Scope, s.Held = "", Held{}
	if at+1 < len(in) && len(in) > 1 {
		s.Scope = in[at+1].Name
	}
}
