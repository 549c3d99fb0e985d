package main

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/migrate"
)

// print prints the report: the scan of new skills, a line for each item, and
// the totals.
func (m *migration) print() {
	a := m.app
	fmt.Fprintf(a.Stdout, "%s: %s\n", m.system.Title(), plain(m.out.Source))
	var rows [][]string
	for _, i := range m.out.Items {
		rows = append(rows, []string{string(i.Kind), plain(i.Name), plain(describeItem(i))})
	}
	a.PrintTable("  ", rows)
	m.printScan()
	fmt.Fprintln(a.Stdout, m.summary())
	var b strings.Builder
	for _, n := range m.out.Notes {
		a.WriteWrapped(&b, "", "Note: "+plain(n), console.NoStyle)
	}
	fmt.Fprint(a.Stdout, b.String())
}

// printScan prints the worst finding of each new skill.
func (m *migration) printScan() {
	a := m.app
	for _, st := range m.skills.Changes() {
		if text := a.formatWorstFinding(st); text != "" {
			fmt.Fprintf(a.Stdout, "%s: %s\n", plain(st.Name), text)
		}
	}
}

// describeItem says what becomes of an item, and why.
func describeItem(i migrate.Item) string {
	what := string(i.Outcome)
	switch {
	case i.Outcome == migrate.Lost:
	case !i.New:
		what = "already there"
	case i.Outcome == migrate.Kept:
		what = "new"
	case i.Outcome == migrate.Changed:
		what = "new, changed"
	}
	if len(i.Details) > 0 && (i.New || i.Outcome == migrate.Lost) {
		what += ": " + strings.Join(i.Details, "; ")
	}
	return what
}

// summary counts the items by outcome.
func (m *migration) summary() string {
	n := map[migrate.Outcome]int{}
	fresh := 0
	for _, i := range m.out.Items {
		n[i.Outcome]++
		if i.New {
			fresh++
		}
	}
	return fmt.Sprintf("%s: %d kept, %d changed, %d lost; %d new.", console.Pluralize(len(m.out.Items), "item"), n[migrate.Kept], n[migrate.Changed], n[migrate.Lost], fresh)
}

// end prints the end of the output: whether anything was written, and what the
// user can do next.
func (m *migration) end(empty bool) error {
	a := m.app
	if a.JSON {
		return a.PrintJSON(m.out)
	}
	switch {
	case empty:
		fmt.Fprintln(a.Stdout, "Nothing to do.")
	case !m.out.Done:
		fmt.Fprintf(a.Stdout, "Dry run: nothing was changed. To migrate: loadout migrate %s %s --yes\n", m.system, console.ShellQuote(m.source))
	default:
		fmt.Fprintln(a.Stdout, "Done. Review the code of the skills: loadout approve")
	}
	for _, n := range m.out.Next {
		fmt.Fprintf(a.Stdout, "Next: %s\n", plain(n))
	}
	return nil
}
