package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/openai"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"choices":[{"delta":{"content":"Good "}}]}

data: {"choices":[{"delta":{"content":"morning."},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}

data: [DONE]

`)
	}))
	defer server.Close()

	m, err := openai.New("some-model", &openai.Options{BaseURL: server.URL + "/v1", HTTP: server.Client()})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &llm.Request{
		Instructions: "Be brief.",
		Messages:     []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("Hello!")}}},
	}
	answer, err := llm.Ask(context.Background(), m, r, func(e llm.Event) {
		if words, ok := e.(llm.TextDelta); ok {
			fmt.Print(words)
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("\n%s after %d tokens\n", answer.Stop, answer.Usage.Prompt())
	// Output:
	// Good morning.
	// end after 9 tokens
}
