package loadout_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// scripted is a model that loads a skill. Test yours with loadouttest.Model.
type scripted struct{}

func (scripted) Name() string { return "example:scripted" }

func (scripted) Stream(_ context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	answer := llm.Answer{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text("Ready.")}}}
	if len(r.Messages) == 1 {
		call := llm.Call{ID: "1", Name: "load_skill", Arguments: `{"name":"tides"}`}
		answer = llm.Answer{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{call}}}
	}
	return func(yield func(llm.Event, error) bool) { yield(llm.Done{Answer: answer}, nil) }
}

func Example_agent() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
		"tides/SKILL.md": {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nAdd one hour in summer.\n")},
	})}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	events := &session.MemoryLog{} // or session.OpenFileLog(path)
	for _, message := range []string{"use the skill tides", "thank you"} {
		// Each message may be handled by another process: the session continues from the
		// log.
		s, err := rt.NewSession(ctx, &session.Options{Log: events, RetentionTurns: 3})
		if err != nil {
			log.Fatal(err)
		}
		a := agent.New(scripted{}, s, &agent.Options{Instructions: "Skills:\n" + rt.CatalogText(2000)})
		if err := a.RunTurn(ctx, message, func(agent.Event) {}); err != nil {
			log.Fatal(err)
		}
		for _, active := range s.Active() {
			left, _ := s.TurnsLeft(active.Skill)
			fmt.Println(active.Skill.Name, "remains active for", left, "more turns")
		}
		s.Close()
	}
	// Output:
	// tides remains active for 3 more turns
	// tides remains active for 2 more turns
}
