package terminal

import (
	"context"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
)

// pickCommands has a command whose argument is picked.
func pickCommands(ran *[]string, free bool) func() []Command {
	run := func(_ context.Context, args string, _ func(agent.Event)) (string, error) {
		*ran = append(*ran, args)
		return "", nil
	}
	return func() []Command {
		return []Command{{Name: "model", Aliases: []string{"engine"}, Help: "choose a model, or switch to one", PickTitle: "Choose a model", Run: run, Free: free, Pick: func() ([]Choice, string) {
			return []Choice{{Name: "demo", Help: "needs no key"}, {Name: "large", Help: "vendor:one"}, {Name: "small", Help: "vendor:two"}}, "3 of 9"
		}}}
	}
}

// open types text and waits until the picker is loaded.
func (s *screenTest) open(text string) {
	s.Helper()
	s.keys(text, "enter")
	s.update((<-s.messages).(pickMsg))
}

// A command without its argument opens a picker. Arrow keys choose, typed words
// filter, Enter runs the command, and Esc cancels.
func TestPicker(t *testing.T) {
	for _, tt := range []struct {
		command, keys string
		free          bool
		want          string
	}{
		{"/model", "enter", false, "[demo]"},
		{"/model", "down down down up enter", false, "[large]"},
		{"/model", "VENDOR two enter", false, "[small]"},
		{"/engine", "two enter", false, "[small]"},
		{"/model", "none enter", false, "[]"},
		{"/model", "none esc", false, "[]"},
		{"/model", "esc", false, "[]"},
		{"/model", "other:new enter", true, "[other:new]"},
		{"/model", "demo enter", true, "[demo]"},
	} {
		t.Run(tt.command+" "+tt.keys, func(t *testing.T) {
			var ran []string
			s := newScreen(t, &Options{Commands: pickCommands(&ran, tt.free)})
			s.open(tt.command)
			s.has(s.bottom(), "Choose a model", "› demo", "needs no key", "3 of 9 · ↑ ↓ choose", "Esc cancels")
			for i, k := range strings.Fields(tt.keys) {
				if i > 0 && len(k) > 2 && k[0] == 't' {
					k = " " + k
				}
				s.keys(k)
			}
			s.finish()
			if fmt.Sprint(ran) != tt.want {
				t.Errorf("it ran %q, want %s\n%s", ran, tt.want, s.bottom())
			}
		})
	}
}

// Choices that arrive later, such as those of a server, are added below the others.
// The selected choice stays selected, and they are not loaded if the user types the
// argument.
func TestPickerAddsChoices(t *testing.T) {
	for _, tt := range []struct{ keys, want string }{
		{"enter", "[small]"},
		{"down enter", "[vendor:new]"},
		{"down down enter", "[vendor:new]"},
		{"esc", "[]"},
	} {
		var ran []string
		commands := func() []Command {
			all := pickCommands(&ran, true)()
			all[0].PickMore = func(context.Context) []Choice {
				return []Choice{{Name: "small", Help: "offered"}, {Name: "vendor:new", Help: "offered"}}
			}
			return all
		}
		s := newScreen(t, &Options{Commands: commands})
		s.open("/model")
		s.keys("down", "down")
		s.has(s.bottom(), "› small", "loading more · ↑ ↓ choose")
		s.update(<-s.messages)
		s.has(s.bottom(), "› small", "vendor:two", "vendor:new", "offered")
		if strings.Contains(s.bottom(), "loading") {
			t.Errorf("it is still loading:\n%s", s.bottom())
		}
		s.keys(strings.Fields(tt.keys)...)
		s.finish()
		if fmt.Sprint(ran) != tt.want {
			t.Errorf("%s: it ran %q, want %s", tt.keys, ran, tt.want)
		}
	}
}

// A picker shows no hidden characters of names and descriptions, stays within
// the screen, and yields to an approval.
func TestPickerFits(t *testing.T) {
	for _, text := range untrustedtest.Hostile() {
		p := newPicker("Pick", []Choice{{Name: text, Help: text}, {Name: strings.Repeat("文", 100), Help: text}}, false, nil)
		lines, _ := p.lines(40, 20)
		for _, l := range lines {
			if leak := untrusted.Inspect(l.plainText()); !leak.Clean() || l.width() > 40 {
				t.Errorf("%+q: %s in %q, %d columns", text, leak, l.plainText(), l.width())
			}
		}
	}
	s := newScreen(t, &Options{})
	for i := range 50 {
		s.history.remember(input{text: fmt.Sprint("input ", i)})
	}
	s.keys("ctrl+r")
	for _, height := range []int{24, 8, 3, 1} {
		s.update(tea.WindowSizeMsg{Width: 30, Height: height})
		if got := s.screen(); len(got.rows) > height || got.y >= max(len(got.rows), 1) {
			t.Errorf("%d rows of %d, the cursor on %d", len(got.rows), height, got.y)
		}
	}
}

// Ctrl-R searches earlier inputs, newest first, and puts the chosen one into the
// editor. What was typed is the first filter, and stays after Esc.
func TestSearchHistory(t *testing.T) {
	s := newScreen(t, &Options{})
	for _, text := range []string{"list tides", "tides of Kiel\nand Rostock", "other", "tides of Kiel\nand Rostock"} {
		if err := s.history.add(input{text: text}); err != nil {
			t.Fatal(err)
		}
	}
	s.keys("tid", "ctrl+r")
	s.has(s.bottom(), "> tid", "› tides of Kiel and Rostock", "  list tides")
	if strings.Contains(s.bottom(), "other") {
		t.Errorf("it shows\n%s", s.bottom())
	}
	s.keys("esc")
	if got := s.input.String(); got != "tid" {
		t.Errorf("after Esc the input is %q", got)
	}
	s.keys("ctrl+r", "ctrl+r", "up", "enter")
	if got := s.input.String(); got != "tides of Kiel\nand Rostock" {
		t.Errorf("the input is %q", got)
	}
	s.keys("ctrl+c", "ctrl+r", "ctrl+r", "enter")
	if got := s.input.String(); got != "other" {
		t.Errorf("the second is %q", got)
	}
	s.keys("ctrl+c", "ctrl+r")
	s.update(tea.PasteMsg{Content: "list\n tid\x1b[2J"})
	s.has(s.bottom(), "nothing matches")
}

// Messages queued behind a picker are sent when it closes.
func TestPickerKeepsQueue(t *testing.T) {
	var ran []string
	s := newScreen(t, &Options{Commands: pickCommands(&ran, false)})
	s.keys("one", "enter", "/model", "enter", "two", "enter")
	for s.picker == nil {
		s.update(<-s.messages)
	}
	s.keys("down", "enter")
	s.finish()
	s.has(s.text(), "> /model large", "> two", "You said two.")
}

// A message that is queued during an answer is sent after it, not when a picker
// closes.
func TestPickerDuringTurn(t *testing.T) {
	for _, key := range []string{"esc", "enter"} {
		s := newScreen(t, &Options{})
		if err := s.history.add(input{text: "earlier"}); err != nil {
			t.Fatal(err)
		}
		s.keys("wait", "enter", "later", "enter")
		running := s.turn
		s.keys("ctrl+r", key)
		if s.turn != running || len(s.waiting) != 1 {
			t.Errorf("%s: another turn runs, and %d messages wait", key, len(s.waiting))
		}
	}
}

// A list without entries says so. A draft of several lines, or a long one, is no
// filter.
func TestSearchHistoryWithoutMatches(t *testing.T) {
	s := newScreen(t, &Options{})
	s.keys("ctrl+r")
	s.has(s.bottom(), "No earlier inputs yet · Esc cancels")
	s.keys("x")
	s.has(s.bottom(), "No earlier inputs yet")
	for draft, filters := range map[string]bool{"none": true, "none\nb": false, strings.Repeat("x", maxFilter+1): false} {
		s := newScreen(t, &Options{})
		if err := s.history.add(input{text: "earlier"}); err != nil {
			t.Fatal(err)
		}
		s.input.set(draft)
		s.keys("ctrl+r")
		if got := s.bottom(); strings.Contains(got, "nothing matches · Esc cancels") != filters || strings.Contains(got, "› earlier") == filters {
			t.Errorf("%q:\n%s", draft, got)
		}
	}
}
