//go:build linux

// Command tokens counts what a language model is charged for, with the real
// o200k vocabulary: the catalog text, the delivery of instructions, the list
// of tools, how far skill.Tokens is off, and what a conversation costs with a
// prompt cache. It is a module of its own, so that the tokenizer is no
// dependency of Loadout:
//
//	cd bench/tokens && go run . -cost DIR [-skills DIR]…
//
// The conversation has the skills of -cost; everything else is counted over
// these and those of -skills.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	tiktoken "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
)

func main() {
	cost := flag.String("cost", "", "`directory` with the skills of the conversation")
	dirs := measure.Dirs("skills", "`directory` with more real skills (repeatable)")
	measure.Main("tokens", true, func() error {
		if *cost == "" {
			return errors.New("give -cost")
		}
		return run(context.Background(), *cost, *dirs)
	})
}

// count is how many tokens a text has.
type count func(text string) int

func newCount() (count, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	enc, err := tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
	if err != nil {
		return nil, err
	}
	return func(text string) int { return len(enc.EncodeOrdinary(text)) }, nil
}

// loaded is a skill as it is known and as it is delivered.
type loaded struct {
	entry    *catalog.Entry
	material *session.Material
}

func load(ctx context.Context, dirs []string) ([]loaded, error) {
	var sources []catalog.Source
	for i, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		sources = append(sources, catalog.NewDir("source"+strconv.Itoa(i), catalog.User, dir, nil))
	}
	rt, err := loadout.New(ctx, &loadout.Options{Sources: sources})
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	var all []loaded
	for _, e := range rt.Catalog().Snapshot().Offered() {
		ms, err := rt.Fetch(ctx, e.Key())
		if err != nil {
			return nil, err
		}
		all = append(all, loaded{e, ms[len(ms)-1]})
	}
	return all, nil
}

func run(ctx context.Context, costDir string, dirs []string) error {
	n, err := newCount()
	if err != nil {
		return err
	}
	few, err := load(ctx, []string{costDir})
	if err != nil {
		return err
	}
	all, err := load(ctx, append([]string{costDir}, dirs...))
	if err != nil {
		return err
	}
	fmt.Println(measure.Where())
	fmt.Printf("\nTokens of the o200k vocabulary, %d skills:\n\n", len(all))
	r := &report{rows: [][]string{{"what", "value", "limit", "× limit", "goal"}}}
	r.catalog(n, all)
	r.delivery(n, all)
	if err := r.tools(ctx, n); err != nil {
		return err
	}
	measure.Markdown(os.Stdout, r.rows)
	fmt.Printf("\nskill.Tokens less the real count, in %% of it:\n\n")
	measure.Markdown(os.Stdout, accuracy(n, all))
	fmt.Printf("\nA conversation with %d skills, the mean of %d, in thousands of tokens:\n\n", len(few), seeds)
	measure.Markdown(os.Stdout, conversations(n, few))
	return nil
}
