package terminal

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// A question mark lists the keys only on an empty line, until the next key, and
// never hides the input.
func TestKeysAreListed(t *testing.T) {
	s := newScreen(t, &Options{})
	s.keys("?")
	s.has(s.bottom(), "Message…", "Ctrl-O")
	s.keys("?")
	if strings.Contains(s.bottom(), "Ctrl-O") || s.input.String() != "?" {
		t.Errorf("after a second one it shows\n%s", s.bottom())
	}
	s.keys("ctrl+c", "?")
	s.update(tea.PasteMsg{Content: "pasted"})
	if strings.Contains(s.bottom(), "Ctrl-O") {
		t.Errorf("after a paste it shows\n%s", s.bottom())
	}
	s.keys("ctrl+c", "?", "why?")
	if got := s.bottom(); strings.Contains(got, "Ctrl-O") || !strings.Contains(got, "> why?") {
		t.Errorf("it shows\n%s", got)
	}
	s.keys("ctrl+c", "?")
	s.update(tea.WindowSizeMsg{Width: 30, Height: 5})
	s.has(s.bottom(), "> Message…")
}
