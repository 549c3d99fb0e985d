//go:build linux

// Command routing measures whether a question leads to the right skill: one of the
// bundled ones, alone and among others.
//
//	go run ./bench/routing [-skills DIR]…
//	go run ./bench/routing -model anthropic:NAME [-record DIR] [-skills DIR]…
//
// Without a model it is the search that is asked, once for each set of skills: the
// bundled ones, and with each directory one set more. With a model it is the loop of a
// conversation, which is told of the skills and asked each question once; what it loads
// first is its answer. Keys are in ANTHROPIC_API_KEY and OPENAI_API_KEY.
//
// -record keeps what the model was asked and answered as files, from which
// -model replay:DIR answers again, without a key and for nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bundled"
)

func main() {
	var o modelFlags
	file := flag.String("questions", "", "`file` of other questions, as questions.json")
	every := flag.Int("every", 1, "ask only one in `n` questions")
	verbose := flag.Bool("v", false, "print each question that led elsewhere")
	flag.StringVar(&o.model, "model", "", "ask `MODEL`: anthropic:NAME, openai:NAME, demo, or replay:DIR")
	flag.StringVar(&o.record, "record", "", "keep what the model is asked and answers in `DIR`")
	flag.StringVar(&o.baseURL, "base-url", "", "the server of the model, where that is not its vendor's `URL`")
	flag.StringVar(&o.key, "key", "", "the `NAME` of the variable with the key for -base-url")
	dirs := measure.Dirs("skills", "`directory` with more skills (repeatable)")
	measure.Main("routing", true, func() error {
		questions, err := readQuestions(*file)
		if err != nil {
			return err
		}
		if *every < 1 {
			return errors.New("give -every a number of at least 1")
		}
		var asked []question
		for i := 0; i < len(questions); i += *every {
			asked = append(asked, questions[i])
		}
		fmt.Println(measure.Where())
		if o.model == "" {
			return bySearch(context.Background(), asked, *dirs, *verbose)
		}
		return byModel(context.Background(), &o, asked, *dirs, *verbose)
	})
}

// open knows the bundled skills, and those of directories.
func open(ctx context.Context, dirs []string) (*loadout.Runtime, error) {
	sources := []catalog.Source{catalog.NewFS("bundled", catalog.Bundled, bundled.FS())}
	for i, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		sources = append(sources, catalog.NewDir("more"+strconv.Itoa(i+1), catalog.User, dir, nil))
	}
	return loadout.New(ctx, &loadout.Options{Sources: sources})
}
