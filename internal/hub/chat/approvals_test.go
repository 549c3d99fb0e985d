package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

// burning is a tool that needs approval.
func burning(burned *counter) func(*chat.ToolContext) []agent.Tool {
	return func(talk *chat.ToolContext) []agent.Tool {
		approve := approver.New(talk.Approvals, talk.ID, talk.User)
		burn := tool("burn", func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error) {
			about := &loadout.CallRequest{Tool: "burn", Skill: "shelf", Owner: "the skill shelf", Reason: "it destroys", SameArguments: true, Arguments: args}
			yes, err := approve(ctx, &loadout.ApprovalRequest{Reason: about.Reason, Call: about})
			if err != nil {
				return nil, err
			}
			if !yes.Approved {
				return &agent.Outcome{Text: "not burned: " + yes.Feedback, Error: true, Denied: true}, nil
			}
			if err := agent.ReportStart(ctx); err != nil {
				return nil, err
			}
			burned.add()
			return &agent.Outcome{Text: "burned"}, nil
		})
		burn.ReportsStart = true
		return []agent.Tool{burn}
	}
}

func TestAnsweredOnAnotherNode(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		var burned counter
		a, b := node(t, open(), setupFixture{tools: burning(&burned)}), node(t, open(), setupFixture{})
		id := begin(t, a)
		n := say(t, a, id, "call burn")
		q := lastOf(until(t, b, id, 0, isType(chat.ApprovalRequested))).ApprovalRequest
		if open, err := b.ListApprovals(t.Context(), ada); err != nil || len(open) != 1 || open[0].ID != q.ID {
			t.Errorf("there wait %v, %v", open, err)
		}
		if open, err := b.ListApprovals(t.Context(), bob); err != nil || len(open) != 0 {
			t.Errorf("bob sees %v, %v", open, err)
		}
		if err := b.AnswerApproval(t.Context(), bob, q.ID, approval.Answer{Outcome: approval.Accepted}); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("bob: %v", err)
		}
		const several = 6
		errs := make([]error, several)
		var all sync.WaitGroup
		for i := range several {
			all.Go(func() {
				errs[i] = []*chat.Engine{a, b}[i%2].AnswerApproval(t.Context(), ada, q.ID, approval.Answer{Outcome: approval.Declined, Feedback: fmt.Sprint("no. ", i)})
			})
		}
		all.Wait()
		first := ""
		for i, err := range errs {
			if err == nil && first != "" {
				t.Errorf("%d was first, too", i)
			}
			if err == nil {
				first = fmt.Sprint("no. ", i)
			}
		}
		for i, err := range errs {
			resolved := (*approval.ResolvedError)(nil)
			if err != nil && (!errors.As(err, &resolved) || resolved.Answer.Feedback != first) {
				t.Errorf("%d got %v, want that %q stands", i, err, first)
			}
		}
		if ev := end(t, b, id, n); ev.Reason != chat.Done || burned.get() != 0 {
			t.Errorf("it ended as %+v, burned %d times", ev, burned.get())
		}
		if got := transcript(t, b, id); !strings.Contains(got, "result: not burned: "+first) {
			t.Errorf("the transcript is\n%s", got)
		}
	})
}

// A question that is not answered in time expires, even if the node that asked has
// failed.
func TestExpiredQuestions(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := node(t, db, setupFixture{})
	id := begin(t, e)
	desk := approval.NewQueue(chat.Asks(e))
	if _, err := desk.Submit(t.Context(), approval.Request{Kind: approval.KindForm, Session: id, Principal: chat.Person("ada"), Deadline: time.Now().Add(time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	if ev := lastOf(until(t, e, id, 0, isType(chat.ApprovalResolved))); ev.Answer.Outcome != approval.Expired {
		t.Errorf("it is %+v", ev.Answer)
	}
}

// drawing is a tool that a client carries out.
func drawing(timeout time.Duration) func(*chat.ToolContext) []agent.Tool {
	return func(talk *chat.ToolContext) []agent.Tool {
		c := &clientaction.Client{Approvals: talk.Approvals, Session: talk.ID, Principal: talk.User, Timeout: timeout}
		return []agent.Tool{c.Tool("mermaid", llm.Tool{Name: "render", InputSchema: json.RawMessage(`{"type":"object"}`)})}
	}
}

// W27: a skill:request reaches a client on any node. The first skill:response is the
// result of the call; later ones and those of other users find no request.
func TestW27RequestAndResponse(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		a, b := node(t, open(), setupFixture{tools: drawing(0)}), node(t, open(), setupFixture{})
		id := begin(t, a)
		n := say(t, a, id, `call render {"code": "graph TD"}`)
		q := lastOf(until(t, b, id, 0, isType(chat.ApprovalRequested))).ApprovalRequest
		var request clientaction.Action
		if err := json.Unmarshal(q.Payload, &request); err != nil || request.Skill != "mermaid" || request.Action != "render" || string(request.Data) != `{"code":"graph TD"}` {
			t.Fatalf("the request is %s, %v", q.Payload, err)
		}
		response := chat.Response{Request: request.Request, Skill: "mermaid", Action: "render", Success: true, Result: json.RawMessage(`"<svg/>"`)}
		if err := b.Respond(t.Context(), bob, response); !errors.Is(err, chat.ErrNoRequest) {
			t.Errorf("bob: %v", err)
		}
		if err := b.Respond(t.Context(), ada, chat.Response{}); !errors.Is(err, chat.ErrNoRequestID) {
			t.Errorf("a response to nothing: %v", err)
		}
		if err := b.Respond(t.Context(), ada, response); err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]chat.Response{"a second one": response, "one to what never was": {Request: id + ".x"}} {
			if err := a.Respond(t.Context(), ada, r); !errors.Is(err, chat.ErrNoRequest) {
				t.Errorf("%s: %v", name, err)
			}
		}
		end(t, b, id, n)
		if got := transcript(t, b, id); !strings.HasSuffix(got, "assistant: result: <svg/>") {
			t.Errorf("the transcript is\n%s", got)
		}
	})
}

// W27: that no client is open, that none answers in time, and that one failed, are
// results of the call.
func TestW27RequestWithoutAnswer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		client func(t *testing.T, e *chat.Engine, id string)

		patience, timeout time.Duration
		want              string
	}{
		{"no client is open", nil, 20 * time.Millisecond, time.Minute, "render failed: no client of the conversation is open"},
		{"none answers in time", func(t *testing.T, e *chat.Engine, id string) { until(t, e, id, 0, isType(chat.ApprovalRequested)) }, time.Minute, 100 * time.Millisecond, "Request render timed out after 100ms"},
		{"it failed", func(t *testing.T, e *chat.Engine, id string) {
			q := lastOf(until(t, e, id, 0, isType(chat.ApprovalRequested))).ApprovalRequest
			if err := e.Respond(t.Context(), ada, chat.Response{Request: q.ID, Error: json.RawMessage(`"bad graph"`)}); err != nil {
				t.Error(err)
			}
		}, time.Minute, time.Minute, "render failed: bad graph"},
		{"it failed, for a client that read the history", func(t *testing.T, e *chat.Engine, id string) {
			for ev := range e.Watch(t.Context(), ada, id, 0) {
				if ev.Type == chat.ApprovalRequested {
					break
				}
			}
			for ev, err := range e.ReadEvents(t.Context(), ada, id, 0, true) {
				if err == nil && ev.Type == chat.ApprovalRequested && ev.NeedsResponse {
					err = e.Respond(t.Context(), ada, chat.Response{Request: ev.ApprovalRequest.ID, Error: json.RawMessage(`"bad history"`)})
				}
				if err != nil {
					t.Error(err)
				}
			}
		}, time.Minute, time.Minute, "render failed: bad history"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := storetest.SQLite(t)
			a := node(t, openAt(t, address), setupFixture{tools: drawing(tt.timeout)}, func(o *chat.Options) { o.ClientTimeout = tt.patience })
			b := node(t, openAt(t, address), setupFixture{})
			id := begin(t, a)
			n := say(t, a, id, "call render")
			if tt.client != nil {
				tt.client(t, b, id)
			}
			for ev, err := range b.Watch(t.Context(), ada, id, 0) { // a mere watcher is no client
				if err != nil {
					t.Fatal(err)
				}
				if ev.Type == chat.TurnEnded && ev.Input == n {
					break
				}
			}
			if got := transcript(t, b, id); !strings.Contains(got, "assistant: result: "+tt.want) {
				t.Errorf("the transcript is\n%s", got)
			}
		})
	}
}

// W27: an object in a client's answer reaches the model unchanged.
func TestW27ResultIsNotEscaped(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: drawing(0)})
	id := begin(t, e)
	n := say(t, e, id, "call render")
	q := lastOf(until(t, e, id, 0, isType(chat.ApprovalRequested))).ApprovalRequest
	if err := e.Respond(t.Context(), ada, chat.Response{Request: q.ID, Success: true, Result: json.RawMessage(`{"svg":"<svg/>"}`)}); err != nil {
		t.Fatal(err)
	}
	end(t, e, id, n)
	if got := transcript(t, e, id); !strings.HasSuffix(got, `result: {"svg":"<svg/>"}`) {
		t.Errorf("the transcript is\n%s", got)
	}
}

// Users cannot mark a question as expired or grant an unknown scope.
func TestInvalidAnswers(t *testing.T) {
	var burned counter
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: burning(&burned)})
	id := begin(t, e)
	n := say(t, e, id, "call burn")
	q := lastOf(until(t, e, id, 0, isType(chat.ApprovalRequested))).ApprovalRequest
	for _, answer := range []approval.Answer{{}, {Outcome: approval.Expired}, {Outcome: "yes"}, {Outcome: approval.Accepted, Scope: "forever"}} {
		if err := e.AnswerApproval(t.Context(), ada, q.ID, answer); !errors.Is(err, chat.ErrInvalid) {
			t.Errorf("%+v: %v", answer, err)
		}
	}
	if err := e.AnswerApproval(t.Context(), ada, q.ID, approval.Answer{Outcome: approval.Accepted}); err != nil {
		t.Error(err)
	}
	if end(t, e, id, n); burned.get() != 1 {
		t.Errorf("burned %d times", burned.get())
	}
}

// W28: a tool that needs input from the user ends the turn, and the next message
// continues it.
func TestW28DeferredInput(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: func(*chat.ToolContext) []agent.Tool {
		return []agent.Tool{tool("form", func(context.Context, json.RawMessage) (*agent.Outcome, error) {
			return &agent.Outcome{Text: "waiting for the person", Wait: true}, nil
		})}
	}})
	id := begin(t, e)
	if ev := end(t, e, id, say(t, e, id, "call form")); ev.Reason != chat.WaitingForInput {
		t.Errorf("turn ended as %+v", ev)
	}
	if ev := end(t, e, id, say(t, e, id, "blue")); ev.Reason != chat.Done || !strings.HasSuffix(transcript(t, e, id), "you said: blue") {
		t.Errorf("it ended as %+v\n%s", ev, transcript(t, e, id))
	}
}
