package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// recorder is a model that records the messages of its last request.
type recorder struct {
	mu   sync.Mutex
	last string
}

func (r *recorder) answer(ctx context.Context, req *llm.Request) (*llm.Answer, error) {
	var seen []string
	for _, m := range req.Messages {
		if m.Role != llm.Notice {
			seen = append(seen, fmt.Sprintf("%s: %s", m.Role, m.Text()))
		}
	}
	r.mu.Lock()
	r.last = strings.Join(seen, "\n")
	r.mu.Unlock()
	return echo(ctx, req)
}

func (r *recorder) check(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if joined := strings.Join(want, "\n"); r.last != joined {
		t.Errorf("the model got\n%s\nwant\n%s", r.last, joined)
	}
}

// send sends a message after a step and waits until its turn is done.
func send(t *testing.T, e *chat.Engine, id string, m chat.Message, after int64) {
	t.Helper()
	m.After = &after
	n, err := e.SendMessage(t.Context(), ada, id, m)
	if err != nil {
		t.Fatal(err)
	}
	if ev := end(t, e, id, n); ev.Reason != chat.Done {
		t.Fatalf("turn ended as %+v", ev)
	}
}

func switchTo(t *testing.T, e *chat.Engine, id string, after int64) {
	t.Helper()
	n, err := e.Switch(t.Context(), ada, id, after)
	if err != nil {
		t.Fatal(err)
	}
	if ev := end(t, e, id, n); ev.Reason != chat.Done {
		t.Fatalf("command ended as %+v", ev)
	}
}

func history(t *testing.T, e *chat.Engine, id string) *chat.History {
	t.Helper()
	h, err := e.History(t.Context(), ada, id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// line returns the message with a text on the current branch.
func line(t *testing.T, e *chat.Engine, id, text string) chat.Line {
	t.Helper()
	for _, l := range history(t, e, id).Messages {
		if l.Text == text {
			return l
		}
	}
	t.Fatalf("no message %q", text)
	return chat.Line{}
}

func TestEditRegenerateAndSwitch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		r := &recorder{}
		e := node(t, open(), setupFixture{model: model(r.answer)})
		other := node(t, open(), setupFixture{model: model(r.answer)})
		id := begin(t, e)
		for _, text := range []string{"one", "two", "three"} {
			end(t, e, id, say(t, e, id, text))
		}
		first := line(t, e, id, "two")
		if first.Versions != nil {
			t.Errorf("a message without versions has %v", first.Versions)
		}

		// Edit and resend.
		send(t, e, id, chat.Message{Text: "zwei"}, *first.After)
		r.check(t, "user: one", "assistant: you said: one", "user: zwei")
		if got, want := transcript(t, e, id), "user: one\nassistant: you said: one\nuser: zwei\nassistant: you said: zwei"; got != want {
			t.Errorf("the transcript is\n%s\nwant\n%s", got, want)
		}
		edited := line(t, e, id, "zwei")
		if len(edited.Versions) != 2 || edited.Versions[0].Seq != first.Seq || edited.Versions[1].Seq != edited.Seq {
			t.Errorf("versions are %v, want those at steps %d and %d", edited.Versions, first.Seq, edited.Seq)
		}

		// Regenerate, on another node.
		send(t, other, id, chat.Message{Text: "zwei"}, *edited.After)
		r.check(t, "user: one", "assistant: you said: one", "user: zwei")
		again := line(t, e, id, "zwei")
		if len(again.Versions) != 3 || again.Versions[2].Seq != again.Seq || again.Seq == edited.Seq {
			t.Errorf("versions are %v, want the last at step %d", again.Versions, again.Seq)
		}

		// Switch back, and continue there.
		switchTo(t, other, id, again.Versions[0].Last)
		end(t, e, id, say(t, e, id, "four"))
		r.check(t, "user: one", "assistant: you said: one", "user: two", "assistant: you said: two", "user: three", "assistant: you said: three", "user: four")
		if got := line(t, e, id, "three"); got.Versions != nil {
			t.Errorf("a message without versions has %v", got.Versions)
		}

		// Branch from an earlier answer.
		send(t, other, id, chat.Message{Text: "drei"}, line(t, e, id, "you said: two").Seq)
		r.check(t, "user: one", "assistant: you said: one", "user: two", "assistant: you said: two", "user: drei")
		if got := line(t, e, id, "drei").Versions; len(got) != 2 {
			t.Errorf("versions are %v, want two", got)
		}
		if got := line(t, e, id, "two").Versions; len(got) != 3 || got[0].Last < line(t, e, id, "drei").Seq {
			t.Errorf("versions are %v, want three, the first with the newest branch", got)
		}

		// Start again.
		send(t, e, id, chat.Message{Text: "eins"}, 0)
		r.check(t, "user: eins")
		if got := line(t, e, id, "eins").Versions; len(got) != 2 {
			t.Errorf("versions are %v, want two", got)
		}

		// The messages that continue a shorter branch can still be found.
		switchTo(t, e, id, line(t, e, id, "eins").Versions[0].Last)
		switchTo(t, e, id, line(t, e, id, "you said: one").Seq)
		if got := history(t, e, id); len(got.Messages) != 2 || len(got.Versions) != 3 {
			t.Errorf("got %d messages, which continue with %v, want 2 and three versions", len(got.Messages), got.Versions)
		}
		switchTo(t, e, id, 0)
		if got := history(t, e, id); len(got.Messages) != 0 || len(got.Versions) != 2 {
			t.Errorf("got %d messages, which continue with %v, want none and two versions", len(got.Messages), got.Versions)
		}
	})
}

// A message that replaces one with a skill does not see the load of the replaced
// one.
func TestSkillsBelongToTheirBranch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		e := node(t, open(), setupFixture{})
		id := begin(t, e)
		end(t, e, id, say(t, e, id, "one"))
		active := func(want ...string) {
			t.Helper()
			found, err := e.ActiveSkills(t.Context(), ada, id)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, a := range found {
				got = append(got, a.Skill.Name)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("active skills are %v, want %v", got, want)
			}
		}
		n, err := e.SendMessage(t.Context(), ada, id, chat.Message{Text: "now", Skill: "tides"})
		if err != nil {
			t.Fatal(err)
		}
		end(t, e, id, n)
		active("tides")
		with := line(t, e, id, "/tides now")
		if with.Skill != "tides" {
			t.Errorf("the message names the skill %q", with.Skill)
		}
		send(t, e, id, chat.Message{Text: "now", Skill: with.Skill}, *with.After)
		active("tides")
		with = line(t, e, id, "/tides now")
		send(t, e, id, chat.Message{Text: "call load_skill {\"name\":\"ships\"}"}, *with.After)
		active("ships")
		found, err := e.ActiveSkills(t.Context(), ada, id)
		if err != nil || len(found) != 1 || found[0].By != session.ByModel || found[0].Call == "" {
			t.Errorf("got %+v, %v, want a skill that the model loaded", found, err)
		}
		switchTo(t, e, id, line(t, e, id, `call load_skill {"name":"ships"}`).Versions[0].Last)
		active("tides")
		end(t, e, id, say(t, e, id, "more"))
		active("tides")
	})
}

// lastStep returns the number of the last step in a transcript.
func lastStep(t *testing.T, e *chat.Engine, id string) int64 {
	t.Helper()
	last := int64(0)
	for ev, err := range e.ReadEvents(t.Context(), ada, id, 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Step != nil {
			last = ev.Step.Seq
		}
	}
	return last
}

// A conversation continues at its start or after the last step of a turn that has
// ended, not within a turn.
func TestStepsThatCannotBeContinued(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		waits, release := make(chan struct{}), make(chan struct{})
		e := node(t, open(), setupFixture{tools: func(*chat.ToolContext) []agent.Tool {
			return append(looking(nil), tool("wait", func(context.Context, json.RawMessage) (*agent.Outcome, error) {
				close(waits)
				<-release
				return &agent.Outcome{Text: "waited"}, nil
			}))
		}})
		id := begin(t, e)
		refused := func(steps ...int64) {
			t.Helper()
			for _, after := range steps {
				_, err := e.SendMessage(t.Context(), ada, id, chat.Message{Text: "x", After: &after})
				if !errors.Is(err, chat.ErrInvalid) || !errors.Is(err, chat.ErrStep) {
					t.Errorf("message after step %d: %v", after, err)
				}
				if _, err := e.Switch(t.Context(), ada, id, after); !errors.Is(err, chat.ErrStep) {
					t.Errorf("branch after step %d: %v", after, err)
				}
			}
		}
		end(t, e, id, say(t, e, id, "call look"))
		first := lastStep(t, e, id)
		for step := int64(1); step < first; step++ {
			refused(step)
		}
		refused(-1, first+1, 1<<62)

		start := int64(0)
		n, err := e.SendMessage(t.Context(), ada, id, chat.Message{Text: "call wait", After: &start})
		if err != nil {
			t.Fatal(err)
		}
		<-waits
		running := lastStep(t, e, id)
		refused(first+1, running)
		if got := line(t, e, id, "call wait").Versions; len(got) != 2 || got[0].Last != first || got[1].Last != 0 {
			t.Errorf("while a turn runs, versions are %v", got)
		}
		m, err := e.Switch(t.Context(), ada, id, first) // waits for the turn
		if err != nil {
			t.Fatal(err)
		}
		close(release)
		for _, n := range []int64{n, m} {
			if ev := end(t, e, id, n); ev.Reason != chat.Done {
				t.Errorf("input %d ended as %+v", n, ev)
			}
		}
		versions := line(t, e, id, "call look").Versions
		if len(versions) != 2 || versions[1].Last < running {
			t.Fatalf("versions are %v, want the second to contain step %d", versions, running)
		}
		refused(running)
		for _, after := range []int64{0, first, versions[0].Last, versions[1].Last} {
			switchTo(t, e, id, after)
		}
		if got, want := transcript(t, e, id), "user: call wait\nassistant: \nassistant: result: waited"; got != want {
			t.Errorf("the transcript is\n%s\nwant\n%s", got, want)
		}
	})
}

// A conversation also continues after a turn that failed in a call. The call is not
// made again.
func TestBranchAfterFailedCall(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		var made counter
		r := &recorder{}
		e := node(t, open(), setupFixture{model: model(r.answer), tools: func(*chat.ToolContext) []agent.Tool {
			broken := tool("broken", func(context.Context, json.RawMessage) (*agent.Outcome, error) {
				if made.add() == 1 {
					return nil, errors.New("broken")
				}
				return &agent.Outcome{Text: "works"}, nil
			})
			broken.Repeatable = true
			return []agent.Tool{broken}
		}})
		id := begin(t, e)
		end(t, e, id, say(t, e, id, "one"))
		if ev := end(t, e, id, say(t, e, id, "call broken")); ev.Reason != chat.Failed {
			t.Fatalf("turn ended as %+v", ev)
		}
		failed := lastStep(t, e, id)
		end(t, e, id, say(t, e, id, "three")) // makes the call again
		after := *line(t, e, id, "three").After
		if after != failed {
			t.Errorf("the message replaces from step %d, want %d", after, failed)
		}
		calls := made.get()
		send(t, e, id, chat.Message{Text: "drei"}, after)
		r.check(t, "user: one", "assistant: you said: one", "user: call broken", "assistant: ", "user: ", "user: drei")
		for _, v := range line(t, e, id, "drei").Versions {
			switchTo(t, e, id, v.Last)
			switchTo(t, e, id, *line(t, e, id, "call broken").After)
		}
		switchTo(t, e, id, failed)
		end(t, e, id, say(t, e, id, "four"))
		if got := made.get(); got != calls {
			t.Errorf("the call was made %d times, want %d", got, calls)
		}
	})
}

// A message or switch whose user may no longer use the conversation changes neither
// its branch nor its files.
func TestRefusedUserDoesNotBranch(t *testing.T) {
	waits, release := make(chan struct{}, 1), make(chan struct{})
	var refused atomic.Bool
	k := setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		if r.Messages[len(r.Messages)-1].Text() == "wait" {
			waits <- struct{}{}
			<-release
		}
		return echo(ctx, r)
	})}
	e := node(t, storetest.Open(t, storetest.SQLite(t)), k, func(o *chat.Options) {
		o.Principal = func(ctx context.Context, u account.UserID) (account.Principal, error) {
			if refused.Load() {
				return account.Principal{}, account.ErrInvalidCredentials
			}
			return principals(ctx, u)
		}
	})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, "one"))
	first := lastStep(t, e, id)
	say(t, e, id, "wait")
	<-waits
	start := int64(0)
	m, err := e.SendMessage(t.Context(), ada, id, chat.Message{Text: "other", After: &start})
	if err != nil {
		t.Fatal(err)
	}
	n, err := e.Switch(t.Context(), ada, id, first)
	if err != nil {
		t.Fatal(err)
	}
	refused.Store(true)
	close(release)
	for _, n := range []int64{m, n} {
		if ev := end(t, e, id, n); ev.Reason != chat.Failed || !strings.Contains(ev.Text, "no longer permitted") {
			t.Errorf("input %d ended as %+v", n, ev)
		}
	}
	if got := branches(t, e, id); got != 0 {
		t.Errorf("%d branches were added", got)
	}
}

// branches returns the number of branches that were added to a transcript.
func branches(t *testing.T, e *chat.Engine, id string) int {
	t.Helper()
	n := 0
	for ev, err := range e.ReadEvents(t.Context(), ada, id, 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Step != nil && ev.Step.Branched != nil {
			n++
		}
	}
	return n
}

// A message that replaces another is in the history even if its turn fails or is
// cancelled before the model gets the message.
func TestFailedEditIsKept(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		var blocks atomic.Bool
		waits := make(chan struct{})
		k := setupFixture{}
		e := node(t, open(), k, func(o *chat.Options) {
			o.Setup = func(ctx context.Context, r chat.Request) (*chat.Setup, error) {
				if blocks.Load() {
					close(waits)
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return k.setup(ctx, r)
			}
		})
		id := begin(t, e)
		end(t, e, id, say(t, e, id, "one"))
		end(t, e, id, say(t, e, id, "two"))
		after := *line(t, e, id, "two").After
		n, err := e.SendMessage(t.Context(), ada, id, chat.Message{Skill: "nothing", Text: "zwei", After: &after})
		if err != nil {
			t.Fatal(err)
		}
		if ev := end(t, e, id, n); ev.Reason != chat.Failed {
			t.Errorf("turn ended as %+v", ev)
		}
		if got := line(t, e, id, "/nothing zwei"); len(got.Versions) != 2 || got.Skill != "nothing" {
			t.Errorf("got %+v, want two versions and the skill", got)
		}
		blocks.Store(true)
		n, err = e.SendMessage(t.Context(), ada, id, chat.Message{Text: "deux", After: &after})
		if err != nil {
			t.Fatal(err)
		}
		<-waits
		if err := e.Cancel(t.Context(), ada, id); err != nil {
			t.Fatal(err)
		}
		if ev := end(t, e, id, n); ev.Reason != chat.Cancelled {
			t.Errorf("turn ended as %+v", ev)
		}
		if got := line(t, e, id, "deux").Versions; len(got) != 3 {
			t.Errorf("versions are %v, want three", got)
		}
	})
}

// In transcripts of earlier versions, which do not record the turn of a step, a
// message is replaced from the step before it.
func TestBranchOfOlderTranscript(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	r := &recorder{}
	e := node(t, db, setupFixture{model: model(r.answer)})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, "one"))
	end(t, e, id, say(t, e, id, "two"))
	rewrite(t, db, id, func(rows []store.Event) []store.Event {
		for i, row := range rows {
			var step map[string]any
			if err := json.Unmarshal(row.Data, &step); err != nil {
				t.Fatal(err)
			}
			delete(step, "turn")
			data, err := json.Marshal(step)
			if err != nil {
				t.Fatal(err)
			}
			rows[i].Data = data
		}
		return rows
	})
	old := line(t, e, id, "two")
	if *old.After != old.Seq-1 {
		t.Errorf("it continues after step %d, want %d", *old.After, old.Seq-1)
	}
	send(t, e, id, chat.Message{Text: "zwei"}, *old.After)
	r.check(t, "user: one", "assistant: you said: one", "user: zwei")
}

// A message sent again with its key must continue the same branch.
func TestKeyIncludesBranch(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, "one"))
	start, first := int64(0), int64(1)
	m := chat.Message{Text: "two", Key: "k", After: &start}
	n, err := e.SendMessage(t.Context(), ada, id, m)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.SendMessage(t.Context(), ada, id, m); err != nil || again != n {
		t.Errorf("sent again: got %d, %v, want %d", again, err, n)
	}
	for _, after := range []*int64{nil, &first} {
		m.After = after
		if _, err := e.SendMessage(t.Context(), ada, id, m); !errors.Is(err, chat.ErrKeyUsed) {
			t.Errorf("after %v: got %v, want ErrKeyUsed", after, err)
		}
	}
}

// A node that dies after it continued the conversation on another branch, and
// before it added the message, leaves nothing that the next node adds again.
func TestBranchSurvivesItsNode(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		r := &recorder{}
		k := setupFixture{model: model(r.answer)}
		first := open()
		dead := make(chan struct{})
		var dies atomic.Bool
		a := node(t, first, k, mortal, func(o *chat.Options) {
			o.Setup = func(ctx context.Context, r chat.Request) (*chat.Setup, error) {
				if dies.Load() {
					first.Close()
					close(dead)
					<-ctx.Done() // as it cannot keep its lease
					return nil, context.Cause(ctx)
				}
				return k.setup(ctx, r)
			}
		})
		id := begin(t, a)
		end(t, a, id, say(t, a, id, "one"))
		end(t, a, id, say(t, a, id, "two"))
		after := *line(t, a, id, "two").After
		dies.Store(true)
		n, err := a.SendMessage(t.Context(), ada, id, chat.Message{Text: "zwei", After: &after})
		if err != nil {
			t.Fatal(err)
		}
		<-dead
		b := node(t, open(), k)
		if ev := end(t, b, id, n); ev.Reason != chat.Done {
			t.Errorf("turn ended as %+v", ev)
		}
		r.check(t, "user: one", "assistant: you said: one", "user: zwei")
		if got := branches(t, b, id); got != 1 {
			t.Errorf("%d branches were added, want 1", got)
		}
		if got := line(t, b, id, "zwei").Versions; len(got) != 2 {
			t.Errorf("versions are %v, want two", got)
		}
	})
}

// A compaction shortens only its branch.
func TestCompactionBelongsToItsBranch(t *testing.T) {
	r := &recorder{}
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(r.answer)})
	id := begin(t, e)
	for _, text := range []string{"one", "two"} {
		end(t, e, id, say(t, e, id, text))
	}
	n, err := e.Compact(t.Context(), ada, id)
	if err != nil {
		t.Fatal(err)
	}
	end(t, e, id, n)
	end(t, e, id, say(t, e, id, "three"))
	r.mu.Lock()
	compacted := r.last
	r.mu.Unlock()
	if strings.Contains(compacted, "assistant: you said: one") || !strings.HasSuffix(compacted, "user: three") {
		t.Fatalf("the model got\n%s", compacted)
	}
	send(t, e, id, chat.Message{Text: "zwei"}, *line(t, e, id, "two").After)
	r.check(t, "user: one", "assistant: you said: one", "user: zwei")
	switchTo(t, e, id, line(t, e, id, "zwei").Versions[0].Last)
	end(t, e, id, say(t, e, id, "four"))
	r.check(t, compacted, "assistant: you said: three", "user: four")
}

// A turn on another branch ignores the snapshots of this one, in memory and stored.
func TestSnapshotOfAnotherBranch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		r := &recorder{}
		k := setupFixture{model: model(r.answer)}
		e := node(t, open(), k)
		id := begin(t, e)
		end(t, e, id, say(t, e, id, "one"))
		end(t, e, id, say(t, e, id, "two"))
		if _, err := chat.SnapshotOf(t.Context(), e, id); err != nil {
			t.Fatal(err)
		}
		chat.StoreSnapshot(t, e, id)
		after := *line(t, e, id, "two").After
		for i, fresh := range []bool{false, true} {
			if fresh {
				chat.ForgetSnapshots(e)
			}
			text := fmt.Sprint("two, version ", i+2)
			send(t, e, id, chat.Message{Text: text}, after)
			r.check(t, "user: one", "assistant: you said: one", "user: "+text)
			end(t, e, id, say(t, e, id, "three"))
			r.check(t, "user: one", "assistant: you said: one", "user: "+text, "assistant: you said: "+text, "user: three")
		}
	})
}

// The next request and the active skills on a branch equal those of a conversation
// with only the steps of the branch.
func TestBranchEqualsLinearConversation(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := node(t, db, setupFixture{})
	rapid.Check(t, func(rt *rapid.T) {
		write := func(id string, steps []session.Event) {
			for i, s := range steps {
				s.Seq, s.Time = int64(i)+1, time.Unix(1e9, 0)
				s.SetType()
				data, err := json.Marshal(s)
				if err == nil {
					_, err = db.Events.Append(t.Context(), id, int64(i), store.Event{Kind: s.Type, Data: data})
				}
				if err != nil {
					rt.Fatal(err)
				}
			}
		}
		var steps []session.Event
		paths := [][]session.Event{nil} // the steps on the branch that ends with each step
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			s := anyStep().Draw(rt, "step")
			path := paths[len(steps)]
			if s.Branched != nil {
				after := rapid.IntRange(0, len(steps)).Draw(rt, "after")
				s.Branched.After, path = int64(after), paths[after]
			} else {
				path = append(slices.Clip(path), s)
			}
			steps, paths = append(steps, s), append(paths, path)
		}
		tree, linear := begin(t, e), begin(t, e)
		write(tree, steps)
		write(linear, paths[len(steps)])
		_, want, err := chat.RequestOf(t.Context(), db, linear)
		if err != nil {
			rt.Fatal(err)
		}
		_, got, err := chat.RequestOf(t.Context(), db, tree)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("the request differs (-linear +branch):\n%s", diff)
		}
		active := func(id string) []chat.ActiveSkill {
			skills, err := e.ActiveSkills(t.Context(), ada, id)
			if err != nil {
				rt.Fatal(err)
			}
			return skills
		}
		if diff := cmp.Diff(active(linear), active(tree)); diff != "" {
			rt.Fatalf("the active skills differ (-linear +branch):\n%s", diff)
		}
		if got, want := transcript(t, e, tree), transcript(t, e, linear); got != want {
			rt.Fatalf("the transcript is\n%s\nwant\n%s", got, want)
		}
		markdown := func(id string) string {
			var b bytes.Buffer
			if err := e.Export(t.Context(), ada, id, chat.Markdown, &b); err != nil {
				rt.Fatal(err)
			}
			_, text, _ := strings.Cut(b.String(), "\n") // without the title
			return text
		}
		if diff := cmp.Diff(markdown(linear), markdown(tree)); diff != "" {
			rt.Fatalf("the export differs (-linear +branch):\n%s", diff)
		}
	})
}

// Each branch has its files: those of the user and those of tools.
func TestFilesBelongToTheirBranch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		write := func(c *chat.ToolContext) []agent.Tool {
			return []agent.Tool{tool("write", func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error) {
				var in struct{ Path, Text string }
				if err := json.Unmarshal(args, &in); err != nil {
					return nil, err
				}
				root, err := c.OpenFolder(ctx)
				if err != nil {
					return nil, err
				}
				if in.Text == "" {
					return &agent.Outcome{Text: "removed"}, root.Remove(in.Path)
				}
				return &agent.Outcome{Text: "written"}, root.WriteFile(in.Path, []byte(in.Text), 0o600)
			})}
		}
		e := node(t, open(), setupFixture{tools: write})
		id := begin(t, e)
		put := func(path, text string) {
			t.Helper()
			if err := e.WriteFile(t.Context(), ada, id, path, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		files := func(want string) {
			t.Helper()
			list, err := e.Files(t.Context(), ada, id)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range list {
				data, err := e.ReadFile(t.Context(), ada, id, f.Path)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, f.Path+"="+string(data))
			}
			if joined := strings.Join(got, " "); joined != want {
				t.Errorf("files are %q, want %q", joined, want)
			}
		}
		put("all", "1")
		end(t, e, id, say(t, e, id, `call write {"path":"a","text":"1"}`))
		first := line(t, e, id, `call write {"path":"a","text":"1"}`)
		end(t, e, id, say(t, e, id, `call write {"path":"a","text":"2"}`))
		put("mine", "1")
		files("a=2 all=1 mine=1")

		second := line(t, e, id, `call write {"path":"a","text":"2"}`)
		// The file of the user, which no turn could use, is for this message.
		send(t, e, id, chat.Message{Text: `call write {"path":"b","text":"1"}`}, *second.After)
		files("a=1 all=1 b=1 mine=1")
		end(t, e, id, say(t, e, id, `call write {"path":"a"}`))
		files("all=1 b=1 mine=1")

		versions := line(t, e, id, `call write {"path":"b","text":"1"}`).Versions
		switchTo(t, e, id, versions[0].Last)
		files("a=2 all=1")
		switchTo(t, e, id, versions[1].Last)
		files("all=1 b=1 mine=1")
		switchTo(t, e, id, *first.After)
		files("all=1")

		// It replaces a file that cannot exist beside it, and a version of itself.
		put("a/x", "1")
		put("b", "2")
		switchTo(t, e, id, versions[0].Last)
		files("a/x=1 all=1 b=2")
		switchTo(t, e, id, versions[1].Last)
		files("a/x=1 all=1 b=2 mine=1")
		end(t, e, id, say(t, e, id, "keep"))
		switchTo(t, e, id, versions[0].Last)
		files("a=2 all=1")
		switchTo(t, e, id, versions[1].Last)
		files("all=1 b=1 mine=1")

		// Deleting a file deletes it on all branches.
		if err := e.DeleteFile(t.Context(), ada, id, "a"); err != nil {
			t.Fatal(err)
		}
		switchTo(t, e, id, versions[0].Last)
		files("all=1")
		if err := e.DeleteFile(t.Context(), ada, id, "a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("deleted again: %v", err)
		}

		// Files whose versions were dropped are missing, rather than older ones.
		put("all", "2")
		end(t, e, id, say(t, e, id, "two"))
		last := lastStep(t, e, id)
		for i := range store.MaxAttachmentVersionBytes/chat.MaxFile + 2 {
			put("big", strings.Repeat("x", chat.MaxFile))
			end(t, e, id, say(t, e, id, fmt.Sprint("big ", i)))
			if i == 0 {
				put("all", "3")
				end(t, e, id, say(t, e, id, "three"))
			}
		}
		n, err := e.Switch(t.Context(), ada, id, last)
		if err != nil {
			t.Fatal(err)
		}
		var notice chat.Event
		for _, ev := range until(t, e, id, 0, func(ev chat.Event) bool { return ev.Step != nil && ev.Step.Branched != nil && ev.Input == n }) {
			if ev.Type == chat.Notice && ev.Input == n {
				notice = ev
			}
		}
		if notice.Code != chat.FilesMissing || notice.Text != "Files missing on this branch: all, big. The hub keeps up to 500 earlier versions (64 MiB)." {
			t.Errorf("when the branch is added, the notice is %+v", notice)
		}
		end(t, e, id, n)
		files("")
	})
}
