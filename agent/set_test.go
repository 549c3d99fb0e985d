package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
	"github.com/loadout-dev/loadout/upstream"
)

// shelf is a server with a tool that changes something and one that destroys, and what
// they were called with.
type shelf struct {
	mu     sync.Mutex
	called []string
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
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok " + in.Book}}}, nil, nil
		})
	}
	add("put", nil)
	add("burn", &mcp.ToolAnnotations{DestructiveHint: &yes})
	return srv
}

// library is a conversation whose agent calls the tools of a shelf, which a person is
// asked about.
type library struct {
	*talk
	shelf  *shelf
	desk   *ask.Desk
	asked  []agent.Request
	answer func(ask.Ask) *ask.Answer // nil leaves it open
}

var ann = policy.Principal{ID: "ann", Kind: policy.Person}

func newLibrary(t *testing.T, log session.Log, store ask.Store, grants policy.Store, answer func(ask.Ask) *ask.Answer) *library {
	t.Helper()
	l := &library{shelf: &shelf{}, desk: ask.New(store), answer: answer}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, tides)}})
	if err != nil {
		t.Fatal(err)
	}
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){
		"memory": tools.Memory(map[string]*mcp.Server{"shelf": l.shelf.server()}),
	}}})
	set := tools.New(&tools.Options{Skills: rt, Pool: pool, Grants: grants, Own: []*upstream.Config{{Name: "shelf", Type: "memory", URLs: []string{"shelf"}, Safety: "HIGH"}}})
	s, err := rt.NewSession(t.Context(), &loadout.SessionOptions{Log: log, ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); set.Close(); pool.Close(); rt.Close() })
	caller := &agent.Caller{Set: set, Session: s, Principal: ann, Approve: agent.Approve(l.desk, "s", ann)}
	l.talk = &talk{model: &script{}, session: s}
	l.Agent = agent.New(l.model, s, &agent.Options{Tools: []agent.Tool{caller.CallTool()}, Desk: l.desk})
	t.Cleanup(l.desk.Watch(func(e ask.Event) {
		if e.Answer != nil {
			return
		}
		var about agent.Request
		if err := json.Unmarshal(e.Ask.Payload, &about); err != nil {
			t.Error(err)
		}
		l.asked = append(l.asked, about)
		if a := l.answer(e.Ask); a != nil {
			a.By = ann
			go l.desk.Answer(context.WithoutCancel(t.Context()), e.Ask.ID, *a)
		}
	}))
	return l
}

func book(id, tool, title string) *llm.Answer {
	args, _ := json.Marshal(map[string]any{"name": "shelf__" + tool, "arguments": map[string]string{"book": title}})
	return calls(llm.Call{ID: id, Name: "call_tool", Arguments: string(args)})
}

// Approvals grant: for this call, for the conversation, for good; of what can destroy
// only for the same arguments; no is no; and arguments can be changed.
func TestApprovalsGrant(t *testing.T) {
	yes := func(scope policy.Scope) func(ask.Ask) *ask.Answer {
		return func(ask.Ask) *ask.Answer { return &ask.Answer{Outcome: ask.Accepted, Scope: scope} }
	}
	for _, tt := range []struct {
		name   string
		answer func(ask.Ask) *ask.Answer
		tool   string
		books  []string
		asked  int
		called []string
	}{
		{"once", yes(""), "put", []string{"a", "a"}, 2, []string{"put a", "put a"}},
		{"for the conversation", yes(policy.ForSession), "put", []string{"a", "b"}, 1, []string{"put a", "put b"}},
		{"always", yes(policy.Always), "put", []string{"a", "b"}, 1, []string{"put a", "put b"}},
		{"always, of what destroys", yes(policy.Always), "burn", []string{"a", "a", "b"}, 2, []string{"burn a", "burn a", "burn b"}},
		{"no", func(ask.Ask) *ask.Answer { return &ask.Answer{Outcome: ask.Declined} }, "put", []string{"a", "a"}, 2, nil},
		{"other arguments", func(ask.Ask) *ask.Answer {
			return &ask.Answer{Outcome: ask.Accepted, Content: json.RawMessage(`{"book":"z"}`)}
		}, "put", []string{"a"}, 1, []string{"put z"}},
		{"arguments that do not fit", func(ask.Ask) *ask.Answer {
			return &ask.Answer{Outcome: ask.Accepted, Content: json.RawMessage(`{"book":7}`)}
		}, "put", []string{"a"}, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLibrary(t, nil, &ask.Memory{}, &policy.Memory{}, tt.answer)
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
				t.Errorf("%d asks are told: %v", n, l.told)
			}
		})
	}
}

// L14: a person may say why not, which the model is told.
func TestL14FeedbackReachesTheModel(t *testing.T) {
	l := newLibrary(t, nil, &ask.Memory{}, &policy.Memory{}, func(ask.Ask) *ask.Answer {
		return &ask.Answer{Outcome: ask.Declined, Feedback: "put it on the upper shelf"}
	})
	l.model.answers = []*llm.Answer{book("1", "put", "a"), says("done")}
	l.turn(t, "Go.")
	if got := words(l.model.requests[1]); !holds(got, "did not approve") || !holds(got, "put it on the upper shelf") || len(l.shelf.called) > 0 {
		t.Errorf("the model is told %q", got)
	}
}

// A program that ends while a person is asked has called nothing: who goes on asks the
// same question, and an answer that came meanwhile counts.
func TestAskSurvivesACrash(t *testing.T) {
	for _, answered := range []bool{false, true} {
		log, store := &session.Memory{}, &ask.Memory{}
		ctx, crash := context.WithCancelCause(t.Context())
		over := errors.New("the machine is off")
		before := newLibrary(t, log, crashing{store}, &policy.Memory{}, func(ask.Ask) *ask.Answer { crash(over); return nil })
		before.model.answers = []*llm.Answer{book("1", "put", "a")}
		if err := before.Turn(ctx, "Go.", nil); !errors.Is(err, over) {
			t.Fatal(err)
		}
		if answered {
			open, err := before.desk.Open(t.Context(), "s", ann)
			if err != nil || len(open) != 1 {
				t.Fatal(open, err)
			}
			if err := ask.New(store).Answer(t.Context(), open[0].ID, ask.Answer{Outcome: ask.Accepted, By: ann}); err != nil {
				t.Fatal(err)
			}
		}
		after := newLibrary(t, log, store, &policy.Memory{}, func(ask.Ask) *ask.Answer { return &ask.Answer{Outcome: ask.Accepted} })
		after.model.answers = []*llm.Answer{says("done")}
		if err := after.Resume(t.Context(), after.tell); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 1, true: 0}[answered]; len(after.asked) != want || len(before.shelf.called) != 0 || !slices.Equal(after.shelf.called, []string{"put a"}) {
			t.Errorf("answered %t: asked %d times more, want %d; called %q", answered, len(after.asked), want, after.shelf.called)
		}
	}
}

// crashing is a store of a process that ends before it takes a question back.
type crashing struct{ ask.Store }

func (c crashing) Settle(context.Context, string, ask.Answer) (*ask.Answer, error) {
	return nil, errors.New("the machine is off")
}

// What a skill in force allows is called unasked, within its pattern, and not any more
// once the skill is unloaded or no longer approved.
func TestB6AllowedToolsOfASkill(t *testing.T) {
	l := newLibrary(t, nil, &ask.Memory{}, &policy.Memory{}, func(ask.Ask) *ask.Answer { return &ask.Answer{Outcome: ask.Declined} })
	id := session.ID{Name: "books", Origin: "mine", Dir: "books"}
	if err := l.session.Append(t.Context(), session.Event{Type: session.TypeLoaded, Loaded: &session.Loaded{Skill: id, Text: "x", AllowedTools: []string{"mcp.shelf.put(a*)", "nonsense(("}}}); err != nil {
		t.Fatal(err)
	}
	l.model.answers = []*llm.Answer{book("1", "put", "atlas"), book("2", "put", "bible"), book("3", "burn", "atlas"), says("done")}
	l.turn(t, "Go.")
	if _, err := l.session.Unload(t.Context(), "books", "done", false); err != nil {
		t.Fatal(err)
	}
	l.model.answers = []*llm.Answer{book("4", "put", "atlas"), says("done")}
	l.turn(t, "Again.")
	var asked []string
	for _, r := range l.asked {
		asked = append(asked, r.Tool+" "+string(r.Arguments))
	}
	if !slices.Equal(l.shelf.called, []string{"put atlas"}) || len(asked) != 3 || !strings.Contains(asked[2], "atlas") {
		t.Errorf("called %q, asked %q", l.shelf.called, asked)
	}
}
