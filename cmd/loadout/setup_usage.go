package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/usage"
)

// usageOutput is the JSON output of the usage command.
type usageOutput struct {
	Enabled bool      `json:"enabled"` // whether usage is recorded now
	File    string    `json:"file"`
	Since   time.Time `json:"since,omitzero"` // set with --days
	*usage.Report
	Models    []usage.ModelCost `json:"models"`
	NeverUsed []neverUsed       `json:"never_used"`
}

// neverUsed describes an available skill that was never used.
type neverUsed struct {
	Name   string `json:"name"`
	Key    string `json:"key"`
	Origin string `json:"origin"`
}

func (a *app) usageCommand() *cobra.Command {
	var days int
	var clear bool
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show usage of skills, tools, scripts and models",
		Long: `Show how often skills were loaded and how many tokens they took, which scripts and
tools ran, how long they took and how often they failed, the usage and cost of models,
and the skills that were never used.

Usage is recorded in usage.jsonl in the state directory: time, interface (such as mcp),
name, duration, tokens and outcome. The file never contains messages, arguments, results
or secrets, and is never sent anywhere. At about 8 MiB its older half is deleted. To stop
recording, set usage.enabled: false or LOADOUT_USAGE=off; --clear deletes all records.`,
		Example: `  loadout usage
  loadout usage --days 7
  loadout usage --json
  loadout usage --clear`,
		Args: argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkExclusive(cmd, "clear", "days"); err != nil {
				return err
			}
			if cmd.Flags().Changed("days") && (days < 1 || days > 36_500) {
				return exit.Errorf(exit.Usage, "use --days 1 or more", "--days is %d", days)
			}
			if clear {
				return a.clearUsage(cmd.Context())
			}
			return a.showUsage(cmd.Context(), days)
		},
	}
	cmd.Flags().IntVar(&days, "days", 0, "show only the last `N` days")
	cmd.Flags().BoolVar(&clear, "clear", false, "delete all recorded usage")
	return cmd
}

func (a *app) clearUsage(ctx context.Context) error {
	file := a.UsageFile()
	if file == "" {
		return errNoUsageFile
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := usage.NewLog(file, nil).Clear(ctx); err != nil {
		return exit.Errorf(exit.Failure, "stop the other loadout processes, or delete "+console.ShellQuote(file)+" yourself", "%w", err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"cleared": true, "file": file})
	}
	fmt.Fprintln(a.Stdout, "Deleted all recorded usage.")
	return nil
}

var errNoUsageFile = exit.Errorf(exit.Missing, "name a directory with LOADOUT_STATE", "no directory for usage data")

func (a *app) showUsage(ctx context.Context, days int) error {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	out := &usageOutput{Enabled: c.Usage.Enabled, File: a.UsageFile(), Models: []usage.ModelCost{}}
	if out.File == "" {
		return errNoUsageFile
	}
	if days > 0 {
		out.Since = time.Now().UTC().AddDate(0, 0, -days).Truncate(time.Second)
	}
	if out.Report, err = usage.Read(usage.Options{Path: out.File, Since: out.Since}); err != nil {
		return exit.Errorf(exit.Failure, "check the file, or delete it: loadout usage --clear", "%w", err)
	}
	price := setup.Prices(c)
	for _, m := range out.Report.Models {
		out.Models = append(out.Models, m.AtPrice(price(m.Name)))
	}
	rt, err := a.NewRuntime(ctx, c, false)
	if err != nil {
		return err
	}
	defer rt.Close()
	out.NeverUsed = unusedSkills(rt.Catalog().Snapshot(), out.Skills)
	if a.JSON {
		return a.PrintJSON(out)
	}
	a.printUsage(out)
	return nil
}

// unusedSkills returns the available skills that were not used. It compares
// keys. If a used skill has an unknown key, for example because it was used
// with --skills, it compares names.
func unusedSkills(snap *catalog.Snapshot, skills []usage.Skill) []neverUsed {
	keys, names := map[string]bool{}, map[string]bool{}
	for _, s := range skills {
		if s.Worked() == 0 {
			continue
		}
		keys[s.Key] = true
		if e, err := snap.Get(s.Key); err != nil || e.Key() != s.Key {
			names[s.Name] = true
		}
	}
	out := []neverUsed{}
	for _, e := range snap.Skills() {
		if !keys[e.Key()] && !names[e.Name] {
			out = append(out, neverUsed{e.Name, e.Key(), e.Origin})
		}
	}
	return out
}

func (a *app) printUsage(u *usageOutput) {
	if u.First.IsZero() {
		a.printNothingUsed(u)
	} else {
		a.printInterfaces(u)
		a.printSkills(u.Skills)
		a.printTimes("tool", u.Tools)
		a.printTimes("script", u.Scripts)
		a.printModels(u.Models)
	}
	a.printNeverUsed(u.NeverUsed)
	if u.Unknown > 0 {
		fmt.Fprintf(a.Stdout, "%s with an unknown skill or tool.\n", console.Pluralize(u.Unknown, "use"))
	}
	if u.Damaged > 0 {
		a.Note("%s of %s invalid and not counted", console.Pluralize(u.Damaged, "line"), u.File)
	}
	fmt.Fprintf(a.Stdout, "Recorded in %s; never sent anywhere.\n", plain(u.File))
	if !u.Enabled && !u.First.IsZero() {
		fmt.Fprintln(a.Stdout, "Recording is disabled: usage.enabled is false.")
	}
}

func (a *app) printNothingUsed(u *usageOutput) {
	switch {
	case !u.Enabled:
		fmt.Fprintln(a.Stdout, "Recording is disabled: usage.enabled is false. See: loadout config show")
	case !u.Since.IsZero():
		fmt.Fprintf(a.Stdout, "No usage since %s.\n", formatDay(u.Since))
	default:
		fmt.Fprintln(a.Stdout, "No usage yet. It is recorded when a client loads a skill: loadout connect CLIENT, or loadout chat")
	}
}

func (a *app) printInterfaces(u *usageOutput) {
	fmt.Fprintf(a.Stdout, "Since %s:\n\n", formatDay(cmp.Or(u.Since, u.First)))
	rows := [][]string{{"interface", "loads", "tokens", "files", "scripts", "calls", "answers", "failed", "refused", "last use"}}
	for _, f := range u.Interfaces {
		rows = append(rows, []string{f.Name, formatNumber(f.Loads), formatNumber(f.Tokens), formatNumber(f.Files), formatNumber(f.Scripts), formatNumber(f.Calls), formatNumber(f.Answers), formatNumber(f.Failures), formatNumber(f.Refused), formatDay(f.Last)})
	}
	a.printColumns(rows)
}

func (a *app) printSkills(skills []usage.Skill) {
	rows := [][]string{{"skill", "loads", "tokens", "files", "scripts", "calls", "failed", "refused", "by", "last use"}}
	for _, s := range skills {
		by := slices.Sorted(maps.Keys(s.Interfaces))
		rows = append(rows, []string{s.Name, formatNumber(s.Loads), formatNumber(s.Tokens), formatNumber(s.Files), formatNumber(s.Scripts), formatNumber(s.Calls), formatNumber(s.Failures), formatNumber(s.Refused), strings.Join(by, ","), formatDay(s.Last)})
	}
	a.printColumns(rows)
}

// printTimes prints the number and durations of tool calls or script runs.
func (a *app) printTimes(what string, all []usage.Tool) {
	rows := [][]string{{what, "calls", "failed", "refused", "p50", "p95", "last use"}}
	for _, t := range all {
		name := t.Name
		if what == "script" {
			name = t.Skill + " " + name
		}
		rows = append(rows, []string{name, formatNumber(t.Calls), formatNumber(t.Errors), formatNumber(t.Refused), formatDuration(t.P50), formatDuration(t.P95), formatDay(t.Last)})
	}
	a.printColumns(rows)
}

func (a *app) printModels(models []usage.ModelCost) {
	rows := [][]string{{"model", "answers", "input", "cache read", "cache write", "output", "cost", "without cache"}}
	var unknown []string
	for _, m := range models {
		cost, uncached := formatNumber(int(m.Equivalents)), formatNumber(int(m.UncachedEquivalents))
		if m.Cost != nil {
			cost, uncached = formatDollars(*m.Cost), formatDollars(*m.Uncached)
		} else {
			cost, uncached = cost+" te", uncached+" te"
			unknown = append(unknown, m.Name)
		}
		rows = append(rows, []string{m.Name, formatNumber(m.Answers), formatNumber(m.Input), formatNumber(m.CacheRead), formatNumber(m.CacheWrite), formatNumber(m.Output), cost, uncached})
	}
	a.printColumns(rows)
	if len(unknown) > 0 {
		fmt.Fprintf(a.Stdout, "No price configured for %s (models.prices). te are token equivalents: input 1,\ncache read 0.1, cache write 1.25, output 5.\n\n", plain(strings.Join(unknown, ", ")))
	}
}

func (a *app) printNeverUsed(skills []neverUsed) {
	const most = 20
	if len(skills) == 0 {
		return
	}
	var names []string
	for _, s := range skills[:min(len(skills), most)] {
		names = append(names, s.Name)
	}
	text := "Never used: " + strings.Join(names, ", ")
	if rest := len(skills) - most; rest > 0 {
		text += fmt.Sprintf(" and %d more; list them with: loadout usage --json", rest)
	}
	var b strings.Builder
	a.WriteWrapped(&b, "", text, console.NoStyle)
	fmt.Fprintln(a.Stdout, b.String())
}

// printColumns prints rows of numbers after a name, followed by an empty line.
// It omits empty columns, and prints nothing if there are no rows.
func (a *app) printColumns(rows [][]string) {
	if len(rows) < 2 {
		return
	}
	var kept [][]string
	for range rows {
		kept = append(kept, nil)
	}
	for col := range rows[0] {
		if !slices.ContainsFunc(rows[1:], func(r []string) bool { return r[col] != "" && r[col] != "0" }) {
			continue
		}
		for i, r := range rows {
			kept[i] = append(kept[i], r[col])
		}
	}
	a.PrintTable("", kept)
	fmt.Fprintln(a.Stdout)
}

// formatNumber formats an integer with thousands separators.
func formatNumber(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func formatDuration(ms float64) string {
	if ms == 0 {
		return ""
	}
	return usage.FormatMillis(ms)
}

func formatDollars(d float64) string {
	if d < 0.1 {
		return fmt.Sprintf("$%.4f", d)
	}
	return fmt.Sprintf("$%.2f", d)
}

func formatDay(t time.Time) string { return t.Local().Format("2006-01-02") }
