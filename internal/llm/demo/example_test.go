package demo_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/llm"
)

func Example() {
	r := &llm.Request{
		Tools:    []llm.Tool{{Name: "search_skills"}},
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("What can you do?")}}},
	}
	first, err := llm.Ask(context.Background(), demo.New(nil), r, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := first.Calls()[0]
	fmt.Println(call.Name, call.Arguments)

	r.Messages = append(r.Messages, first.Message, llm.Message{Role: llm.User, Parts: []llm.Part{
		llm.Result{Call: call.ID, Parts: []llm.Part{llm.Text("- pdf: Reads and fills PDF files.\n")}},
	}})
	second, err := llm.Ask(context.Background(), demo.New(nil), r, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	whatIDid, whatIAm, _ := strings.Cut(second.Message.Text(), "\n\n")
	fmt.Println(whatIDid)
	fmt.Println(strings.Contains(whatIAm, "The built-in demo answers"))
	// Output:
	// search_skills {}
	// I looked at which skills there are:
	// - pdf: Reads and fills PDF files.
	// true
}
