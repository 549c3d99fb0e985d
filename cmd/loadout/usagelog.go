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
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
)

// usageOutput is the shape of usage --json.
type usageOutput struct {
	Enabled bool      `json:"enabled"` // whether uses are counted now
	File    string    `json:"file"`
	Since   time.Time `json:"since,omitzero"` // with --days
	*usage.Report
	Models    []modelCost `json:"models"`
	NeverUsed []neverUsed `json:"never_used"`
}

// modelCost is what a model took, and what that costs.
type modelCost struct {
	usage.Model
	// Cost and Uncached are in US dollars, with the cache and as it would be without
	// one; null where no price is configured.
	Cost     *float64 `json:"cost_usd"`
	Uncached *float64 `json:"cost_uncached_usd"`
	// Equivalents are the same in tokens of input, whatever the price.
	Equivalents         float64 `json:"equivalents"`
	UncachedEquivalents float64 `json:"equivalents_uncached"`
}

// neverUsed is a skill that is there and was not used.
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
		Short: "Show what was used: skills, tools, scripts, models",
		Long: `Show how often skills were loaded, how many tokens that delivered, which scripts were
run and which tools called, how long they took and how often they failed, what models
took and what that costs, and which skills were never used.

It is counted in a file of yours, usage.jsonl in the state directory: when, by which
face, the name, how long, how many tokens, and the outcome; never what was said,
arguments, results or secrets. It is sent nowhere. Of about 8 MiB the newer half is
kept. usage.enabled: false or LOADOUT_USAGE=off switches it off, --clear forgets it.`,
		Example: `  loadout usage
  loadout usage --days 7
  loadout usage --json
  loadout usage --clear`,
		Args: want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := exclusive(cmd, "clear", "days"); err != nil {
				return err
			}
			if cmd.Flags().Changed("days") && (days < 1 || days > 36_500) {
				return fail(exitUsage, "give --days a number of at least 1", "--days is %d", days)
			}
			if clear {
				return a.clearUsage(cmd.Context())
			}
			return a.usage(cmd.Context(), days)
		},
	}
	cmd.Flags().IntVar(&days, "days", 0, "only the last `N` days")
	cmd.Flags().BoolVar(&clear, "clear", false, "forget everything that was counted")
	return cmd
}

func (a *app) clearUsage(ctx context.Context) error {
	file := a.usageFile()
	if file == "" {
		return errNoUsageFile
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := usage.NewLog(file, nil).Clear(ctx); err != nil {
		return fail(exitFound, "end the other loadout programs, or delete "+quoted(file)+" yourself", "%w", err)
	}
	if a.json {
		return a.printJSON(map[string]any{"cleared": true, "file": file})
	}
	fmt.Fprintln(a.stdout, "What was counted is forgotten.")
	return nil
}

var errNoUsageFile = fail(exitMissing, "name a directory with LOADOUT_STATE", "there is no place where uses are counted")

func (a *app) usage(ctx context.Context, days int) error {
	c, err := a.settings(nil)
	if err != nil {
		return err
	}
	out := &usageOutput{Enabled: c.Usage.Enabled, File: a.usageFile(), Models: []modelCost{}}
	if out.File == "" {
		return errNoUsageFile
	}
	if days > 0 {
		out.Since = time.Now().UTC().AddDate(0, 0, -days).Truncate(time.Second)
	}
	if out.Report, err = usage.Read(usage.Options{Path: out.File, Since: out.Since}); err != nil {
		return fail(exitFound, "look at that file, or begin again with: loadout usage --clear", "%w", err)
	}
	for _, m := range out.Report.Models {
		out.Models = append(out.Models, costOf(c, m))
	}
	rt, err := a.runtime(ctx, c, false)
	if err != nil {
		return err
	}
	defer rt.Close()
	out.NeverUsed = unused(rt.Catalog().Snapshot(), out.Skills)
	if a.json {
		return a.printJSON(out)
	}
	a.printUsage(out)
	return nil
}

// unused are the skills that there are and that were not used. One whose key is of no
// skill any more was used from another place, as by --skills: then its name counts.
func unused(snap *catalog.Snapshot, skills []usage.Skill) []neverUsed {
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

func costOf(c *config.Config, m usage.Model) modelCost {
	out := modelCost{Model: m}
	out.Equivalents, out.UncachedEquivalents = m.Usage.Equivalents()
	if p, known := c.Models.Price(m.Name); known {
		cost, uncached := llm.Price(p).Cost(m.Usage)
		out.Cost, out.Uncached = &cost, &uncached
	}
	return out
}

func (a *app) printUsage(u *usageOutput) {
	if u.First.IsZero() {
		a.printNothingUsed(u)
	} else {
		a.printFaces(u)
		a.printSkills(u.Skills)
		a.printTimes("tool", u.Tools)
		a.printTimes("script", u.Scripts)
		a.printModels(u.Models)
	}
	a.printNeverUsed(u.NeverUsed)
	if u.Unknown > 0 {
		fmt.Fprintf(a.stdout, "%s named no skill or tool that there is.\n", counted(u.Unknown, "use"))
	}
	if u.Damaged > 0 {
		a.note("%s of %s cannot be read, and not counted", counted(u.Damaged, "line"), u.File)
	}
	fmt.Fprintf(a.stdout, "Counted in %s, and sent nowhere.\n", plain(u.File))
	if !u.Enabled && !u.First.IsZero() {
		fmt.Fprintln(a.stdout, "Nothing is counted any more: usage.enabled is false.")
	}
}

func (a *app) printNothingUsed(u *usageOutput) {
	switch {
	case !u.Enabled:
		fmt.Fprintln(a.stdout, "Nothing is counted: usage.enabled is false. See: loadout config show")
	case !u.Since.IsZero():
		fmt.Fprintf(a.stdout, "Nothing was used since %s.\n", day(u.Since))
	default:
		fmt.Fprintln(a.stdout, "Nothing was used yet. It is counted when a client loads a skill: loadout connect CLIENT, or loadout chat")
	}
}

func (a *app) printFaces(u *usageOutput) {
	fmt.Fprintf(a.stdout, "Since %s:\n\n", day(cmp.Or(u.Since, u.First)))
	rows := [][]string{{"face", "loads", "tokens", "files", "scripts", "calls", "answers", "failed", "refused", "last use"}}
	for _, f := range u.Faces {
		rows = append(rows, []string{f.Name, number(f.Loads), number(f.Tokens), number(f.Files), number(f.Scripts), number(f.Calls), number(f.Answers), number(f.Failures), number(f.Refused), day(f.Last)})
	}
	a.columns(rows)
}

func (a *app) printSkills(skills []usage.Skill) {
	rows := [][]string{{"skill", "loads", "tokens", "files", "scripts", "calls", "failed", "refused", "by", "last use"}}
	for _, s := range skills {
		by := slices.Sorted(maps.Keys(s.Faces))
		rows = append(rows, []string{s.Name, number(s.Loads), number(s.Tokens), number(s.Files), number(s.Scripts), number(s.Calls), number(s.Failures), number(s.Refused), strings.Join(by, ","), day(s.Last)})
	}
	a.columns(rows)
}

// printTimes prints how tools or scripts do.
func (a *app) printTimes(what string, all []usage.Tool) {
	rows := [][]string{{what, "calls", "failed", "refused", "p50", "p95", "last use"}}
	for _, t := range all {
		name := t.Name
		if what == "script" {
			name = t.Skill + " " + name
		}
		rows = append(rows, []string{name, number(t.Calls), number(t.Errors), number(t.Refused), millis(t.P50), millis(t.P95), day(t.Last)})
	}
	a.columns(rows)
}

func (a *app) printModels(models []modelCost) {
	rows := [][]string{{"model", "answers", "input", "cache read", "cache write", "output", "cost", "without cache"}}
	var unknown []string
	for _, m := range models {
		cost, uncached := number(int(m.Equivalents)), number(int(m.UncachedEquivalents))
		if m.Cost != nil {
			cost, uncached = dollars(*m.Cost), dollars(*m.Uncached)
		} else {
			cost, uncached = cost+" te", uncached+" te"
			unknown = append(unknown, m.Name)
		}
		rows = append(rows, []string{m.Name, number(m.Answers), number(m.Input), number(m.CacheRead), number(m.CacheWrite), number(m.Output), cost, uncached})
	}
	a.columns(rows)
	if len(unknown) > 0 {
		fmt.Fprintf(a.stdout, "No price is configured for %s (models.prices). te are token-equivalents: input 1,\ncache read 0.1, cache write 1.25, output 5.\n\n", plain(strings.Join(unknown, ", ")))
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
		text += fmt.Sprintf(" and %d more, in: loadout usage --json", rest)
	}
	var b strings.Builder
	a.wrap(&b, "", text, same)
	fmt.Fprintln(a.stdout, b.String())
}

// columns prints rows of numbers behind a name, and an empty line; a head alone is not
// printed, and a column without any number is left out.
func (a *app) columns(rows [][]string) {
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
	a.table("", kept)
	fmt.Fprintln(a.stdout)
}

// number has its thousands apart.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func millis(ms float64) string {
	switch {
	case ms == 0:
		return ""
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

func dollars(d float64) string {
	if d < 0.1 {
		return fmt.Sprintf("$%.4f", d)
	}
	return fmt.Sprintf("$%.2f", d)
}

func day(t time.Time) string { return t.Local().Format("2006-01-02") }
