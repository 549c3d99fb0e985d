//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/session"
)

// report collects the rows of the table.
type report struct{ rows [][]string }

// addRow adds a row. baseline is 0 if there is none, and goal is "" if there is none.
func (r *report) addRow(what string, value, baseline float64, goal string) {
	row := []string{what, measure.FormatNumber(value), "", "", goal}
	if baseline > 0 {
		row[2], row[3] = measure.FormatNumber(baseline), fmt.Sprintf("%.3f", value/baseline)
	}
	r.rows = append(r.rows, row)
}

// addCatalog adds token counts of the catalog text.
func (r *report) addCatalog(n count, all []deliveredSkill) {
	var entries []*catalog.Entry
	bare := 0
	for _, s := range all {
		entries = append(entries, s.entry)
		bare += n(s.entry.Name) + n(s.entry.Description)
	}
	text := n(catalog.Format(entries, catalog.FormatOptions{}))
	frame := float64(text-bare) / float64(len(all))
	r.addRow("catalog text of all skills; baseline: names and descriptions", float64(text), float64(bare), "")
	r.addRow("catalog text per skill beyond name and description", frame, 0, measure.FormatVerdict("≤ 3", frame <= 3))
	for _, budget := range []int{1000, 2000, 5000} {
		bounded := n(catalog.Format(entries, catalog.FormatOptions{Tokens: budget}))
		r.addRow("catalog text with a budget", float64(bounded), float64(budget), "")
	}
}

// addDelivery adds token counts of the delivered instructions.
func (r *report) addDelivery(n count, all []deliveredSkill) {
	var bodies, rendered, plain int
	for _, s := range all {
		m := *s.material
		bodies += n(m.Instructions)
		rendered += n(session.Render(&m))
		m.Files = nil
		plain += n(session.Render(&m))
	}
	ratio := float64(plain) / float64(bodies)
	r.addRow("delivered instructions without file names; baseline: as written", float64(plain), float64(bodies), measure.FormatVerdict("≤ 1.02", ratio <= 1.02))
	r.addRow("delivered instructions with file names; baseline: as written", float64(rendered), float64(bodies), "")
}

// addShown adds token counts of the text that clients show after load_skill:
// for all skills together, and for the skill with the highest overhead among
// those with at least 1,000 tokens of instructions.
func (r *report) addShown(n count, all []deliveredSkill) {
	for i, cl := range recordedClients {
		var bodies, shown, worst, worstBody int
		for _, s := range all {
			body, text := n(s.material.Instructions), n(s.shown[i])
			bodies, shown = bodies+body, shown+text
			if body >= 1000 && (worstBody == 0 || text*worstBody > worst*body) {
				worst, worstBody = text, body
			}
		}
		ratio := float64(shown) / float64(bodies)
		r.addRow("load_skill as "+cl.name+" shows it; baseline: instructions as written", float64(shown), float64(bodies), measure.FormatVerdict("≤ 1.05", ratio <= 1.05))
		r.addRow("of that, the worst with 1,000 tokens or more", float64(worst), float64(worstBody), "")
	}
}

// addTools adds the token count of the tool list of a server without skills.
func (r *report) addTools(ctx context.Context, n count) error {
	list, err := listTools(ctx)
	if err != nil {
		return err
	}
	whole, err := json.Marshal(list)
	if err != nil {
		return err
	}
	for _, t := range list {
		t.OutputSchema, t.Annotations, t.Title = nil, nil, ""
	}
	part, err := json.Marshal(list)
	if err != nil {
		return err
	}
	r.addRow("tools/list without catalog text", float64(n(string(whole))), 0, "")
	r.addRow("of that, the parts that clients show to a model: name, description, input schema", float64(n(string(part))), 0, measure.FormatVerdict("≤ 1,400", n(string(part)) <= 1400))
	return nil
}

// addRecorded adds how many tokens the list of 50 skills and our tool
// definitions have in recorded requests of clients to a model. In the requests
// of Claude Code, the tool definitions contain a part of the list.
func (r *report) addRecorded(n count) error {
	files, err := filepath.Glob("../internal/clientprofile/testdata/recordings/*.json")
	if err != nil {
		return err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var rec struct {
			Client string
			Shown  []struct{ Text string }
			Tools  []json.RawMessage
		}
		if err := json.Unmarshal(b, &rec); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		list, tools := "", ""
		for _, s := range rec.Shown {
			list += s.Text + "\n"
		}
		for _, t := range rec.Tools {
			tools += string(t) + "\n"
		}
		r.addRow("recorded: list of 50 skills in "+rec.Client, float64(n(list)), 0, "")
		r.addRow("recorded: declarations of our tools in "+rec.Client, float64(n(tools)), 0, "")
	}
	return nil
}

func listTools(ctx context.Context) ([]*mcp.Tool, error) {
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{}})
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	c, stop, err := connect(ctx, rt, "bench")
	if err != nil {
		return nil, err
	}
	res, err := c.ListTools(ctx, nil)
	if err = errors.Join(err, stop()); err != nil {
		return nil, err
	}
	return res.Tools, nil
}

// accuracyRows compares the estimates of tokencount.Estimate with exact counts.
func accuracyRows(n count, all []deliveredSkill) [][]string {
	rows := [][]string{{"texts", "of the total", "mean", "mean absolute", "p90", "p99", "worst"}}
	for _, kind := range []struct {
		name string
		text func(deliveredSkill) string
	}{
		{"instructions", func(s deliveredSkill) string { return s.material.Instructions }},
		{"catalog lines", func(s deliveredSkill) string {
			return catalog.Format([]*catalog.Entry{s.entry}, catalog.FormatOptions{})
		}},
		{"catalog lines with the name only", func(s deliveredSkill) string { return "- " + s.entry.Name + "\n" }},
	} {
		var total, estimated, signed, unsigned float64
		var errors []float64
		for _, s := range all {
			text := kind.text(s)
			if strings.TrimSpace(text) == "" {
				continue
			}
			want, got := float64(n(text)), float64(tokencount.Estimate(text))
			total, estimated = total+want, estimated+got
			off := (got - want) / want
			signed, unsigned = signed+off, unsigned+math.Abs(off)
			errors = append(errors, math.Abs(off))
		}
		percent := func(v float64) string { return fmt.Sprintf("%.1f", 100*v) }
		many := float64(len(errors))
		rows = append(rows, []string{kind.name, percent(estimated/total - 1), percent(signed / many), percent(unsigned / many),
			percent(measure.Quantile(errors, 0.9)), percent(measure.Quantile(errors, 0.99)), percent(measure.Quantile(errors, 1))})
	}
	return rows
}
