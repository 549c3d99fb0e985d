//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// way is a transport: our server behind it, and one that does nothing.
type way struct {
	name        string
	to, nothing target
}

// costs are those of one kind of call over one transport.
type costs struct{ wall, cpu measure.Row }

func (c *costs) add(took measure.Cost) {
	c.wall.AddTime(took.Wall)
	c.cpu.AddTime(took.CPU)
}

// report collects rows of the table; times are in µs.
type report struct{ rows [][]string }

func (r *report) add(name, over string, c *costs, limit *measure.Row, goalMillis float64) {
	goal := ""
	if goalMillis > 0 {
		goal = measure.Verdict(fmt.Sprintf("≤ %s ms", measure.Number(goalMillis)), c.wall.Median() <= goalMillis*1000)
	}
	r.rows = append(r.rows, []string{name, over, micros(c.wall.Median()), micros(c.wall.Quantile(0.95)), micros(c.cpu.Median()),
		micros(limit.Median()), measure.Number(c.cpu.Times(limit)), goal})
}

func micros(v float64) string {
	if v >= 1000 {
		return measure.Number(v/1000) + " ms"
	}
	return measure.Number(v) + " µs"
}

// measure makes the call n times over each transport, its limit beside it.
func (r *report) measure(c call, ways []*way, n int) error {
	cost := make([]costs, len(ways))
	limit := make([]measure.Row, len(ways))
	for i := range n {
		for k, w := range ways {
			took, err := bare(c, w, i)
			if err != nil {
				return fmt.Errorf("limit: %w", err)
			}
			limit[k].AddTime(took.CPU)
			took, res, err := w.to.Measure(c.method, c.params(i))
			if err != nil {
				return err
			}
			if err := refused(res); err != nil {
				return err
			}
			cost[k].add(took)
		}
	}
	for k, w := range ways {
		r.add(c.name, w.name, &cost[k], &limit[k], c.goal)
	}
	return nil
}

// bare takes the call's limit.
func bare(c call, w *way, i int) (measure.Cost, error) {
	if c.barest != nil {
		return measure.Of(func() error { return c.barest(i) })
	}
	took, _, err := w.nothing.Measure("tools/call", args{"name": "nothing", "arguments": args{}})
	return took, err
}

// refused reports a tool's own error, which is a result.
func refused(res json.RawMessage) error {
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(res, &r); err != nil || !r.IsError {
		return nil // other methods have other results
	}
	return errors.New(r.Content[0].Text)
}
