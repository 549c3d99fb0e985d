//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// report collects rows of the table.
type report struct{ rows [][]string }

// add adds a value beside its limit, 0 for none, with its goal if it has one.
func (r *report) add(what string, value, limit float64, goal string) {
	row := []string{what, measure.Number(value), "", "", goal}
	if limit > 0 {
		row[2], row[3] = measure.Number(limit), fmt.Sprintf("%.3f", value/limit)
	}
	r.rows = append(r.rows, row)
}

// catalog counts the text that tells a model of all skills.
func (r *report) catalog(n count, all []loaded) {
	var entries []*catalog.Entry
	bare := 0
	for _, s := range all {
		entries = append(entries, s.entry)
		bare += n(s.entry.Name) + n(s.entry.Description)
	}
	text := n(catalog.Text(entries, catalog.TextOptions{}))
	frame := float64(text-bare) / float64(len(all))
	r.add("catalog text of all skills; limit: names and descriptions", float64(text), float64(bare), "")
	r.add("catalog text a skill beyond name and description", frame, 0, measure.Verdict("≤ 3", frame <= 3))
	for _, budget := range []int{1000, 2000, 5000} {
		bounded := n(catalog.Text(entries, catalog.TextOptions{Tokens: budget}))
		r.add("catalog text in a budget", float64(bounded), float64(budget), "")
	}
}

// delivery counts what a load adds to the instructions.
func (r *report) delivery(n count, all []loaded) {
	var bodies, rendered, plain int
	for _, s := range all {
		m := *s.material
		bodies += n(m.Instructions)
		rendered += n(session.Render(&m))
		m.Files = nil
		plain += n(session.Render(&m))
	}
	ratio := float64(plain) / float64(bodies)
	r.add("instructions as delivered, without the names of files; limit: as written", float64(plain), float64(bodies), measure.Verdict("≤ 1.02", ratio <= 1.02))
	r.add("instructions as delivered, with the names of files; limit: as written", float64(rendered), float64(bodies), "")
}

// tools counts what a client of the server is told without any skill.
func (r *report) tools(ctx context.Context, n count) error {
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
	r.add("tools/list without catalog text", float64(n(string(whole))), 0, measure.Verdict("≤ 1,500", n(string(whole)) <= 1500))
	r.add("of that, what clients show a model: name, description, input schema", float64(n(string(part))), 0, "")
	return nil
}

func listTools(ctx context.Context) ([]*mcp.Tool, error) {
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{}})
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	s := mcpserver.New(rt, nil)
	defer s.Close()
	ctx, stop := context.WithCancel(ctx)
	here, there := mcp.NewInMemoryTransports()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx, there) }() // it is stopped
	defer func() { stop(); <-ended }()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, here, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	res, err := c.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	return res.Tools, nil
}

// accuracy compares the estimate with the count.
func accuracy(n count, all []loaded) [][]string {
	rows := [][]string{{"texts", "of all together", "mean", "mean without sign", "p90", "p99", "worst"}}
	for _, kind := range []struct {
		name string
		text func(loaded) string
	}{
		{"instructions", func(s loaded) string { return s.material.Instructions }},
		{"catalog lines", func(s loaded) string { return catalog.Text([]*catalog.Entry{s.entry}, catalog.TextOptions{}) }},
		{"catalog lines with the name only", func(s loaded) string { return "- " + s.entry.Name + "\n" }},
	} {
		var total, estimated, signed, unsigned float64
		var errors []float64
		for _, s := range all {
			text := kind.text(s)
			if strings.TrimSpace(text) == "" {
				continue
			}
			want, got := float64(n(text)), float64(skill.Tokens(text))
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
