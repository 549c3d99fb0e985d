//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// marks are the turns of a long conversation around which runLong measures.
var marks = []int{20, 50, 200, 400, 1000}

// window is the number of turns that are measured at each mark.
const window = 16

// runLong measures the turns of one conversation as it grows to the given number of turns. The
// CPU time includes the demo model, which reads the whole request.
func (b *bench) runLong(name string) (err error) {
	if err := os.MkdirAll(b.home, 0o700); err != nil {
		return err
	}
	b.users, b.groups = 1, 1
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}, Timeout: 10 * time.Minute}
	defer b.client.CloseIdleConnections()
	if err := b.createUsers(); err != nil {
		return err
	}
	if b.node, err = b.start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.node.stop()) }()
	c, err := b.startChat(b.tokens[0])
	if err != nil {
		return err
	}
	defer c.close()
	table := [][]string{{name + ": turn", "CPU of the node per turn, ms", "first event, ms (min)", "end, ms (min)"}}
	turns := 0
	for _, mark := range marks {
		if mark > b.turns {
			break
		}
		for ; turns < mark-window/2; turns++ {
			if _, err := c.sendMessage(b); err != nil {
				return fmt.Errorf("turn %d: %w", turns+1, err)
			}
		}
		var first, end []float64
		cpu := measure.CPUOf(b.node.pid())
		for range window {
			turns++
			s, err := c.sendMessage(b)
			if err != nil {
				return fmt.Errorf("turn %d: %w", turns, err)
			}
			first, end = append(first, s.first.Seconds()*1e3), append(end, s.end.Seconds()*1e3)
		}
		each := (measure.CPUOf(b.node.pid()) - cpu) / window
		table = append(table, []string{fmt.Sprint(mark), measure.FormatNumber(each.Seconds() * 1e3), times(first), times(end)})
	}
	fmt.Println()
	measure.WriteMarkdown(os.Stdout, table)
	return nil
}

// times formats the median and the minimum of times.
func times(ms []float64) string {
	return measure.FormatNumber(measure.Quantile(ms, 0.5)) + " (" + measure.FormatNumber(slices.Min(ms)) + ")"
}
