package assembly_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// A test binary is a stage too, but with -race it needs more memory than a sandbox
// allows its first process.
func TestMain(m *testing.M) {
	var exe string // is in the environment too
	code := stagetest.Run(func() int { return storetest.Main(m) }, &exe)
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func backend() sandbox.Backend {
	return native.New(&native.Options{Stage: os.Getenv(stagetest.Variable)})
}

var usableServers = sync.OnceValue(func() error {
	_, err := backend().Probe(context.Background())
	return err
})

// sandboxed gives a fixture a sandbox, where this machine has one.
func sandboxed(t testing.TB) func(*assembly.Options) {
	t.Helper()
	if err := usableServers(); err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
	return func(o *assembly.Options) { o.Sandbox, o.Getenv = backend(), os.Getenv }
}

// fixture is a node of a hub with users: in the group team, meg is a maintainer, ada a
// developer and bob a reporter; eve is in no group, and root is an admin.
type fixture struct {
	t     testing.TB
	db    *store.DB
	lib   *library.Library
	kinds *agents.Registry
	kits  *assembly.Assembler
	chat  *chat.Engine
	model *script // of the hub

	ada, bob, meg, eve, root account.Principal
	people                   map[account.UserID]account.Principal
	team                     store.Namespace
}

func newFixture(t testing.TB, db *store.DB, change ...func(*assembly.Options)) *fixture {
	t.Helper()
	w := &fixture{t: t, db: db, people: map[account.UserID]account.Principal{}, model: &script{answer: echo}}
	var err error
	w.lib, err = library.New(db, &library.Options{TempDir: t.TempDir(), CacheDir: t.TempDir()})
	must(t, err)
	sealer, err := encryption.New(encryption.NewKey())
	must(t, err)
	local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w.kinds = agents.New(db, &agents.Options{Cipher: sealer, Private: local, Poll: 20 * time.Millisecond})
	o := assembly.Options{DB: db, Library: w.lib, Agents: w.kinds, Dir: t.TempDir(), PrivateNetworks: local, Version: "test",
		StopTurn: func(id, reason string) {
			w.chat.StopTurns(func(c chat.Conversation) bool { return c.ID == id }, reason)
		},
		Model: func(c *agents.ModelChoice, key string) (llm.Model, error) {
			if c == nil {
				return w.model, nil
			}
			return &script{name: c.Name + " " + key, answer: w.model.answer}, nil
		},
	}
	for _, f := range change {
		f(&o)
	}
	w.kits = assembly.New(o)
	w.chat = w.newChat(nil)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.kinds.Run(ctx) })
	running.Go(func() { _ = w.lib.Run(ctx) })
	t.Cleanup(func() {
		at, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must(t, w.chat.Close(at))
		must(t, w.kits.Close())
		stop()
		running.Wait()
		must(t, w.lib.Close())
	})
	w.settle()
	return w
}

// newChat returns an engine for the conversations. change may be nil.
func (w *fixture) newChat(change func(*chat.Options)) *chat.Engine {
	o := chat.Options{Setup: w.kits.ChatSetup, Dir: w.t.TempDir(), Poll: 10 * time.Millisecond,
		Principal: func(_ context.Context, u account.UserID) (account.Principal, error) { return w.people[u], nil }}
	if change != nil {
		change(&o)
	}
	return chat.New(w.db, o)
}

func sqlite(t testing.TB, change ...func(*assembly.Options)) *fixture {
	t.Helper()
	return newFixture(t, storetest.Open(t, storetest.SQLite(t)), change...)
}

// settle creates the users.
func (w *fixture) settle() {
	w.t.Helper()
	ctx := w.t.Context()
	g, err := w.db.Groups.Create(ctx, store.Group{Name: "team"})
	must(w.t, err)
	w.team = store.GroupNamespace(g.ID)
	person := func(name string, role account.Role) account.Principal {
		u, err := w.db.Users.Create(ctx, store.User{Name: name, Admin: name == "root"})
		must(w.t, err)
		p := account.Principal{User: account.UserID(u.ID), Name: name, Admin: name == "root", Scopes: account.AllScopes, Groups: map[account.GroupID]account.Role{}}
		if role != account.Outsider {
			p.Groups[account.GroupID(g.ID)] = role
			must(w.t, w.db.Groups.SetMember(ctx, store.Member{GroupID: g.ID, UserID: u.ID, Role: store.Role(role.String())}))
		}
		w.people[p.User] = p
		return p
	}
	w.ada, w.bob, w.meg = person("ada", account.Developer), person("bob", account.Reporter), person("meg", account.Maintainer)
	w.eve, w.root = person("eve", account.Outsider), person("root", account.Outsider)
}

func own(p account.Principal) store.Namespace { return store.UserNamespace(string(p.User)) }

// tree is a skill: its frontmatter without the name, its body, and files by path.
func tree(name, front, body string, more ...string) fstest.MapFS {
	if front == "" {
		front = "description: Does what " + name + " does."
	}
	out := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: " + name + "\n" + front + "\n---\n" + body + "\n")}}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return out
}

// upload adds a skill.
func (w *fixture) upload(p account.Principal, in store.Namespace, name string, files fstest.MapFS) *library.Skill {
	w.t.Helper()
	s, err := w.lib.Upload(w.t.Context(), p, in, w.pack(name, files))
	must(w.t, err)
	return s
}

func (w *fixture) pack(name string, files fstest.MapFS) library.Package {
	w.t.Helper()
	var out bytes.Buffer
	_, _, err := skill.WriteZIP(&out, files, name)
	must(w.t, err)
	return library.Package{FileName: name + ".zip", Data: &out}
}

// review decides about the current version of a skill.
func (w *fixture) review(s *library.Skill, r library.Review) {
	w.t.Helper()
	must(w.t, w.lib.ReviewVersion(w.t.Context(), w.root, s.ID, library.Decision{Digest: s.Digest, Review: r}))
}

// apply applies documents, none of which may be refused.
func (w *fixture) apply(p account.Principal, yaml string) {
	w.t.Helper()
	result, err := w.kinds.Apply(w.t.Context(), p, agents.Parse([]byte(yaml), "a.yaml"), false)
	must(w.t, err)
	if !result.Committed {
		w.t.Fatalf("it was not kept: %+v", result.Changes)
	}
}

// open opens a kit.
func (w *fixture) open(want assembly.Request) *assembly.Setup {
	w.t.Helper()
	k, err := w.kits.Open(w.t.Context(), want)
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, k.Close()) })
	return k
}

// begin begins a conversation.
func (w *fixture) begin(p account.Principal, agent string) string {
	w.t.Helper()
	c, err := w.chat.Create(w.t.Context(), p, agent, "")
	must(w.t, err)
	return c.ID
}

// say sends a message and returns its events up to the end of the turn.
func (w *fixture) say(p account.Principal, id, text string, also ...func(chat.Event)) []chat.Event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	in, err := w.chat.SendMessage(ctx, p, id, chat.Message{Text: text})
	must(w.t, err)
	var out []chat.Event
	for ev, err := range w.chat.WatchAsClient(ctx, p, id, 0) {
		if err != nil {
			w.t.Fatalf("%v after %+v", err, out)
		}
		if out = append(out, ev); ev.Type == chat.TurnEnded && ev.Input == in {
			break
		}
		for _, f := range also {
			f(ev)
		}
	}
	return out
}

// answer returns the last text of the model, and the reason if the turn failed.
func answer(events []chat.Event) string {
	end := events[len(events)-1]
	if end.Reason != chat.Done {
		return string(end.Reason) + ": " + end.Text
	}
	for _, e := range slices.Backward(events) {
		if e.Step != nil && e.Step.Message != nil && e.Step.Message.Text != "" {
			return e.Step.Message.Text
		}
	}
	return ""
}

// ask sends a message and requires a text in the response.
func (w *fixture) ask(p account.Principal, id, text string, want ...string) string {
	w.t.Helper()
	got := answer(w.say(p, id, text))
	for _, text := range want {
		if !strings.Contains(got, text) {
			w.t.Errorf("it answers %q, want %q", got, text)
		}
	}
	return got
}

// script is a model that answers as a function says.
type script struct {
	name   string
	answer func(ctx context.Context, m *script, r *llm.Request) (*llm.Answer, error)

	mu       sync.Mutex
	requests []*llm.Request
}

func (s *script) Name() string {
	if s.name == "" {
		return "script"
	}
	return s.name
}

// Stream implements [llm.Model].
func (s *script) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	return func(yield func(llm.Event, error) bool) {
		a, err := s.answer(ctx, s, r)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(llm.Done{Answer: *a}, nil)
	}
}

// last is the request that was made last.
func (s *script) last() *llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

func says(text string) *llm.Answer {
	return &llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text(text)}}, Stop: llm.StopEnd}
}

var callNumber = struct {
	sync.Mutex
	n int
}{}

func calls(name string, args json.RawMessage) *llm.Answer {
	callNumber.Lock()
	defer callNumber.Unlock()
	callNumber.n++
	return &llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Call{ID: fmt.Sprintf("call_%d", callNumber.n), Name: name, Arguments: string(args)}}}, Stop: llm.StopTools}
}

// blocking answers when its context ends.
func blocking(started chan<- struct{}) func(context.Context, *script, *llm.Request) (*llm.Answer, error) {
	return func(ctx context.Context, _ *script, _ *llm.Request) (*llm.Answer, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
}

// echo is a model. For lines of "call NAME ARGS" it calls these tools one after another
// and returns the last result. It repeats any other message.
func echo(_ context.Context, m *script, r *llm.Request) (*llm.Answer, error) {
	var said string
	var results []string
	for _, msg := range r.Messages {
		if msg.Role == llm.User && msg.Text() != "" {
			said, results = msg.Text(), nil
		}
		for _, p := range msg.Parts {
			if res, ok := p.(llm.Result); ok {
				results = append(results, words(res.Parts))
			}
		}
	}
	lines := strings.Split(said, "\n")
	if !strings.HasPrefix(lines[0], "call ") {
		return says(m.Name() + " heard: " + said), nil
	}
	if len(results) == len(lines) {
		return says("result: " + results[len(results)-1]), nil
	}
	name, args, _ := strings.Cut(strings.TrimPrefix(lines[len(results)], "call "), " ")
	if args == "" {
		args = "{}"
	}
	return calls(name, json.RawMessage(args)), nil
}

func words(parts []llm.Part) string {
	var out []string
	for _, p := range parts {
		if t, ok := p.(llm.Text); ok {
			out = append(out, string(t))
		}
	}
	return strings.Join(out, "\n")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
