package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
)

func Example() {
	// The server stands for the vendor's.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `event: message_start
data: {"type":"message_start","message":{"model":"claude-opus-5","usage":{"input_tokens":25}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"place\":\"Rome\"}"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":12}}

event: message_stop
data: {"type":"message_stop"}

`)
	}))
	defer server.Close()

	model, err := anthropic.New("claude-opus-5", &anthropic.Options{
		Key:     "sk-ant-…", // never from the environment
		BaseURL: server.URL,
		HTTP:    server.Client(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := llm.Ask(context.Background(), llm.Retry(model, nil), &llm.Request{
		Instructions: "Answer briefly.",
		Tools:        []llm.Tool{{Name: "weather", InputSchema: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}}}`)}},
		Messages:     []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("Is it sunny in Rome?")}}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range answer.Calls() {
		fmt.Println(call.Name, call.Arguments)
	}
	fmt.Println(answer.Stop, answer.Usage.Input, answer.Usage.Output)
	// Output:
	// weather {"place":"Rome"}
	// tools 25 12
}
