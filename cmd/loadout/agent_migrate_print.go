package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/migrate"
)

// print prints the report: each item, what is known about new and changed
// skills, and the totals.
func (m *migration) print() {
	a := m.app
	fmt.Fprintf(a.Stdout, "%s: %s\n", m.system.Title(), plain(m.out.Source))
	var b strings.Builder
	starts := false
	for _, i := range m.out.Items {
		a.WriteWrapped(&b, "  ", fmt.Sprintf("%s %s: %s", i.Kind, plain(i.Name), describeItem(i)), console.NoStyle)
		if i.New || i.Outcome == migrate.Lost || i.Outcome == migrate.ForHub {
			for _, d := range i.Details {
				a.WriteWrapped(&b, "    ", plain(d), console.NoStyle)
			}
		}
		if i.Does != "" {
			a.WriteWrapped(&b, "    ", plain(i.Does), console.NoStyle)
			starts = true
		}
	}
	m.writeSkills(&b)
	fmt.Fprintln(&b, m.summary())
	if starts {
		a.WriteWrapped(&b, "", "The new servers become your own: they start with your privileges, outside the sandbox. Check what they run and where they connect.", console.NoStyle)
	}
	fmt.Fprint(a.Stdout, b.String())
	m.printNotes(m.out.Notes)
}

func (m *migration) printNotes(notes []string) {
	var b strings.Builder
	for _, n := range notes {
		m.app.WriteWrapped(&b, "", "Note: "+plain(n), console.NoStyle)
	}
	fmt.Fprint(m.app.Stdout, b.String())
}

// writeSkills writes the changes of each skill that replaces another version,
// as loadout add does, and the worst finding of each new skill.
func (m *migration) writeSkills(b *strings.Builder) {
	a := m.app
	for _, st := range m.skills.Changes() {
		if st.State == install.StateReplaced {
			a.formatStep(b, st, false)
		} else if text := a.formatWorstFinding(st); text != "" {
			fmt.Fprintf(b, "%s: %s\n", plain(st.Name), text)
		}
	}
}

// replaces is the detail in the report for a skill that replaces an installed
// version.
const replaces = "replaces the installed version"

// describeItem describes what the migration does with an item.
func describeItem(i migrate.Item) string {
	switch {
	case i.Outcome == migrate.Lost || i.Outcome == migrate.ForHub:
		return string(i.Outcome)
	case !i.New:
		return "already there"
	case i.Outcome == migrate.Kept:
		return "new"
	case slices.Contains(i.Details, replaces):
		return "changed"
	}
	return "new, changed"
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
	hub := ""
	if n[migrate.ForHub] > 0 {
		hub = fmt.Sprintf(", %d for a hub", n[migrate.ForHub])
	}
	return fmt.Sprintf("%s: %d kept, %d changed, %d lost%s; %d new.", console.Pluralize(len(m.out.Items), "item"), n[migrate.Kept], n[migrate.Changed], n[migrate.Lost], hub, fresh)
}

// end prints the outcome, which says whether anything was changed, and the next
// steps. With --json, it prints the complete output as JSON instead.
func (m *migration) end(empty bool) error {
	a := m.app
	if a.JSON {
		if err := a.PrintJSON(m.out); err != nil {
			return err
		}
		return a.failedSkillsError(m.skills)
	}
	m.printNotes(m.change.Problems)
	switch {
	case empty:
		fmt.Fprintln(a.Stdout, "Nothing to do.")
	case !m.out.Done:
		fmt.Fprintf(a.Stdout, "Dry run: nothing was changed. To migrate: loadout migrate %s %s --yes\n", m.system, console.ShellQuote(m.source))
	case slices.ContainsFunc(m.skills.Changes(), func(st *install.Step) bool { return len(st.Scripts) > 0 }):
		fmt.Fprintln(a.Stdout, "Done. Review the code of the skills: loadout approve")
	default:
		fmt.Fprintln(a.Stdout, "Done.")
	}
	for _, n := range m.out.Next {
		fmt.Fprintf(a.Stdout, "Next: %s\n", plain(n))
	}
	return a.failedSkillsError(m.skills)
}
