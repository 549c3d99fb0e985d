package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

func TestMain(m *testing.M) {
	if id := os.Getenv(childEnv + "_TALKS"); id != "" {
		os.Exit(talkingChild(os.Getenv(childEnv), id))
	}
	if address := os.Getenv(childEnv); address != "" {
		os.Exit(child(address))
	}
	code := storetest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

var (
	ada   = account.Principal{User: "ada", Name: "ada", Scopes: account.AllScopes}
	bob   = account.Principal{User: "bob", Name: "bob", Scopes: account.AllScopes}
	admin = account.Principal{User: "eve", Name: "eve", Admin: true, Scopes: account.AllScopes}
)

// skills lists the skills that all conversations may load.
var skills = fstest.MapFS{
	"tides/SKILL.md":   {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nAdd one hour in summer.\n")},
	"ships/SKILL.md":   {Data: []byte("---\nname: ships\ndescription: Knows ships.\n---\nShips are long.\n")},
	"harbour/SKILL.md": {Data: []byte("---\nname: harbour\ndescription: Knows the harbour.\ndependencies: [tides]\n---\nAsk the master.\n")},
}

// model answers as a function says. It is asked about the whole conversation.
type model func(ctx context.Context, r *llm.Request) (*llm.Answer, error)

func (model) Name() string { return "script:1" }

func (m model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a, err := m(ctx, r)
		if err != nil {
			yield(nil, err)
			return
		}
		for word := range strings.SplitAfterSeq(a.Message.Text(), " ") {
			if word != "" && !yield(llm.TextDelta(word), nil) {
				return
			}
		}
		yield(llm.Done{Answer: *a}, nil)
	}
}

func says(text string) *llm.Answer {
	return &llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text(text)}}, Stop: llm.StopEnd, Usage: llm.Usage{Input: 10, Output: 2}}
}

func calls(name string, args any) *llm.Answer {
	data, _ := json.Marshal(args)
	return &llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Call{ID: "call_" + name, Name: name, Arguments: string(data)}}}, Stop: llm.StopTools}
}

// echo is a model. For "call NAME ARGS" it calls a tool once. It repeats any other
// message.
func echo(_ context.Context, r *llm.Request) (*llm.Answer, error) {
	last := r.Messages[len(r.Messages)-1]
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != llm.Notice {
			last = m
			break
		}
	}
	for _, p := range last.Parts {
		if res, ok := p.(llm.Result); ok {
			return says("result: " + firstText(res.Parts)), nil
		}
	}
	text := last.Text()
	if rest, ok := strings.CutPrefix(text, "call "); ok {
		name, args, _ := strings.Cut(rest, " ")
		if args == "" {
			args = "{}"
		}
		return calls(name, json.RawMessage(args)), nil
	}
	return says("you said: " + text), nil
}

func firstText(parts []llm.Part) string {
	for _, p := range parts {
		if t, ok := p.(llm.Text); ok {
			return string(t)
		}
	}
	return ""
}

// setupFixture is the setup of a node's conversations.
type setupFixture struct {
	model   llm.Model
	tools   func(t *chat.ToolContext) []agent.Tool
	preload []string
	skillID func(name string) string
	blind   bool // whether the model does not read images
}

// setup makes conversations of a kit, with real runtimes.
func (k setupFixture) setup(ctx context.Context, r chat.Request) (*chat.Setup, error) {
	if k.model == nil {
		k.model = model(echo)
	}
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, skills)}})
	if err != nil {
		return nil, err
	}
	s := &chat.Setup{Runtime: rt, Model: k.model, ReadsImages: !k.blind, Preload: k.preload, Close: rt.Close, Agent: agent.Options{Instructions: "Help " + string(r.Principal.User) + "."}}
	if k.tools != nil {
		s.Tools = func(_ context.Context, t *chat.ToolContext) ([]agent.Tool, error) { return k.tools(t), nil }
	}
	if k.skillID != nil {
		s.SkillID = skillIDs(k.skillID)
	}
	return s, nil
}

// node is an engine with its own database and bus, unless the test provides them.
func node(t testing.TB, db *store.DB, k setupFixture, change ...func(*chat.Options)) *chat.Engine {
	t.Helper()
	o := chat.Options{Setup: k.setup, Principal: principals, Bus: bus.New(), Poll: 10 * time.Millisecond, Lease: time.Minute, ClientTimeout: time.Minute, Dir: t.TempDir()}
	for _, f := range change {
		f(&o)
	}
	e := chat.New(db, o)
	t.Cleanup(func() { closeNode(t, e) })
	return e
}

// mortal has the lease of a node that dies run out soon.
func mortal(o *chat.Options) { o.Lease = 3 * time.Second }

func closeNode(t testing.TB, e *chat.Engine) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Close(ctx); err != nil {
		t.Error(err)
	}
}

func principals(_ context.Context, u account.UserID) (account.Principal, error) {
	if u == "gone" {
		return account.Principal{}, errors.New("there is no such user")
	}
	return account.Principal{User: u, Name: string(u), Scopes: account.AllScopes}, nil
}

// databases lists the kinds of databases for tests, with functions that return the
// address of a new one.
var databases = map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres}

// eachDatabase runs a test on both databases: open gives another node's handle.
func eachDatabase(t *testing.T, test func(t *testing.T, open func() *store.DB)) {
	for name, address := range databases {
		t.Run(name, func(t *testing.T) {
			at := address(t)
			test(t, func() *store.DB { return openAt(t, at) })
		})
	}
}

// openAt opens a database that a test may close by itself.
func openAt(t testing.TB, address string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func begin(t testing.TB, e *chat.Engine) string {
	t.Helper()
	c, err := e.Create(t.Context(), ada, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

func say(t testing.TB, e *chat.Engine, id, text string) int64 {
	t.Helper()
	n, err := e.SendMessage(t.Context(), ada, id, chat.Message{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// until watches from a number to a matching event, and returns all events up to it.
func until(t testing.TB, e *chat.Engine, id string, after int64, is func(chat.Event) bool) []chat.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var out []chat.Event
	for ev, err := range e.WatchAsClient(ctx, ada, id, after) {
		if err != nil {
			t.Fatalf("%v after %s", err, isReported(out))
		}
		if out = append(out, ev); is(ev) {
			break
		}
	}
	return out
}

// end waits for the end of an input and returns how it ended.
func end(t testing.TB, e *chat.Engine, id string, in int64) chat.Event {
	t.Helper()
	all := until(t, e, id, 0, func(ev chat.Event) bool { return ev.Type == chat.TurnEnded && ev.Input == in })
	return all[len(all)-1]
}

// isType is a condition for until.
func isType(want chat.Type) func(chat.Event) bool {
	return func(ev chat.Event) bool { return ev.Type == want }
}

// isReported returns events in short form: steps by subject, and text deltas joined.
func isReported(events []chat.Event) string {
	var out []string
	for _, e := range events {
		s := string(e.Type)
		switch {
		case e.Type == chat.Text || e.Type == chat.Thinking:
			if n := len(out) - 1; n >= 0 && strings.HasPrefix(out[n], "text ") {
				out[n] += e.Text
				continue
			}
			s = "text " + e.Text
		case e.Step != nil:
			s = e.Step.Type
			if m := e.Step.Message; m != nil {
				s = string(m.Role)
			}
		case e.Type == chat.TurnEnded:
			s = string(e.Reason)
		case e.Answer != nil:
			s = string(e.Answer.Outcome)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// transcript returns the transcript in short form.
func transcript(t testing.TB, e *chat.Engine, id string) string {
	t.Helper()
	h, err := e.History(t.Context(), ada, id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range h.Messages {
		out = append(out, fmt.Sprintf("%s: %s", l.Role, l.Text))
	}
	return strings.Join(out, "\n")
}

// tool is a tool of a test.
func tool(name string, call func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error)) agent.Tool {
	return agent.Tool{Tool: llm.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, Call: call}
}

// counter counts calls, of all nodes of a test.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

func (c *counter) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
