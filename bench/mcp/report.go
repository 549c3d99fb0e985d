//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// way is a transport, with a connection to our server and one to a server without
// tools.
type way struct {
	name        string
	to, nothing target
}

// costs holds the rows of one kind of call over one transport.
type costs struct{ wall, cpu, baseline *measure.Row }

func (c *costs) addSample(took measure.Cost) {
	c.wall.AddTime(took.Wall)
	c.cpu.AddTime(took.CPU)
}

// report collects the rows of the table.
type report struct{ measure.Table }

// addRows adds the rows of a kind of call over a transport.
func (r *report) addRows(name, over string) *costs {
	row := func(what string, baseline *measure.Row) *measure.Row {
		return r.Row(measure.Row{Name: name + ", " + over + ": " + what, Unit: "µs", Baseline: baseline})
	}
	c := &costs{wall: row("wall", nil), baseline: row("baseline CPU", nil)}
	c.cpu = row("CPU", c.baseline)
	return c
}

// measure makes a call and its baseline call n times over each transport.
func (r *report) measure(c call, ways []*way, n int) error {
	var cost []*costs
	for _, w := range ways {
		cost = append(cost, r.addRows(c.name, w.name))
	}
	for i := range n {
		for k, w := range ways {
			took, err := measureBaseline(c, w, i)
			if err != nil {
				return fmt.Errorf("measure baseline: %w", err)
			}
			cost[k].baseline.AddTime(took.CPU)
			took, res, err := w.to.Measure(c.method, c.params(i))
			if err != nil {
				return err
			}
			if err := checkToolResult(res); err != nil {
				return err
			}
			cost[k].addSample(took)
		}
	}
	return nil
}

// measureBaseline measures the minimum work for the i-th call.
func measureBaseline(c call, w *way, i int) (measure.Cost, error) {
	if c.minimum != nil {
		return measure.Run(func() error { return c.minimum(i) })
	}
	took, _, err := w.nothing.Measure("tools/call", args{"name": "nothing", "arguments": args{}})
	return took, err
}

// checkToolResult returns the error of a failed tool call, which MCP reports in
// the result.
func checkToolResult(res json.RawMessage) error {
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(res, &r); err != nil || !r.IsError {
		return nil // a successful tool result, or another method's result
	}
	return errors.New(r.Content[0].Text)
}
