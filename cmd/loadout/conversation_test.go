package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/llm/llmtest"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/llm"
)

// wires lists the API formats of models and the names of a model in each.
var wires = map[string]struct {
	vendor      func() *llmtest.Vendor
	model, path string
}{
	"anthropic": {llmtest.Anthropic, "anthropic:claude-opus-5", ""},
	"openai":    {llmtest.OpenAI, "openai:small", "/v1"},
}

// someone is a user with a home directory and a scripted model. Each turn is a new
// process that continues the conversation.
type someone struct {
	t       *testing.T
	exe     string
	home    string
	wire    string
	vendor  *llmtest.Vendor
	server  *llmtest.Server
	session string   // the conversation; "" begins one
	logs    []string // of conversations
	args    []string // of each turn, besides
	script  int      // turns of the model that were scripted
}

// newSomeone makes a home directory of files; in their texts HOME is its path.
func newSomeone(t *testing.T, exe, wire string, files map[string]string, args ...string) *someone {
	t.Helper()
	p := &someone{t: t, exe: exe, home: t.TempDir(), wire: wire, vendor: wires[wire].vendor(), args: args}
	p.server = llmtest.NewServer(t, p.vendor)
	for name, text := range files {
		p.write(name, text)
	}
	return p
}

func (p *someone) path(name string) string { return filepath.Join(p.home, filepath.FromSlash(name)) }

func (p *someone) write(name, text string) {
	p.t.Helper()
	path := p.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "HOME", p.home)), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *someone) read(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return string(b)
}

// command returns a loadout command with the user's home directory.
func (p *someone) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), p.exe, args...)
	cmd.Dir = p.home
	cmd.Env = []string{"HOME=" + p.home, "USERPROFILE=" + p.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "GORACE=" + os.Getenv("GORACE")}
	return cmd
}

// turn is a message of the user, the answers to prompts, and the responses of the model.
func (p *someone) turn(text string, model ...llmtest.Turn) *exec.Cmd {
	p.server.Then(model...)
	p.script += len(model)
	args := append([]string{"chat", "-p", text, "--json", "--model", wires[p.wire].model, "--base-url", p.server.URL + wires[p.wire].path}, p.args...)
	if p.session != "" {
		args = append(args, "--session", p.session)
	}
	return p.command(args...)
}

// said is the output of a process.
type said struct {
	code   int
	events []agent.Event
	stderr string
}

// says runs a turn in which the user types answers to prompts.
func (p *someone) says(text, answers string, model ...llmtest.Turn) *said {
	p.t.Helper()
	cmd := p.turn(text, model...)
	cmd.Stdin = strings.NewReader(answers)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			p.t.Fatal(err)
		}
	}
	s := &said{code: cmd.ProcessState.ExitCode(), stderr: errs.String(), events: p.events(out.Bytes())}
	if n := len(p.server.Bodies()); n != p.script {
		p.t.Fatalf("%q: the model was asked %d times, its script is for %d\n%s\n%s", text, n, p.script, out.String(), errs.String())
	}
	if p.session == "" {
		p.session = p.newest()
	}
	return s
}

// events reads lines of JSON, each with a type and known fields only.
func (p *someone) events(out []byte) []agent.Event {
	p.t.Helper()
	var all []agent.Event
	for line := range bytes.Lines(out) {
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		var e struct {
			agent.Event
			Status int    `json:"status"` // of an error
			Hint   string `json:"hint"`
		}
		if err := dec.Decode(&e); err != nil || e.Type == "" || !bytes.HasPrefix(line, []byte(`{"type":"`)) {
			p.t.Fatalf("a line is not an event: %v\n%s", err, line)
		}
		all = append(all, e.Event)
	}
	return all
}

// newest is the ID of the conversation that began last.
func (p *someone) newest() string {
	p.t.Helper()
	logs, err := filepath.Glob(p.path(".local/state/loadout/sessions/*.jsonl"))
	logs = slices.DeleteFunc(logs, func(log string) bool { return slices.Contains(p.logs, log) })
	if err != nil || len(logs) != 1 {
		p.t.Fatalf("there are the conversations %v, %v", logs, err)
	}
	p.logs = append(p.logs, logs[0])
	return strings.TrimSuffix(filepath.Base(logs[0]), ".jsonl")
}

// order returns the types of events in short form with the names of their subjects.
// Consecutive deltas count once.
func (s *said) order() string {
	var out []string
	for _, e := range s.events {
		word := string(e.Type)
		switch {
		case e.Type == agent.ToolProgress:
			continue // which comes as it may
		case e.Call != nil:
			word += ":" + e.Call.ID
		case e.Skill != "":
			word += ":" + e.Skill
		case e.Type == agent.Done:
			word += ":" + e.Reason
		}
		if e.Type == agent.Text && len(out) > 0 && out[len(out)-1] == word {
			continue
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// ended checks the exit code, and what happened.
func (s *said) ended(t *testing.T, code int, order string) {
	t.Helper()
	if s.code != code || s.order() != order {
		t.Errorf("exit code %d, want %d; it tells of\n  %s\nwant\n  %s\n%s", s.code, code, s.order(), order, s.stderr)
	}
}

// inOrder checks that the exit code is 0, and that these events occurred in this order,
// possibly with others between them.
func (s *said) inOrder(t *testing.T, words ...string) {
	t.Helper()
	rest := words
	for _, word := range strings.Fields(s.order()) {
		if len(rest) > 0 && word == rest[0] {
			rest = rest[1:]
		}
	}
	if s.code != 0 || len(rest) > 0 {
		t.Errorf("exit code %d; it tells of\n  %s\nin which %q does not come after %q\n%s", s.code, s.order(), rest, words[:len(words)-len(rest)], s.stderr)
	}
}

// skillText is a skill of one file: the text of its SKILL.md.
func skillText(name, description, fields, body string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n%s---\n%s\n", name, description, fields, body)
}

// speak is a turn of a model that says something, and wants calls.
func speak(text string, calls ...llm.Call) llmtest.Turn {
	t := llmtest.Turn{Calls: calls, Usage: llm.Usage{Input: 100, Output: 10}}
	if text != "" {
		t.Text = []string{text}
	}
	return t
}

// calling is a call of a tool, with pairs of names and values as its arguments.
func calling(id, tool string, args ...any) llm.Call {
	m := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		m[args[i].(string)] = args[i+1]
	}
	return llm.Call{ID: id, Name: tool, Arguments: jsonOf(m)}
}

// through is a call of a tool of a server.
func through(id, tool string, args ...any) llm.Call {
	inner := calling(id, tool, args...)
	return calling(id, "call_tool", "name", tool, "arguments", json.RawMessage(inner.Arguments))
}

// told returns the results of calls in the last request, by call ID.
func (p *someone) told() map[string]string {
	p.t.Helper()
	bodies := p.server.Bodies()
	return resultsIn(p.t, bodies[len(bodies)-1])
}

// resultsIn are the results of calls that a request has.
func resultsIn(t *testing.T, body []byte) map[string]string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, key := range []string{"tool_use_id", "tool_call_id"} {
				if id, ok := v[key].(string); ok {
					out[id] = wordsIn(v["content"])
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return out
}

// wordsIn are the texts of a content, which is a text or blocks of them.
func wordsIn(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	var out []string
	blocks, _ := content.([]any)
	for _, b := range blocks {
		if text, ok := b.(map[string]any)["text"].(string); ok {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

// tells checks that the results of calls contain all of the parts, except those that
// begin with !.
func (p *someone) tells(id string, parts ...string) {
	p.t.Helper()
	text, ok := p.told()[id]
	if !ok {
		p.t.Errorf("the model got nothing of call %s", id)
	}
	for _, part := range parts {
		part, not := strings.CutPrefix(part, "!")
		if strings.Contains(text, part) == not {
			p.t.Errorf("of call %s the model got\n%s\nwhere %q is %s", id, text, part, map[bool]string{true: "wrong", false: "missing"}[not])
		}
	}
}

// lastBody is the last request.
func (p *someone) lastBody() string {
	bodies := p.server.Bodies()
	return string(bodies[len(bodies)-1])
}

// onlyGrows checks that each request begins with the previous one, except at the given
// positions, and that the tools of all requests are the same bytes.
func (p *someone) onlyGrows(but ...int) {
	p.t.Helper()
	prompts := p.server.Prompts()
	for i := range prompts[1:] {
		before, after := prompts[i], prompts[i+1]
		grows := len(before) < len(after) && reflect.DeepEqual(before, after[:len(before)])
		if grows == slices.Contains(but, i+1) {
			p.t.Errorf("request %d begins with the one before: %v", i+1, grows)
			for j := range before {
				if j >= len(after) || !reflect.DeepEqual(before[j], after[j]) {
					p.t.Logf("part %d was\n%s\nand is\n%s", j, terminal.Clip(jsonOf(before[j]), 600), terminal.Clip(jsonOf(after[min(j, len(after)-1)]), 600))
					break
				}
			}
		}
	}
	var first json.RawMessage
	for i, body := range p.server.Bodies() {
		var r struct{ Tools json.RawMessage }
		if err := json.Unmarshal(body, &r); err != nil {
			p.t.Fatal(err)
		}
		if i == 0 {
			first = r.Tools
		}
		if len(r.Tools) == 0 || !bytes.Equal(first, r.Tools) {
			p.t.Errorf("the tools of request %d are others than those of the first:\n%s\n%s", i, r.Tools, first)
		}
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for range 3000 {
		if so() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: it does not come to it", what)
}
