package approver_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/callid"
	"github.com/loadout-dev/loadout/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ada = policy.Principal{ID: "ada", Kind: policy.UserPrincipal}

// answering returns a queue whose requests get the given answer, and the last
// request.
func answering(t *testing.T, a approval.Answer) (*approval.Queue, *approval.Request) {
	t.Helper()
	q := approval.NewQueue(&approval.MemoryStore{})
	last := &approval.Request{}
	a.By = ada
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	asked := make(chan struct{}, 1)
	cancel := q.Subscribe(func(approval.Event) {
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	t.Cleanup(cancel)
	go func() {
		defer close(done)
		for {
			select {
			case <-asked:
			case <-t.Context().Done():
				return
			}
			all, err := q.Pending(context.Background(), "s1", ada)
			if err != nil || len(all) == 0 {
				continue
			}
			*last = all[0]
			if err := q.Resolve(context.Background(), all[0].ID, a); err != nil {
				t.Error(err)
			}
			return
		}
	}()
	return q, last
}

func TestCallsAreApproved(t *testing.T) {
	call := &loadout.ApprovalRequest{Call: &loadout.CallRequest{Tool: "delete", Owner: "server files", Reason: "it may change data", Arguments: json.RawMessage(`{"path":"a\u202eb"}`)}}
	for _, tt := range []struct {
		name   string
		answer approval.Answer
		want   loadout.Approval
	}{
		{"once", approval.Answer{Outcome: approval.Accepted}, loadout.Approval{Approved: true, By: ada}},
		{"always", approval.Answer{Outcome: approval.Accepted, Scope: policy.Always}, loadout.Approval{Approved: true, By: ada, Scope: policy.Always}},
		{"other arguments", approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`{"path":"c"}`)}, loadout.Approval{Approved: true, By: ada, Arguments: json.RawMessage(`{"path":"c"}`)}},
		{"the same arguments", approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`null`)}, loadout.Approval{Approved: true, By: ada}},
		{"declined", approval.Answer{Outcome: approval.Declined, Feedback: "not this"}, loadout.Approval{By: ada, Feedback: "not this"}},
		{"cancelled", approval.Answer{Outcome: approval.Cancelled}, loadout.Approval{By: ada}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q, asked := answering(t, tt.answer)
			got, err := approver.New(q, "s1", ada)(callid.With(t.Context(), "c7"), call)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
			if asked.ID != "s1.c7" || asked.Kind != approval.KindApproval || asked.Session != "s1" || asked.Principal != ada {
				t.Errorf("asked %+v", asked)
			}
			if !strings.HasPrefix(asked.Message, "Run delete of server files?\n") || !strings.HasSuffix(asked.Message, "Reason: it may change data.") || strings.Contains(asked.Message, "\u202e") || !strings.Contains(string(asked.Payload), `"tool":"delete"`) {
				t.Errorf("asked %q with %s", asked.Message, asked.Payload)
			}
		})
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := approver.New(approval.NewQueue(&approval.MemoryStore{}), "s1", ada)(cancelled, call); !errors.Is(err, context.Canceled) || got.Approved {
		t.Errorf("cancelled: %+v, %v", got, err)
	}
}

func TestSkillsAreApproved(t *testing.T) {
	for script, want := range map[string]string{"": `"tool":"load_skill"`, "do.sh": `"tool":"run_skill_script"`} {
		q, asked := answering(t, approval.Answer{Outcome: approval.Accepted})
		r := &loadout.ApprovalRequest{Reason: "never approved", Script: script, Entry: &catalog.Entry{Name: "tides"}}
		if got, err := approver.New(q, "s1", ada)(t.Context(), r); err != nil || !got.Approved {
			t.Errorf("%q: %+v, %v", script, got, err)
		}
		if !strings.Contains(string(asked.Payload), want) || !strings.Contains(asked.Message, "of the skill tides?") || !strings.Contains(asked.Message, `"tides"`) || strings.Contains(asked.Message, "do.sh") != (script != "") || asked.ID == "s1." {
			t.Errorf("%q: asked %q with %s", script, asked.Message, asked.Payload)
		}
	}
}

// Of long arguments, the beginning and the end are shown.
func TestLongArguments(t *testing.T) {
	for n, whole := range map[int]bool{7000: true, 9000: false} {
		q, asked := answering(t, approval.Answer{Outcome: approval.Accepted})
		args := `{"begin":1,"text":"` + strings.Repeat("é", n/2) + `","end":2}`
		r := &loadout.ApprovalRequest{Call: &loadout.CallRequest{Tool: "t", Owner: "o", Arguments: json.RawMessage(args)}}
		if _, err := approver.New(q, "s1", ada)(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(asked.Message, `{"begin":1`) || !strings.Contains(asked.Message, `"end":2}`) || strings.Contains(asked.Message, "bytes in all") == whole || strings.Contains(asked.Message, "\ufffd") {
			t.Errorf("%d bytes: %.100q", n, asked.Message)
		}
	}
}

func TestElicitation(t *testing.T) {
	long := strings.Repeat("é", approval.MaxMessage)
	for _, tt := range []struct {
		name, message string
		answer        approval.Answer
		action        string
		content       map[string]any
		err           string
	}{
		{"accepted", "How?", approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`{"how":"so"}`)}, "accept", map[string]any{"how": "so"}, ""},
		{"accepted without content", "How?", approval.Answer{Outcome: approval.Accepted}, "accept", nil, ""},
		{"no object", "How?", approval.Answer{Outcome: approval.Accepted, Content: json.RawMessage(`7`)}, "", nil, "want an object"},
		{"declined", "How?", approval.Answer{Outcome: approval.Declined}, "decline", nil, ""},
		{"cancelled", "How?", approval.Answer{Outcome: approval.Cancelled}, "cancel", nil, ""},
		{"long", long, approval.Answer{Outcome: approval.Declined}, "decline", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q, asked := answering(t, tt.answer)
			req := &mcp.ElicitRequest{Params: &mcp.ElicitParams{Message: tt.message, RequestedSchema: map[string]any{"type": "object"}}}
			res, err := approver.NewElicitationHandler(q, "s1", ada, time.Hour)(t.Context(), req)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %+v, %v", res, err)
				}
				return
			}
			if err != nil || res.Action != tt.action || !reflect.DeepEqual(res.Content, tt.content) {
				t.Errorf("got %+v, %v", res, err)
			}
			if asked.Kind != approval.KindElicitation || string(asked.Schema) != `{"type":"object"}` || len(asked.Message) > approval.MaxMessage || asked.Deadline.IsZero() {
				t.Errorf("asked %+v", asked)
			}
			if cut := len(tt.message) > approval.MaxMessage; strings.HasSuffix(asked.Message, "…") != cut || strings.Contains(asked.Message, "\ufffd") || !cut && asked.Message != tt.message {
				t.Errorf("asked %d bytes", len(asked.Message))
			}
		})
	}
}

func TestChanges(t *testing.T) {
	changes := []loadout.HeldChange{{Op: "modify", Path: "AGENTS.md", Reader: "agents", Diff: "-old\n+new\n"}, {Op: "create", Path: ".envrc", Reader: "direnv", Diff: "+x\n"}}
	for outcome, want := range map[approval.Outcome]bool{approval.Accepted: true, approval.Declined: false, approval.Cancelled: false} {
		q, asked := answering(t, approval.Answer{Outcome: outcome})
		if got, err := approver.NewForChanges(q, "s1", ada)(t.Context(), changes); got != want || err != nil {
			t.Errorf("%s: %t, %v", outcome, got, err)
		}
		if !strings.Contains(asked.Message, "\nmodify AGENTS.md (read by agents)\n-old\n+new\n\ncreate .envrc (read by direnv)\n+x\n") {
			t.Errorf("asked %q", asked.Message)
		}
	}
	// Nobody can agree to what is not shown.
	most := approval.MaxMessage - len("Apply changes to files that configure programs or agents?\n") - len("\nmodify x (read by y)\n")
	for n, shown := range map[int]bool{most: true, most + 1: false} {
		one := []loadout.HeldChange{{Op: "modify", Path: "x", Reader: "y", Diff: strings.Repeat("+", n)}}
		if msg, err := approver.ChangesMessage(one); (err == nil) != shown || shown && len(msg) != approval.MaxMessage {
			t.Errorf("a diff of %d bytes: %d, %v", n, len(msg), err)
		}
		if shown {
			continue
		}
		if ok, err := approver.NewForChanges(approval.NewQueue(&approval.MemoryStore{}), "s1", ada)(t.Context(), one); ok || err == nil {
			t.Errorf("a diff of %d bytes: %t, %v", n, ok, err)
		}
	}
}
