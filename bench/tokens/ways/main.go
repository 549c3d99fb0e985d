//go:build linux

// Command ways computes the cost of each way of delivering skill instructions to a model. It
// runs conversations of the agent loop with a scripted vendor and counts the tokens in the
// requests with the real o200k vocabulary:
//
//	go run ./tokens/ways
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	tiktoken "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/loadout-dev/loadout/bench/internal/conversation"
	"github.com/loadout-dev/loadout/bench/internal/measure"
)

func main() {
	seeds := flag.Int("seeds", 20, "`number` of conversations of each kind")
	turns := flag.String("turns", "10,30", "`lengths` of conversations in turns")
	measure.Main("ways", true, func() error {
		var lengths []int
		for s := range strings.SplitSeq(*turns, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return fmt.Errorf("invalid -turns %q: want numbers such as 10,30", *turns)
			}
			lengths = append(lengths, n)
		}
		if *seeds < 1 {
			return errors.New("-seeds must be at least 1")
		}
		return run(context.Background(), lengths, *seeds)
	})
}

func run(ctx context.Context, lengths []int, seeds int) error {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	enc, err := tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
	if err != nil {
		return err
	}
	count := func(text string) int { return len(enc.EncodeOrdinary(text)) }
	c, err := conversation.NewCorpus(ctx, conversation.Sizes, count)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println(measure.Environment())
	for _, turns := range lengths {
		fmt.Printf("\n%d skills of %d tokens, %d turns, means of %d conversations:\n\n", len(c.Skills), c.Tokens(), turns, seeds)
		rows, err := wayRows(ctx, c, count, turns, seeds)
		if err != nil {
			return err
		}
		measure.WriteMarkdown(os.Stdout, rows)
	}
	return nil
}

// goal is the cost of Loadout's way over 10 turns relative to the static way, in percent.
const goal = -40

func wayRows(ctx context.Context, c *conversation.Corpus, count conversation.Count, turns, seeds int) ([][]string, error) {
	meter := conversation.NewMeter(count)
	rows := [][]string{{"way", "requests", "prompt tokens", "cost", "range", "against static", "rewritten", "goal"}}
	static := 0.0
	for i, w := range conversation.Ways {
		var requests, tokens, again, cost float64
		var costs []float64
		for seed := range seeds {
			bodies, err := conversation.Play(ctx, c, w, turns, uint64(seed))
			if err != nil {
				return nil, err
			}
			b, err := meter.Bill(bodies)
			if err != nil {
				return nil, err
			}
			n := float64(seeds)
			requests, tokens, again, cost = requests+float64(b.Requests)/n, tokens+float64(b.Tokens)/n, again+float64(b.Rewritten)/n, cost+b.Cost/n
			costs = append(costs, b.Cost)
		}
		if i == 0 {
			static = cost
		}
		saved, verdict := 100*(cost/static-1), ""
		if w == conversation.Ours && turns == 10 {
			verdict = measure.FormatVerdict(fmt.Sprintf("≤ %d %%", goal), saved <= goal)
		}
		rows = append(rows, []string{w.Name, measure.FormatNumber(requests), formatThousands(tokens), formatThousands(cost),
			formatThousands(measure.Quantile(costs, 0)) + "–" + formatThousands(measure.Quantile(costs, 1)), fmt.Sprintf("%+.0f %%", saved), formatThousands(again), verdict})
	}
	return rows, nil
}

func formatThousands(v float64) string { return fmt.Sprintf("%.0fk", v/1e3) }
