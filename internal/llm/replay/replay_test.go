package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/llm/llmtest"
	"github.com/loadout-dev/loadout/internal/llm/replay"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is a model with a fixed response.
type told struct {
	name   string
	events []llm.Event
	answer llm.Answer
	err    error
}

func (m *told) Name() string { return m.name }

func (m *told) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for _, e := range m.events {
			if !yield(e, nil) {
				return
			}
		}
		if m.err != nil {
			yield(nil, m.err)
			return
		}
		yield(llm.Done{Answer: m.answer}, nil)
	}
}

func says(words string) *told {
	return &told{name: "some:model", events: []llm.Event{llm.TextDelta(words)},
		answer: llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text(words)}}, Stop: llm.StopEnd, Usage: llm.Usage{Input: 7, Output: 2}}}
}

// stream is all that comes back.
func stream(ctx context.Context, m llm.Model, r *llm.Request) (events []llm.Event, err error) {
	for e, wrong := range m.Stream(ctx, r) {
		if wrong != nil {
			return events, wrong
		}
		events = append(events, e)
	}
	return events, nil
}

func record(t testing.TB, m llm.Model, dir string, o *replay.Options) *replay.Recorder {
	t.Helper()
	r, err := replay.Record(m, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func open(t testing.TB, dir string) *replay.Model {
	t.Helper()
	m, err := replay.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func question(words ...string) *llm.Request {
	r := &llm.Request{Instructions: "Answer briefly.", Tools: []llm.Tool{{Name: "weather", Description: "The weather <of> a place.", InputSchema: json.RawMessage(`{"type": "object"}`)}}, MaxTokens: 100}
	for i, w := range words {
		role := llm.User
		if i%2 == 1 {
			role = llm.Assistant
		}
		r.Messages = append(r.Messages, llm.Message{Role: role, Parts: []llm.Part{llm.Text(w)}})
	}
	return r
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A model that is recorded does all that a model does.
func TestRecordingKeepsResponses(t *testing.T) {
	v := llmtest.Anthropic()
	v.Open = func(url string, client *http.Client) (llm.Model, error) {
		m, err := anthropic.New("claude-opus-5", &anthropic.Options{Key: llmtest.Key, BaseURL: url, HTTP: client})
		if err != nil {
			return nil, err
		}
		return replay.Record(m, t.TempDir(), &replay.Options{Secrets: []string{llmtest.Key}})
	}
	llmtest.Run(t, v)
}

// A replay has the recorded events, response, error and model name.
func TestReplayEqualsRecording(t *testing.T) {
	rome := llm.Call{ID: "call_1", Name: "weather", Arguments: `{"place": "Rome"}`}
	half := llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text("It is")}}}
	for name, m := range map[string]*told{
		"text": says("It is <sunny> ☀."),
		"thinking and calls": {name: "some:model",
			events: []llm.Event{llm.ThinkingDelta("Rome."), llm.CallDelta{ID: "call_1", Name: "weather"}, llm.CallDelta{Arguments: `{"place": "Rome"}`}, llm.CallDelta{Index: 1, ID: "call_2"}},
			answer: llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Thinking{Vendor: "some", Text: "Rome.", Signature: "c2ln"}, rome}}, Stop: llm.StopTools, Usage: llm.Usage{CacheRead: 5, CacheWrite: 6}, Model: "model-2"}},
		"nothing":            {name: "some:model", answer: llm.Answer{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopEnd}},
		"cut for a reason":   {name: "some:model", events: []llm.Event{llm.TextDelta("It is")}, err: &llm.CutError{Answer: half, Err: errors.New("connection reset")}},
		"cut without reason": {name: "some:model", events: []llm.Event{llm.TextDelta("It is")}, err: &llm.CutError{Answer: half}},
		"refused":            {name: "some:model", err: &llm.StatusError{Vendor: "some", Code: 429, Kind: "slow_down", Message: "wait", After: 17 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new")
			want, wantErr := stream(t.Context(), m, question("Rome?"))
			got, gotErr := stream(t.Context(), record(t, m, dir, nil), question("Rome?"))
			commonItems(t, "recorded", got, want, gotErr, wantErr)
			again := open(t, dir)
			if again.Name() != "some:model" {
				t.Errorf("it is named %s", again.Name())
			}
			got, gotErr = stream(t.Context(), again, question("Rome?"))
			commonItems(t, "replayed", got, want, gotErr, wantErr)
			for _, f := range files(t, dir) {
				if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v %v", f, info.Mode(), err)
				}
			}
		})
	}
}

func commonItems(t *testing.T, what string, got, want []llm.Event, gotErr, wantErr error) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
	text := func(err error) string { return fmt.Sprintf("%T %v", err, err) }
	if text(gotErr) != text(wantErr) {
		t.Errorf("%s: error %s, want %s", what, text(gotErr), text(wantErr))
	}
}

// The conversation of the demonstration, whose requests hold what came before, is the
// same without it.
func TestConversationIsReplayed(t *testing.T) {
	dir := t.TempDir()
	talk := func(m llm.Model) (said []llm.Message) {
		r := question("Which skills are there?")
		r.Tools = append(r.Tools, llm.Tool{Name: "search_skills"})
		for range 2 {
			a, err := llm.Ask(t.Context(), m, r, nil)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, a.Message)
			r.Messages = append(r.Messages, a.Message)
			for _, c := range a.Calls() {
				r.Messages = append(r.Messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Result{Call: c.ID, Parts: []llm.Part{llm.Text("- tides: Reads tide tables.")}}}})
			}
		}
		return said
	}
	want := talk(record(t, demo.New(nil), dir, nil))
	if got := talk(open(t, dir)); !cmp.Equal(want, got) || len(files(t, dir)) != 2 {
		t.Errorf("%d files, got\n%v\nwant\n%v", len(files(t, dir)), got, want)
	}
}

// The error for an unrecorded request shows where it differs from the most similar one.
func TestUnknownRequest(t *testing.T) {
	dir := t.TempDir()
	for _, words := range [][]string{{"Rome?"}, {"Oslo?"}, {"Oslo?", "It is sunny in Oslo.", "And tomorrow?"}} {
		if _, err := stream(t.Context(), record(t, says("Sunny."), dir, nil), question(words...)); err != nil {
			t.Fatal(err)
		}
	}
	other := func(change func(*llm.Request)) *llm.Request {
		r := question("Oslo?", "It is sunny in Oslo.", "And tomorrow?")
		change(r)
		return r
	}
	for _, tt := range []struct {
		name, where, recorded, asked string
		r                            *llm.Request
	}{
		{"a word", "message 3 (user)", "tomorrow", "yesterday", question("Oslo?", "It is sunny in Oslo.", "And yesterday?")},
		{"two are as near", "message 1 (user)", "Oslo", "Paris", question("Paris?")},
		{"an earlier word", "message 2 (assistant)", "sunny", "rainy", question("Oslo?", "It is rainy in Oslo.", "And tomorrow?")},
		{"it goes on", "message 4 (assistant)", "nothing", "Rain", question("Oslo?", "It is sunny in Oslo.", "And tomorrow?", "Rain.")},
		{"it ends before", "message 3 (user)", "tomorrow", "nothing", question("Oslo?", "It is sunny in Oslo.")},
		{"the beginning", "message 1 (user)", "Rome", "Riga", question("Riga?")},
		{"another role", "message 3 (notice)", "user", "notice", other(func(r *llm.Request) { r.Messages[2].Role = llm.Notice })},
		{"instructions", "the instructions", "briefly", "at length", other(func(r *llm.Request) { r.Instructions = "Answer at length." })},
		{"a tool", "tool 1", "of", "in", other(func(r *llm.Request) { r.Tools[0].Description = "The weather <in> a place." })},
		{"one tool more", "tool 2", "nothing", "clock", other(func(r *llm.Request) { r.Tools = append(r.Tools, llm.Tool{Name: "clock"}) })},
		{"a limit", "the limits", "max_tokens 100", "max_tokens 7", other(func(r *llm.Request) { r.MaxTokens = 7 })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events, err := stream(t.Context(), open(t, dir), tt.r)
			unknown, ok := errors.AsType[*replay.UnknownError](err)
			if !ok || len(events) > 0 {
				t.Fatalf("got %v, %v", events, err)
			}
			if unknown.Where != tt.where || !strings.Contains(unknown.Recorded, tt.recorded) || !strings.Contains(unknown.Requested, tt.asked) {
				t.Errorf("it says: %v", err)
			}
			if digest, err := replay.Digest(tt.r); err != nil || digest != unknown.Digest {
				t.Errorf("digest %s, %v; the error has %s", digest, err, unknown.Digest)
			}
		})
	}
}

// Schemas that differ in blanks alone are the same, as a vendor is sent the same.
func TestSchemaWhitespaceIsIgnored(t *testing.T) {
	a, b := question("Rome?"), question("Rome?")
	b.Tools[0].InputSchema = json.RawMessage("{\n  \"type\":\"object\"}")
	x, err1 := replay.Digest(a)
	y, err2 := replay.Digest(b)
	if x != y || err1 != nil || err2 != nil {
		t.Errorf("%s, %s; %v, %v", x, y, err1, err2)
	}
	b.Tools[0].InputSchema = json.RawMessage("{")
	if _, err := replay.Digest(b); err == nil || !strings.Contains(err.Error(), "weather") {
		t.Errorf("for a schema that is no JSON got %v", err)
	}
}

// Only complete responses are recorded.
func TestUnrecordedResponses(t *testing.T) {
	for name, play := range map[string]func(ctx context.Context, dir string){
		"its consumer stops": func(ctx context.Context, dir string) {
			for range record(t, says("Sunny."), dir, nil).Stream(ctx, question("Rome?")) {
				break
			}
		},
		"ctx ends": func(ctx context.Context, dir string) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			for range record(t, demo.New(nil), dir, nil).Stream(ctx, question("Hello")) {
				cancel()
			}
		},
		"not reached": func(ctx context.Context, dir string) {
			m := &told{name: "some:model", err: errors.New("no route to host")}
			if _, err := stream(ctx, record(t, m, dir, nil), question("Rome?")); err == nil || err.Error() != "no route to host" {
				t.Errorf("got %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			play(t.Context(), dir)
			if all := files(t, dir); len(all) > 0 {
				t.Errorf("there are %v", all)
			}
			if _, err := replay.Open(dir); err == nil || !strings.Contains(err.Error(), "no recordings found") {
				t.Errorf("opening returned %v", err)
			}
		})
	}
}

// The newest response to a request wins, so that a retry replaces a refusal.
func TestNewestRecordingWins(t *testing.T) {
	dir := t.TempDir()
	for _, m := range []*told{{name: "some:model", err: &llm.StatusError{Vendor: "some", Code: 503}}, says("Sunny."), says("Rainy.")} {
		_, _ = stream(t.Context(), record(t, m, dir, nil), question("Rome?"))
	}
	a, err := llm.Ask(t.Context(), open(t, dir), question("Rome?"), nil)
	if err != nil || a.Message.Text() != "Rainy." || len(files(t, dir)) != 1 {
		t.Errorf("%v, %v, files %v", a, err, files(t, dir))
	}
}

// Many may record at once, also into one directory by two recorders.
func TestConcurrentRecording(t *testing.T) {
	dir := t.TempDir()
	two := []*replay.Recorder{record(t, says("Sunny."), dir, nil), record(t, says("Sunny."), dir, nil)}
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			if _, err := stream(t.Context(), two[i%2], question(fmt.Sprint("Place ", i/4, "?"))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	m := open(t, dir)
	for i := range 8 {
		if _, err := stream(t.Context(), m, question(fmt.Sprint("Place ", i, "?"))); err != nil {
			t.Error(err)
		}
	}
	if n := len(files(t, dir)); n != 8 {
		t.Errorf("there are %d files", n)
	}
}

func TestRecordingsContainNoKey(t *testing.T) {
	const key = "sk-replay-0123456789/\"quoted\""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			t.Error("the key did not reach the vendor")
		}
		w.WriteHeader(http.StatusUnauthorized)
		msg, _ := json.Marshal(map[string]any{"error": map[string]any{"message": "no such key: " + key}})
		w.Write(msg)
	}))
	defer server.Close()
	m, err := openai.New("small", &openai.Options{Key: key, BaseURL: server.URL + "/v1", HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := stream(t.Context(), record(t, m, dir, nil), question("Rome?")); !errors.As(err, new(*llm.StatusError)) {
		t.Fatal(err)
	}
	if len(files(t, dir)) != 1 {
		t.Errorf("files %v", files(t, dir))
	}
	for _, f := range files(t, dir) {
		if data, err := os.ReadFile(f); err != nil || strings.Contains(string(data), "0123456789") {
			t.Errorf("%v, %s", err, data)
		}
	}

	said := says("Your key is " + key)
	dir = t.TempDir()
	_, err = stream(t.Context(), record(t, said, dir, &replay.Options{Secrets: []string{key, "sun"}}), question("My key?"))
	if cut := (*llm.CutError)(nil); !errors.As(err, &cut) || cut.Answer.Message.Text() != said.answer.Message.Text() || !strings.Contains(err.Error(), "conversation contains a secret") || strings.Contains(cut.Err.Error(), key) {
		t.Errorf("got %v", err)
	}
	if all := files(t, dir); len(all) > 0 {
		t.Errorf("there are %v", all)
	}
}

// Damage to a directory is an error, and nothing is replayed.
func TestBrokenRecordings(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		edit       func(text string) string
	}{
		{"an edited request", "request changed", func(s string) string { return strings.Replace(s, "Rome?", "Oslo?", 1) }},
		{"no JSON", "unexpected", func(s string) string { return s[:len(s)/2] }},
		{"an unknown field", "unknown field", func(s string) string { return strings.Replace(s, `"stop"`, `"stopped"`, 1) }},
		{"two values", "after the recording", func(s string) string { return s + "{}" }},
		{"no model", "want vendor:name", func(s string) string { return strings.Replace(s, "some:model", "model", 1) }},
		{"a part of nothing", "must have exactly one", func(s string) string { return strings.Replace(s, `"text": "Rome?"`, ``, 1) }},
		{"an event of nothing", "must have exactly one", func(s string) string { return strings.Replace(s, `"text": "Sunny."`, ``, 1) }},
		{"another role", "role", func(s string) string { return strings.Replace(s, `"role": "user"`, `"role": "system"`, 1) }},
		{"no answer", "exactly one of answer", func(string) string { return `{"model": "some:model", "request": {}}` }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := stream(t.Context(), record(t, says("Sunny."), dir, nil), question("Rome?")); err != nil {
				t.Fatal(err)
			}
			file := files(t, dir)[0]
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.edit(string(data))), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := replay.Open(dir); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), filepath.Base(file)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// An answer may be edited, and other files may lie beside.
func TestRecordingMayBeEdited(t *testing.T) {
	dir := t.TempDir()
	if _, err := stream(t.Context(), record(t, says("Sunny."), dir, nil), question("Rome?")); err != nil {
		t.Fatal(err)
	}
	file := files(t, dir)[0]
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(file, []byte(strings.ReplaceAll(string(data), "Sunny", "Rainy")), 0o600),
		os.WriteFile(filepath.Join(dir, "README.md"), []byte("not a recording"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := llm.Ask(t.Context(), open(t, dir), question("Rome?"), nil); err != nil || a.Message.Text() != "Rainy." {
		t.Errorf("%v, %v", a, err)
	}
}

// A directory has recordings of one model.
func TestOneModelPerDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := stream(t.Context(), record(t, says("Sunny."), dir, nil), question("Rome?")); err != nil {
		t.Fatal(err)
	}
	if _, err := replay.Record(demo.New(nil), dir, nil); err == nil || !strings.Contains(err.Error(), "of some:model, not demo:rules") {
		t.Errorf("recording another one returned %v", err)
	}
	if _, err := replay.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening a directory that is missing returned %v", err)
	}
}

// A link in a directory of recordings leads nowhere outside.
func TestSymlinkOutOfDirectoryIsNotFollowed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if _, err := stream(t.Context(), record(t, says("Sunny."), outside, nil), question("Rome?")); err != nil {
		t.Fatal(err)
	}
	file := files(t, outside)[0]
	if err := os.Symlink(file, filepath.Join(dir, filepath.Base(file))); err != nil {
		t.Skip(err)
	}
	if _, err := replay.Open(dir); err == nil {
		t.Error("it is read")
	}
}
