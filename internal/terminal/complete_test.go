package terminal

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
)

// Completions show no hidden characters of the names, hints, descriptions and
// details of skills, nor does the input after one was accepted.
func TestHostileCompletionsAreCleaned(t *testing.T) {
	for _, text := range untrustedtest.Hostile() {
		check := func(what string, lines []line) {
			t.Helper()
			if len(lines) == 0 {
				t.Errorf("%s of %+q: nothing is shown", what, text)
			}
			for _, l := range lines {
				if leak := untrusted.Inspect(l.plainText()); !leak.Clean() {
					t.Errorf("%s of %+q: %s in %q", what, text, leak, l.plainText())
				}
			}
		}
		name := "x" + strings.Join(strings.Fields(text), "")
		commands := func() []Command {
			return []Command{{Name: name, Args: text, Help: text, Detail: func() string { return text }}, {Name: "load", Complete: func(string) []Choice { return []Choice{{Name: name, Help: text}} }}}
		}
		m := &model{}
		m.send = func(msg tea.Msg) { m.completion.setDetail(msg.(detailMsg)) }
		m.completion.update("/x", commands)
		m.loadDetail()
		m.running.Wait()
		check("command", m.completion.lines(80))
		var accepted string
		if c := m.completion; len(c.offers) > 0 {
			accepted = c.offers[c.at].text
		}
		m.completion.update("/load x", commands)
		check("argument", m.completion.lines(80))
		var e editor
		e.insert(accepted)
		rows, _, _ := e.rows(80)
		for _, row := range rows {
			if !untrusted.Inspect(row).Clean() {
				t.Errorf("input of %+q: %q", text, row)
			}
		}
	}
}
