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

// costs holds the costs of one kind of call over one transport.
type costs struct{ wall, cpu measure.Row }

func (c *costs) addSample(took measure.Cost) {
	c.wall.AddTime(took.Wall)
	c.cpu.AddTime(took.CPU)
}

// report collects the rows of the table. Times are in µs.
type report struct{ rows [][]string }

func (r *report) addRow(name, over string, c *costs, baseline *measure.Row, goalMillis float64) {
	goal := ""
	if goalMillis > 0 {
		goal = measure.FormatVerdict(fmt.Sprintf("≤ %s ms", measure.FormatNumber(goalMillis)), c.wall.Median() <= goalMillis*1000)
	}
	r.rows = append(r.rows, []string{name, over, formatMicros(c.wall.Median()), formatMicros(c.wall.Quantile(0.95)), formatMicros(c.cpu.Median()),
		formatMicros(baseline.Median()), measure.FormatNumber(c.cpu.RatioTo(baseline)), goal})
}

func formatMicros(v float64) string {
	if v >= 1000 {
		return measure.FormatNumber(v/1000) + " ms"
	}
	return measure.FormatNumber(v) + " µs"
}

// measure makes a call and its baseline call n times over each transport.
func (r *report) measure(c call, ways []*way, n int) error {
	cost := make([]costs, len(ways))
	baseline := make([]measure.Row, len(ways))
	for i := range n {
		for k, w := range ways {
			took, err := measureBaseline(c, w, i)
			if err != nil {
				return fmt.Errorf("measure baseline: %w", err)
			}
			baseline[k].AddTime(took.CPU)
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
	for k, w := range ways {
		r.addRow(c.name, w.name, &cost[k], &baseline[k], c.goal)
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
