//go:build unix

package hub_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// model is a server that speaks as OpenAI's does, slowly. Of a message it does the lines
// "call NAME ARGUMENTS" one after the other, and then says what came of them; other
// messages it says again.
type model struct {
	*httptest.Server
	pace   time.Duration // before each piece of an answer
	ending chan struct{}
}

func newModel(t testing.TB, pace time.Duration) *model {
	m := &model{pace: pace, ending: make(chan struct{})}
	m.Server = httptest.NewServer(m)
	t.Cleanup(func() {
		close(m.ending)
		m.CloseClientConnections() // nodes reconnect
		m.Close()
	})
	return m
}

// asked is the part of a request that counts here.
type asked struct {
	Messages []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		ToolCalls []struct{}      `json:"tool_calls"`
	} `json:"messages"`
}

// words is the text of a message, which is one, or has parts.
func words(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	json.Unmarshal(content, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// ServeHTTP implements [http.Handler].
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in asked
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	said, calls, turn := "", 0, 0
	var results []string
	for i, msg := range in.Messages {
		switch text := words(msg.Content); {
		case msg.Role == "user" && strings.HasPrefix(text, "do: "):
			said, calls, turn, results = strings.TrimPrefix(text, "do: "), 0, i, nil
		case msg.Role == "assistant" && len(msg.ToolCalls) > 0:
			calls++
		case msg.Role == "tool":
			results = append(results, text)
		}
	}
	var program [][2]string
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "call "); ok {
			name, args, _ := strings.Cut(rest, " ")
			program = append(program, [2]string{name, args})
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if calls < len(program) {
		m.words(w, r, fmt.Sprintf("Now for number %d of what you want. ", calls+1))
		call := map[string]any{"index": 0, "id": fmt.Sprintf("call_%d_%d", turn, calls), "type": "function",
			"function": map[string]string{"name": program[calls][0], "arguments": program[calls][1]}}
		m.piece(w, r, map[string]any{"tool_calls": []any{call}}, "")
		m.piece(w, r, map[string]any{}, "tool_calls")
	} else {
		m.words(w, r, "That was all: "+said+" / "+strings.Join(results, " / "))
		m.piece(w, r, map[string]any{}, "stop")
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// words says a text, a few words at a time.
func (m *model) words(w http.ResponseWriter, r *http.Request, text string) {
	all := strings.SplitAfter(text, " ")
	for i := 0; i < len(all); i += 3 {
		m.piece(w, r, map[string]any{"content": strings.Join(all[i:min(i+3, len(all))], "")}, "")
	}
}

// piece sends a piece of an answer, when it is time.
func (m *model) piece(w http.ResponseWriter, r *http.Request, delta map[string]any, finish string) {
	wait := time.NewTimer(m.pace)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-r.Context().Done():
		return
	case <-m.ending:
		return
	}
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	data, _ := json.Marshal(map[string]any{"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "slow", "choices": []any{choice}})
	fmt.Fprintf(w, "data: %s\n\n", data)
	http.NewResponseController(w).Flush()
}
