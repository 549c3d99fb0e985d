//go:build linux

// Command routing measures whether a user's question leads to the right skill. The questions
// are for the bundled skills, which are tested alone and among others.
//
//	go run ./routing [-skills DIR]…
//	go run ./routing -model anthropic:NAME [-record DIR] [-skills DIR]…
//
// Without a model it tests the search, once for each set of skills: the bundled ones, then with
// each directory added. With a model it asks each question once, in a separate conversation
// that lists all skills. The answer is the first skill that the model loads. API keys are read
// from ANTHROPIC_API_KEY and OPENAI_API_KEY.
//
// -record stores the model's requests and responses in files. -model replay:DIR replays them
// without a key.
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
	file := flag.String("questions", "", "`file` of questions in the format of questions.json")
	every := flag.Int("every", 1, "ask only every `n`th question")
	verbose := flag.Bool("v", false, "print each question with a wrong answer")
	flag.StringVar(&o.model, "model", "", "`MODEL` to ask: anthropic:NAME, openai:NAME, demo or replay:DIR")
	flag.StringVar(&o.record, "record", "", "record requests and responses of the model in `DIR`")
	flag.StringVar(&o.baseURL, "base-url", "", "base `URL` of the model's server")
	flag.StringVar(&o.key, "key", "", "`NAME` of the environment variable with the key for -base-url")
	dirs := measure.ListFlag("skills", "`directory` with more skills (repeatable)")
	measure.Main("routing", true, func() error {
		questions, err := readQuestions(*file)
		if err != nil {
			return err
		}
		if *every < 1 {
			return errors.New("-every must be at least 1")
		}
		var asked []question
		for i := 0; i < len(questions); i += *every {
			asked = append(asked, questions[i])
		}
		fmt.Println(measure.Environment())
		if o.model == "" {
			return runSearch(context.Background(), asked, *dirs, *verbose)
		}
		return runModel(context.Background(), &o, asked, *dirs, *verbose)
	})
}

// openRuntime opens the bundled skills and those in the directories.
func openRuntime(ctx context.Context, dirs []string) (*loadout.Runtime, error) {
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
