//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

const readmeFile = "README.md"

// The markers around a generated part of README.md. The first one contains its name.
const (
	beginMarker = "<!-- figures: %s -->\n"
	endMarker   = "<!-- end of figures -->\n"
)

// machinesPart is the name of the generated part that lists the machines.
const machinesPart = "machines"

// updateReadme replaces the generated parts of README.md. It returns an error if a part is missing
// or unknown.
func updateReadme(text []byte, all results) ([]byte, error) {
	machines := listMachines(all)
	parts := map[string]string{machinesPart: formatMachines(machines)}
	for _, s := range subjects {
		parts[s.name] = s.format(all, machines)
	}
	out := bytes.Clone(text)
	for name, part := range parts {
		begin := fmt.Sprintf(beginMarker, name)
		before, rest, ok := bytes.Cut(out, []byte(begin))
		_, after, closed := bytes.Cut(rest, []byte(endMarker))
		if !ok || !closed {
			return nil, fmt.Errorf("%s: missing the part %q between %q and %q", readmeFile, name, strings.TrimSpace(begin), strings.TrimSpace(endMarker))
		}
		out = slices.Concat(before, []byte(begin), []byte("\n"+part+"\n"), []byte(endMarker), after)
	}
	if n := bytes.Count(out, []byte("<!-- figures: ")); n != len(parts) {
		return nil, fmt.Errorf("%s has %d generated parts, want %d", readmeFile, n, len(parts))
	}
	return out, nil
}

func writeReadme(all results) error {
	text, err := os.ReadFile(readmeFile)
	if err != nil {
		return err
	}
	if text, err = updateReadme(text, all); err != nil {
		return err
	}
	return os.WriteFile(readmeFile, text, 0o644)
}

// listMachines returns the machines of all results. Tables refer to them by letters.
func listMachines(all results) []string {
	var machines []string
	for _, r := range all {
		machines = append(machines, r.Machine)
	}
	slices.Sort(machines)
	return slices.Compact(machines)
}

func letter(machines []string, machine string) string {
	return string(rune('A' + slices.Index(machines, machine)))
}

func formatMachines(machines []string) string {
	var b strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&b, "- %s: %s\n", letter(machines, m), m)
	}
	return b.String()
}

// format returns the table of a subject and, below it, the commands that measured its rows.
func (s *subject) format(all results, machines []string) string {
	table := [][]string{{"figure", "value", "p10–p90", "limit", "peer", "goal", "measured"}}
	var commands []string
	for _, r := range s.rows {
		res, ok := all[r.key]
		if !ok {
			table = append(table, []string{r.figure, "not measured", "", "", "", r.formatGoal(nil), ""})
			continue
		}
		n := slices.Index(commands, res.Command)
		if n < 0 {
			n, commands = len(commands), append(commands, res.Command)
		}
		spread := formatValue(res.P10, res.Unit) + " – " + formatValue(res.P90, res.Unit)
		if res.N == 1 {
			spread = ""
		}
		table = append(table, []string{r.figure, formatValue(res.Median, res.Unit), spread, res.formatLimit(), r.formatPeers(&res), r.formatGoal(&res),
			fmt.Sprintf("%s, %s, %s, load %s, [%d]", res.Date, res.Commit, letter(machines, res.Machine), res.Load, n+1)})
	}
	var b strings.Builder
	measure.WriteMarkdown(&b, table)
	for i, c := range commands {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d. `go run ./%s`\n", i+1, c)
	}
	return b.String()
}

func (r *result) formatLimit() string {
	if r.Limit == nil {
		return ""
	}
	return formatValue(r.Limit.Median, cmp.Or(r.LimitUnit, r.Unit))
}

func (r *row) formatPeers(res *result) string {
	var out []string
	for _, name := range r.peerNames() {
		text := "not available"
		if p := res.Peers[name]; p != nil {
			text = formatValue(p.Median, res.Unit)
		}
		out = append(out, name+" "+text)
	}
	return strings.Join(out, ", ")
}

// formatGoal returns the goal of a row and whether it is met. The result is nil if there is none.
func (r *row) formatGoal(res *result) string {
	switch {
	case r.below != "" && (res == nil || res.Peers[r.below] == nil):
		return "below " + r.below
	case r.below != "":
		return measure.FormatVerdict("below "+r.below, res.Median < res.Peers[r.below].Median)
	case r.goal == 0:
		return ""
	case res == nil:
		return "≤ " + measure.FormatNumber(r.goal)
	}
	return measure.FormatVerdict("≤ "+formatValue(r.goal, res.Unit), res.Median <= r.goal)
}

// formatValue formats a value with its unit, and times with a unit that suits them.
func formatValue(v float64, unit string) string {
	switch {
	case unit == "µs" && v >= 1000:
		v, unit = v/1e3, "ms"
	case unit == "ms" && v >= 10_000:
		v, unit = v/1e3, "s"
	}
	return strings.TrimSpace(measure.FormatNumber(v) + " " + unit)
}
