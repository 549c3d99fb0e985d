package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// shelf is a server with a tool that changes data and a destructive one. It
// records the arguments of its calls.
type shelf struct {
	mu     sync.Mutex
	called []string
	texts  map[string]string // results by book
}

func (s *shelf) server() *mcp.Server {
	yes := true
	srv := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
	add := func(name string, a *mcp.ToolAnnotations) {
		mcp.AddTool(srv, &mcp.Tool{Name: name, Annotations: a}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Book string `json:"book"`
		}) (*mcp.CallToolResult, any, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.called = append(s.called, name+" "+in.Book)
			text := s.texts[in.Book]
			if text == "" {
				text = "ok " + in.Book
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
	}
	add("put", &mcp.ToolAnnotations{DestructiveHint: new(bool)})
	add("burn", &mcp.ToolAnnotations{DestructiveHint: &yes})
	add("look", &mcp.ToolAnnotations{ReadOnlyHint: true})
	return srv
}

// library is a conversation whose agent calls the tools of a shelf with the
// user's approval.
type library struct {
	*talk
	rt        *loadout.Runtime
	skills    fstest.MapFS
	set       *tools.Set
	approvals policy.Store // of skills
	shelf     *shelf
	desk      *approval.Queue
	asked     []loadout.CallRequest
	answer    func(approval.Request) *approval.Answer // returns nil to leave the request open
}

var ann = policy.Principal{ID: "ann", Kind: policy.UserPrincipal}

func newLibrary(t *testing.T, log session.Log, store approval.Store, grants policy.Store, answer func(approval.Request) *approval.Answer, more ...catalog.Source) *library {
	t.Helper()
	l := &library{shelf: &shelf{}, desk: approval.NewQueue(store), answer: answer}
	skills := fstest.MapFS{"books/SKILL.md": {Data: []byte("---\nname: books\ndescription: Knows books.\nallowed-tools: [mcp.shelf.put(a*), nonsense((]\n---\nRead.\n")}}
	maps.Copy(skills, tides)
	l.approvals = policy.NewMemoryStore()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: append(more, catalog.NewFS("mine", catalog.User, skills)), Scripts: &loadout.Scripts{Grants: l.approvals}})
	if err != nil {
		t.Fatal(err)
	}
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){
		"memory": upstream.MemoryTransport(map[string]*mcp.Server{"shelf": l.shelf.server()}),
	}}})
	set := tools.ForRuntime(rt, toolset.With(&tools.Options{Grants: grants, Own: []*upstream.Config{{Name: "shelf", Type: "memory", URLs: []string{"shelf"}, Safety: "HIGH"}, {Name: "broken", Type: "memory", URLs: []string{"none"}}}}, toolset.Options{Pool: pool}))
	s, err := rt.NewSession(t.Context(), &session.Options{Log: log, ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); set.Close(); pool.Close(); rt.Close() })
	skillTools, closeTools, err := agent.SkillTools(t.Context(), rt, s, &agent.SkillToolOptions{Tools: set, Principal: ann, Approvals: l.desk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTools() })
	l.rt, l.skills, l.set = rt, skills, set
	l.talk = &talk{model: &script{}, session: s}
	l.Agent = agent.New(l.model, s, &agent.Options{Tools: skillTools, Approvals: l.desk})
	t.Cleanup(l.desk.Subscribe(func(e approval.Event) {
		if e.Answer != nil {
			return
		}
		var about loadout.CallRequest
		if err := json.Unmarshal(e.Request.Payload, &about); err != nil {
			t.Error(err)
		}
		l.asked = append(l.asked, about)
		if a := l.answer(e.Request); a != nil {
			a.By = ann
			go l.desk.Resolve(context.WithoutCancel(t.Context()), e.Request.ID, *a)
		}
	}))
	return l
}

func book(id, tool, title string) *llm.Answer {
	args, _ := json.Marshal(map[string]any{"name": "shelf__" + tool, "arguments": map[string]string{"book": title}})
	return calls(llm.Call{ID: id, Name: "call_tool", Arguments: string(args)})
}

// An approval applies to one call, to the conversation or permanently. For
// destructive tools it applies to the same arguments only. The user can also
// decline or change the arguments.
func TestApprovalsGrant(t *testing.T) {
	yes := func(scope policy.Scope) func(approval.Request) *approval.Answer {
		return func(approval.Request) *approval.Answer {
			return &approval.Answer{Outcome: approval.Accepted, Scope: scope}
		}
	}
	for _, tt := range []struct {
		name   string
		answer func(approval.Request) *approval.Answer
		tool   string
		books  []string
		asked  int
		called []string
	}{
		{"once", yes(""), "put", []string{"a", "a"}, 2, []string{"put a", "put a"}},
		{"for the conversation", yes(policy.ForSession), "put", []string{"a", "b"}, 1, []string{"put a", "put b"}},
		{"always", yes(policy.Always), "put", []string{"a", "b"}, 1, []string{"put a", "put b"}},
		{"always, of what destroys", yes(policy.Always), "burn", []string{"a", "a", "b"}, 2, []string{"burn a", "burn a", "burn b"}},
		{"no", func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Declined} }, "put", []string{"a", "a"}, 2, nil},
		{"other arguments", func(approval.Request) *approval.Answer {
			return &approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`{"book":"z"}`)}
		}, "put", []string{"a"}, 1, []string{"put z"}},
		{"arguments that do not fit", func(approval.Request) *approval.Answer {
			return &approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`{"book":7}`)}
		}, "put", []string{"a"}, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLibrary(t, nil, &approval.MemoryStore{}, policy.NewMemoryStore(), tt.answer)
			for i, b := range tt.books {
				l.model.answers = append(l.model.answers, book(string(rune('0'+i)), tt.tool, b))
			}
			l.model.answers = append(l.model.answers, says("done"))
			l.turn(t, "Go.")
			l.prefixes(t)
			if len(l.asked) != tt.asked || !slices.Equal(l.shelf.called, tt.called) {
				t.Errorf("asked %d times, want %d; called %q, want %q", len(l.asked), tt.asked, l.shelf.called, tt.called)
			}
			if n := len(slices.DeleteFunc(slices.Clone(l.told), func(s string) bool { return s != "ask" })); n != tt.asked {
				t.Errorf("%d asks are reported: %v", n, l.told)
			}
		})
	}
}

// L14: the model gets the user's reason for declining.
func TestL14FeedbackReachesTheModel(t *testing.T) {
	l := newLibrary(t, nil, &approval.MemoryStore{}, policy.NewMemoryStore(), func(approval.Request) *approval.Answer {
		return &approval.Answer{Outcome: approval.Declined, Feedback: "put it on the upper shelf"}
	})
	l.model.answers = []*llm.Answer{book("1", "put", "a"), says("done")}
	l.turn(t, "Go.")
	if got := jsonText(l.model.requests[1]); !holds(got, "declined") || !holds(got, "put it on the upper shelf") || len(l.shelf.called) > 0 {
		t.Errorf("the model got %q", got)
	}
}

// If the program ends while a request is pending, the call was not made. The
// next process reuses the request, and an earlier answer counts.
func TestApprovalRequestSurvivesCrash(t *testing.T) {
	for _, answered := range []bool{false, true} {
		log, store := &session.MemoryLog{}, &approval.MemoryStore{}
		ctx, crash := context.WithCancelCause(t.Context())
		over := errors.New("the machine is off")
		before := newLibrary(t, log, crashing{store}, policy.NewMemoryStore(), func(approval.Request) *approval.Answer { crash(over); return nil })
		before.model.answers = []*llm.Answer{book("1", "put", "a")}
		if err := before.RunTurn(ctx, "Go.", nil); !errors.Is(err, over) {
			t.Fatal(err)
		}
		if answered {
			open, err := before.desk.Pending(t.Context(), "s", ann)
			if err != nil || len(open) != 1 {
				t.Fatal(open, err)
			}
			if err := approval.NewQueue(store).Resolve(t.Context(), open[0].ID, approval.Answer{Outcome: approval.Accepted, By: ann}); err != nil {
				t.Fatal(err)
			}
		}
		after := newLibrary(t, log, store, policy.NewMemoryStore(), func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Accepted} })
		after.model.answers = []*llm.Answer{says("done")}
		if err := after.Resume(t.Context(), after.tell); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 1, true: 0}[answered]; len(after.asked) != want || len(before.shelf.called) != 0 || !slices.Equal(after.shelf.called, []string{"put a"}) {
			t.Errorf("answered %t: asked %d times more, want %d; called %q", answered, len(after.asked), want, after.shelf.called)
		}
	}
}

// crashing is a store of a process that ends before it cancels a request.
type crashing struct{ approval.Store }

func (c crashing) Resolve(context.Context, string, approval.Answer) (*approval.Answer, error) {
	return nil, errors.New("the machine is off")
}

// A call that an active skill allows needs no approval if it matches the
// pattern, until the skill is unloaded or no longer approved.
func TestB6SkillAllowsTools(t *testing.T) {
	l := newLibrary(t, nil, &approval.MemoryStore{}, policy.NewMemoryStore(), func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Declined} })
	load := func() {
		if res, err := l.session.Load(t.Context(), "books", nil); err != nil || res.State != session.StateLoaded {
			t.Fatal(res, err)
		}
	}
	granted := l.approveSkill(t)
	load()
	l.model.answers = []*llm.Answer{book("1", "put", "atlas"), book("2", "put", "bible"), book("3", "burn", "atlas"), says("done")}
	l.turn(t, "Go.")
	if _, err := l.approvals.Revoke(t.Context(), granted.ID); err != nil {
		t.Fatal(err)
	}
	l.model.answers = []*llm.Answer{book("4", "put", "atlas"), says("done")}
	l.turn(t, "Without approval.")
	l.approveSkill(t)
	if _, err := l.session.Unload(t.Context(), "books", "done", false); err != nil {
		t.Fatal(err)
	}
	l.model.answers = []*llm.Answer{book("5", "put", "atlas"), says("done")}
	l.turn(t, "Again.")
	var asked []string
	for _, r := range l.asked {
		asked = append(asked, r.Tool+" "+string(r.Arguments))
	}
	if !slices.Equal(l.shelf.called, []string{"put atlas"}) || len(asked) != 4 || !strings.Contains(asked[2], "atlas") || !strings.Contains(asked[3], "atlas") {
		t.Errorf("called %q, asked %q", l.shelf.called, asked)
	}
}

// The calls that a skill allows need approval again as soon as another version is
// current, even if the user approves that version.
func TestAllowedToolsOfAnotherVersion(t *testing.T) {
	l := newLibrary(t, nil, &approval.MemoryStore{}, policy.NewMemoryStore(), func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Declined} })
	l.approveSkill(t)
	if res, err := l.session.Load(t.Context(), "books", nil); err != nil || len(l.session.Active()[0].AllowedTools) == 0 {
		t.Fatal(res, err)
	}
	l.skills["books/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: books\ndescription: Knows books.\n---\nRead.\n")}
	if err := l.rt.Catalog().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.approveSkill(t)
	l.model.answers = []*llm.Answer{book("1", "put", "atlas"), says("done")}
	l.turn(t, "Go.")
	if len(l.shelf.called) > 0 || len(l.asked) != 1 {
		t.Errorf("called %q, asked %d times, want once", l.shelf.called, len(l.asked))
	}
}

// approveSkill approves the current version of the skill books.
func (l *library) approveSkill(t *testing.T) policy.Grant {
	t.Helper()
	w, err := l.rt.ReadApprovalRequest(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	g, err := l.approvals.Put(t.Context(), policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Scope: policy.Always, Subject: w.Digest, Name: "books", Permissions: w.Requested.Permissions()})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
