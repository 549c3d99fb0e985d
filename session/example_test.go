package session_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// message is a message of a request in the examples. Load is a call of the tool
// that loads a skill.
type message struct{ Role, Text, Load string }

// script simulates a language model with fixed answers.
type script []message

func (s *script) answer(request []message) message {
	next := (*s)[0]
	*s = (*s)[1:]
	next.Role = "assistant"
	return next
}

// harbour returns a runtime with one skill.
func harbour(ctx context.Context) *loadout.Runtime {
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
		"tides/SKILL.md": {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\ndisplayName: Tide tables\n---\nIn summer add one hour.\n")},
	})}})
	if err != nil {
		log.Fatal(err)
	}
	return rt
}

// This example returns a load as a tool result. Sent messages never change, so
// a vendor's prompt cache serves all of them the next time. Prefer this
// protocol if you have a choice.
func Example_toolResult() {
	ctx := context.Background()
	rt := harbour(ctx)
	defer rt.Close()
	s, err := rt.NewSession(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	model := &script{{Load: "tides"}, {Text: "At 13:10."}, {Text: "At 19:20."}}

	request := []message{{Role: "system", Text: "Skills:\n" + rt.CatalogText(2000)}}
	for _, question := range []string{"When is high water?", "And low water?"} {
		if err := s.AddMessage(ctx, llm.User, question); err != nil {
			log.Fatal(err)
		}
		request = append(request, message{Role: "user", Text: question})
		for {
			answer := model.answer(request)
			request = append(request, answer)
			if answer.Load == "" {
				break
			}
			// For a skill that cannot be loaded, the text is the reason.
			r, err := s.Load(ctx, answer.Load, &session.LoadOptions{ByModel: true})
			if err != nil {
				log.Fatal(err)
			}
			request = append(request, message{Role: "tool", Text: r.Text})
		}
		if err := s.AddMessage(ctx, llm.Assistant, request[len(request)-1].Text); err != nil {
			log.Fatal(err)
		}
	}
	show(request)
	// Output:
	// system: Skills: - tides: Reads tide tables.
	// user: When is high water?
	// assistant: load tides
	// tool: Skill tides (from mine) is loaded. Follow its instructions where they apply. In summer add one hour.
	// assistant: At 13:10.
	// user: And low water?
	// assistant: At 19:20.
}

// This example adds a load to the conversation as messages: one that the user
// sees, one with the instructions for the model only, and one with permissions
// for the program only. The messages are appended too, and the cost is about
// the same.
func ExampleLoadResult_Activation() {
	ctx := context.Background()
	rt := harbour(ctx)
	defer rt.Close()
	s, err := rt.NewSession(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	model := &script{{Load: "tides"}, {Text: "At 13:10."}}
	var unasked []string // tool calls that need no approval while the skill is active

	if err := s.AddMessage(ctx, llm.User, "When is high water?"); err != nil {
		log.Fatal(err)
	}
	request := []message{{Role: "user", Text: "When is high water?"}}
	for {
		answer := model.answer(request)
		request = append(request, answer)
		if answer.Load == "" {
			break
		}
		r, err := s.Load(ctx, answer.Load, &session.LoadOptions{ByModel: true})
		if err != nil {
			log.Fatal(err)
		}
		a := r.Activation(answer.Load)
		if !a.Success {
			request = append(request, message{Role: "tool", Text: a.Error})
			continue
		}
		request = append(request, message{Role: "tool", Text: "activated"})
		for _, m := range a.Messages {
			text, ok := m.Content.(string)
			if !ok {
				continue // skip permissions: the context modifier has them too
			}
			if !m.IsMeta {
				fmt.Println("shown:", text)
			}
			request = append(request, message{Role: m.Role, Text: text})
		}
		if a.ContextModifier != nil {
			unasked = append(unasked, a.ContextModifier.AllowedTools...)
		}
	}
	show(request)
	fmt.Println(len(unasked), "calls are made unasked")
	// Output:
	// shown: <command-message>The "Tide tables" skill is loading</command-message>
	// <command-name>tides</command-name>
	// user: When is high water?
	// assistant: load tides
	// tool: activated
	// user: <command-message>The "Tide tables" skill is loading</command-message> <command-name>tides</command-name>
	// user: # Tide tables Skill In summer add one hour.
	// assistant: At 13:10.
	// 0 calls are made unasked
}

// This example renders the active skills in a block for each request. The
// program stores the conversation itself: of skills it stores only the names,
// and restores the session from them for each message of the user. Every load
// and unload changes the request near its beginning. With vendors that cache
// prompts, this makes it the most expensive protocol.
func ExampleRenderBlock() {
	ctx := context.Background()
	rt := harbour(ctx)
	defer rt.Close()
	var available []session.Skill
	for _, e := range rt.Catalog().Snapshot().ForModel() {
		available = append(available, session.Skill{ID: session.ID{Name: e.Name}, Description: e.Description})
	}
	model := &script{{Load: "tides"}, {Text: "At 13:10."}, {Text: "At 19:20."}}

	var stored []session.PastMessage
	for _, question := range []string{"When is high water?", "And low water?"} {
		s, err := rt.NewSession(ctx, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := s.Restore(ctx, stored, nil); err != nil {
			log.Fatal(err)
		}
		if err := s.AddMessage(ctx, llm.User, question); err != nil {
			log.Fatal(err)
		}
		conversation := []message{{Role: "system", Text: "You help sailors."}}
		for _, p := range stored {
			conversation = append(conversation, message{Role: string(p.Role), Text: p.Text})
		}
		conversation = append(conversation, message{Role: "user", Text: question})
		for {
			role, text := session.RenderBlock(available, s.Active(), true)
			request := slices.Insert(slices.Clone(conversation), 1, message{Role: role, Text: text}) // after the system message
			answer := model.answer(request)
			conversation = append(conversation, answer)
			if answer.Load == "" {
				show(request)
				stored = append(stored, session.PastMessage{Role: llm.User, Text: question},
					session.PastMessage{Role: llm.Assistant, Text: answer.Text, LoadedSkills: s.LoadedSkills()})
				fmt.Printf("stored: %q with %q\n\n", answer.Text, s.LoadedSkills())
				break
			}
			r, err := s.Load(ctx, answer.Load, &session.LoadOptions{ByModel: true})
			if err != nil {
				log.Fatal(err)
			}
			told := r.Text // why it could not be loaded
			if r.State != session.StateFailed {
				told = "Its instructions are in the context above."
			}
			conversation = append(conversation, message{Role: "tool", Text: told})
		}
		s.Close()
	}
	// Output:
	// system: You help sailors.
	// developer: <skill> ## Available Skills Load a skill before a task that it fits; its instructions then follow below. - tides: Reads tide tables. ## Loaded Skill Instructions <tides> Skill tides (from mine) is loaded. Follow its instructions where they apply. In summer add one hour. </tides> </skill>
	// user: When is high water?
	// assistant: load tides
	// tool: Its instructions are in the context above.
	// stored: "At 13:10." with ["tides"]
	//
	// system: You help sailors.
	// developer: <skill> ## Available Skills Load a skill before a task that it fits; its instructions then follow below. - tides: Reads tide tables. ## Loaded Skill Instructions <tides> Skill tides (from mine) is loaded. Follow its instructions where they apply. In summer add one hour. </tides> </skill>
	// user: When is high water?
	// assistant: At 13:10.
	// user: And low water?
	// stored: "At 19:20." with []
}

// show prints messages, one per line.
func show(messages []message) {
	for _, m := range messages {
		text := strings.Join(strings.Fields(m.Text), " ")
		if m.Load != "" {
			text = "load " + m.Load
		}
		fmt.Println(m.Role+":", text)
	}
}
