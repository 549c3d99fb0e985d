package replay_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/llm/replay"
	"github.com/loadout-dev/loadout/llm"
)

// A test asks a model once, and its recording from then on.
func Example() {
	dir, err := os.MkdirTemp("", "recordings")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	ask := func(m llm.Model, text string) {
		r := &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text(text)}}}}
		_, err := llm.Ask(ctx, m, r, nil)
		fmt.Println(m.Name(), err == nil)
	}

	recorder, err := replay.Record(demo.New(nil), dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	ask(recorder, "Hello.")

	model, err := replay.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	ask(model, "Hello.")
	ask(model, "Good bye.")
	// Output:
	// demo:rules true
	// demo:rules true
	// demo:rules false
}
