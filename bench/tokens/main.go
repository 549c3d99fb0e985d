//go:build linux

// Command tokens counts the tokens of the catalog text, delivered instructions and the list of
// tools with the real o200k vocabulary. It also measures the error of tokencount.Estimate, and
// the cost of a conversation with a prompt cache:
//
//	go run ./tokens -cost DIR [-skills DIR]…
//
// The conversation uses only the skills of -cost. All other measurements also use those of
// -skills. It runs in the directory bench, and reads the recordings of clients.
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
	dirs := measure.ListFlag("skills", "`directory` with more skills (repeatable)")
	measure.Main("tokens", true, func() error {
		if *cost == "" {
			return errors.New("missing -cost")
		}
		return run(context.Background(), *cost, *dirs)
	})
}

// count returns the number of tokens in text.
type count func(text string) int

func newCount() (count, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	enc, err := tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
	if err != nil {
		return nil, err
	}
	return func(text string) int { return len(enc.EncodeOrdinary(text)) }, nil
}

// deliveredSkill holds a skill's catalog entry and the text delivered to a model.
type deliveredSkill struct {
	entry    *catalog.Entry
	material *session.Skill
	shown    []string // the text as shown by each of recordedClients
}

func loadSkills(ctx context.Context, dirs []string) ([]deliveredSkill, error) {
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
	var all []deliveredSkill
	for _, e := range rt.Catalog().Snapshot().ForModel() {
		ms, err := rt.Fetch(ctx, e.Key())
		if err != nil {
			return nil, err
		}
		all = append(all, deliveredSkill{entry: e, material: ms[len(ms)-1]})
	}
	return all, addShown(ctx, rt, all)
}

func run(ctx context.Context, costDir string, dirs []string) error {
	n, err := newCount()
	if err != nil {
		return err
	}
	few, err := loadSkills(ctx, []string{costDir})
	if err != nil {
		return err
	}
	all, err := loadSkills(ctx, append([]string{costDir}, dirs...))
	if err != nil {
		return err
	}
	fmt.Println(measure.Environment())
	fmt.Printf("\nTokens of the o200k vocabulary, %d skills:\n\n", len(all))
	r := &report{rows: [][]string{{"what", "value", "baseline", "× baseline", "goal"}}}
	r.addCatalog(n, all)
	r.addDelivery(n, all)
	r.addShown(n, few)
	if err := errors.Join(r.addTools(ctx, n), r.addRecorded(n)); err != nil {
		return err
	}
	measure.WriteMarkdown(os.Stdout, r.rows)
	fmt.Printf("\nError of tokencount.Estimate in %% of the real count:\n\n")
	measure.WriteMarkdown(os.Stdout, accuracyRows(n, all))
	fmt.Printf("\nA conversation with %d skills, mean of %d, in thousands of tokens:\n\n", len(few), seeds)
	measure.WriteMarkdown(os.Stdout, strategyRows(n, few))
	return nil
}
