package chat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// childEnv has the address of a database for a process that is a node of it.
const childEnv = "LOADOUT_TEST_CHAT_CHILD"

// childNode is the name of that node.
const childNode = "child"

// three are the calls of one answer: one that only reads, one that does something, and
// one that comes after it.
func three(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
	if last := r.Messages[len(r.Messages)-1]; last.Text() == "do it" {
		return &llm.Answer{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{
			llm.Text("I do it. "),
			llm.Call{ID: "1", Name: "look", Arguments: "{}"}, llm.Call{ID: "2", Name: "send", Arguments: "{}"}, llm.Call{ID: "3", Name: "file", Arguments: "{}"}}}}, nil
	}
	var results []string
	for _, p := range r.Messages[len(r.Messages)-1].Parts {
		if res, ok := p.(llm.Result); ok {
			results = append(results, firstText(res.Parts))
		}
	}
	if len(results) == 0 {
		return echo(ctx, r)
	}
	return says("Results: " + strings.Join(results, " / ")), nil
}

// deadly are the tools for it; send calls dies in the middle.
func deadly(dies func(ctx context.Context), looked, sent, filed *counter) func(*chat.ToolContext) []agent.Tool {
	done := func(c *counter, text string) func(context.Context, json.RawMessage) (*agent.Outcome, error) {
		return func(context.Context, json.RawMessage) (*agent.Outcome, error) {
			c.add()
			return &agent.Outcome{Text: text}, nil
		}
	}
	return func(*chat.ToolContext) []agent.Tool {
		look := tool("look", done(looked, "looked"))
		look.Repeatable, look.ReadOnly = true, true
		return []agent.Tool{look, tool("file", done(filed, "filed")),
			tool("send", func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
				sent.add()
				dies(ctx)
				return nil, errors.Join(errors.New("send was interrupted"), context.Cause(ctx))
			})}
	}
}

// checkResumed returns what is wrong with a turn that another node resumed.
func checkResumed(t *testing.T, got []chat.Event, transcript string) {
	t.Helper()
	const want = "Results: looked / It is not known whether this call was made"
	last := got[len(got)-1]
	if last.Reason != chat.Done || !strings.Contains(transcript, want) || !strings.Contains(transcript, "/ filed") {
		t.Errorf("it ended as %+v, the transcript is\n%s", last, transcript)
	}
	begun, resumed, steps := 0, 0, int64(0)
	for i, ev := range got {
		if ev.Seq != int64(i)+1 {
			t.Errorf("event %d has the number %d", i+1, ev.Seq)
		}
		switch {
		case ev.Type == chat.TurnStarted:
			begun++
		case ev.Type == chat.TurnResumed:
			resumed++
		case ev.Step != nil:
			if steps++; ev.Step.Seq != steps {
				t.Errorf("step %d is reported as the %d.", ev.Step.Seq, steps)
			}
		}
	}
	if begun != 1 || resumed == 0 {
		t.Errorf("it began %d times and was resumed %d times", begun, resumed)
	}
	if n := strings.Count(transcript, "user: do it"); n != 1 {
		t.Errorf("the message is there %d times", n)
	}
}

func TestTurnResumesWhenNodeIsPartitioned(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		var looked, sent, filed counter
		first := open()
		dead := make(chan struct{})
		a := node(t, first, setupFixture{model: model(three), tools: deadly(func(ctx context.Context) {
			first.Close()
			close(dead)
			<-ctx.Done() // as it cannot keep its lease
		}, &looked, &sent, &filed)}, mortal)
		id := begin(t, a)
		say(t, a, id, "do it")
		<-dead
		b := node(t, open(), setupFixture{model: model(three), tools: deadly(func(context.Context) { t.Error("it is sent again") }, &looked, &sent, &filed)})
		got := until(t, b, id, 0, isType(chat.TurnEnded))
		checkResumed(t, got, transcript(t, b, id))
		if looked.get() != 1 || sent.get() != 1 || filed.get() != 1 {
			t.Errorf("looked %d times, sent %d, filed %d; want once each", looked.get(), sent.get(), filed.get())
		}
	})
}

// child is a node in another process, which is killed.
func child(address string) int {
	db, err := store.Open(context.Background(), address, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var looked, sent, filed counter
	k := setupFixture{model: model(three), tools: deadly(func(context.Context) {
		fmt.Println("sending")
		select {} // until it is killed
	}, &looked, &sent, &filed)}
	e := chat.New(db, chat.Options{Setup: k.setup, Principal: principals, Lease: time.Hour, Node: childNode, Dir: os.Getenv(childEnv + "_DIR")})
	if _, err := e.SendMessage(context.Background(), ada, os.Getenv(childEnv+"_ID"), chat.Message{Text: "do it"}); err != nil {
		fmt.Println(err)
		return 1
	}
	select {}
}

func TestTurnResumesWhenNodeIsKilled(t *testing.T) {
	for name, address := range databases {
		t.Run(name, func(t *testing.T) { testKilled(t, address, nil) })
	}
}

// A process that succeeds a killed one does not wait for the leases of that one.
func TestTurnResumesWhenNodeIsRestarted(t *testing.T) {
	for name, address := range databases {
		t.Run(name, func(t *testing.T) {
			testKilled(t, address, func(o *chat.Options) { o.Predecessor = childNode })
		})
	}
}

// testKilled kills a node in the middle of a turn. If restarted is not nil, the turn
// continues on a node with these options that is started afterwards. Otherwise, it
// continues on a node that has been running, once the lease expires.
func testKilled(t *testing.T, address func(testing.TB) string, restarted func(*chat.Options)) {
	at := address(t)
	var looked, sent, filed counter
	fixture := setupFixture{model: model(three), tools: deadly(func(context.Context) { t.Error("it is sent again") }, &looked, &sent, &filed)}
	db := openAt(t, at)
	b := node(t, db, fixture)
	id := begin(t, b)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+at, childEnv+"_ID="+id, childEnv+"_DIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "sending" {
		t.Errorf("the other node returned %q", lines.Text())
	}
	queued := say(t, b, id, "and then?") // waits behind it
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	if restarted != nil {
		b = node(t, openAt(t, at), fixture, restarted)
	} else if _, err := db.Leases.Renew(t.Context(), store.Lease{Name: id, Node: childNode, Fence: 1}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	got := until(t, b, id, 0, isType(chat.TurnEnded))
	checkResumed(t, got, transcript(t, b, id))
	if ev := end(t, b, id, queued); ev.Reason != chat.Done {
		t.Errorf("what waited ended as %+v", ev)
	}
	if looked.get() != 0 || filed.get() != 1 {
		t.Errorf("here it looked %d times and filed %d times", looked.get(), filed.get())
	}
}

func TestCloseHandsTurnsOver(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		started := make(chan struct{}, 2)
		release := make(chan struct{})
		slow := setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
			started <- struct{}{}
			select {
			case <-release:
				return echo(ctx, r)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})}
		a := node(t, open(), slow)
		id := begin(t, a)
		n := say(t, a, id, "first")
		<-started
		closed := make(chan error)
		go func() { closed <- a.Close(t.Context()) }()
		close(release)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		b := node(t, open(), setupFixture{})
		if ev := end(t, b, id, n); ev.Reason != chat.Done {
			t.Errorf("a turn that could come to its end: %+v", ev)
		}

		release = make(chan struct{}) // is not closed
		c := node(t, open(), slow)
		n = say(t, c, id, "second")
		<-started
		closeNode(t, c)
		if _, err := c.SendMessage(t.Context(), ada, id, chat.Message{Text: "x"}); err == nil {
			t.Error("a node that ended takes a message")
		}
		if ev := end(t, b, id, n); ev.Reason != chat.Done {
			t.Errorf("an interrupted turn: %+v", ev)
		}
		if got := transcript(t, b, id); !strings.HasSuffix(got, "user: second\nassistant: you said: second") {
			t.Errorf("the transcript is\n%s", got)
		}
	})
}

func TestCancelWithoutRunningNode(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		var looked, sent, filed counter
		release := make(chan struct{})
		answer := model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
			if r.Messages[len(r.Messages)-1].Text() == "hold" {
				<-release
			}
			return three(ctx, r)
		})
		sending := make(chan struct{})
		a := node(t, open(), setupFixture{model: answer, tools: deadly(func(ctx context.Context) { close(sending); <-ctx.Done() }, &looked, &sent, &filed)})
		id := begin(t, a)
		n := say(t, a, id, "do it")
		<-sending
		busy := node(t, open(), setupFixture{model: answer, tools: deadly(nil, &looked, &sent, &filed)}, func(o *chat.Options) { o.Turns = 1 })
		other := begin(t, busy)
		held := say(t, busy, other, "hold")
		until(t, busy, other, 0, func(ev chat.Event) bool { return ev.Step != nil && ev.Step.Message != nil })
		closeNode(t, a)
		until(t, busy, id, 0, isType(chat.TurnResumed)) // and waits for its turn
		if err := busy.Cancel(t.Context(), ada, id); err != nil {
			t.Fatal(err)
		}
		close(release)
		if ev := end(t, busy, id, n); ev.Reason != chat.Cancelled {
			t.Errorf("turn ended as %+v", ev)
		}
		end(t, busy, other, held)
		if sent.get() != 1 || filed.get() != 0 {
			t.Errorf("sent %d times, filed %d times", sent.get(), filed.get())
		}
	})
}

// A turn that takes every node with it is given up at last.
func TestTurnFailsAfterTooManyAttempts(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		started := make(chan struct{}, 1)
		k := setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
			if r.Messages[len(r.Messages)-1].Text() != "die" {
				return echo(ctx, r)
			}
			started <- struct{}{}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})}
		e := node(t, open(), k)
		id := begin(t, e)
		n := say(t, e, id, "die")
		for range 5 {
			<-started
			next := node(t, open(), k)
			closeNode(t, e)
			e = next
		}
		if ev := end(t, e, id, n); ev.Reason != chat.Failed || !strings.Contains(ev.Text, "interrupted 5 times") {
			t.Errorf("turn ended as %+v", ev)
		}
		if ev := end(t, e, id, say(t, e, id, "live")); ev.Reason != chat.Done {
			t.Errorf("the next one ended as %+v", ev)
		}
	})
}

// A question that waits is asked on by the next node, and its answer goes to it: also
// one that was given in between.
func TestQuestionSurvivesItsNode(t *testing.T) {
	for _, when := range []string{"after", "between"} {
		t.Run(when, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, open func() *store.DB) {
				var burned counter
				k := setupFixture{tools: burning(&burned)}
				a := node(t, open(), k)
				id := begin(t, a)
				n := say(t, a, id, "call burn")
				question := lastOf(until(t, a, id, 0, isType(chat.ApprovalRequested))).ApprovalRequest
				closeNode(t, a)
				yes := approval.Answer{Outcome: approval.Accepted, By: chat.Person("ada")}
				if when == "between" { // by a node that does nothing else
					data, err := json.Marshal(yes)
					if err != nil {
						t.Fatal(err)
					}
					if _, first, err := open().ApprovalRequests.Resolve(t.Context(), question.ID, data); err != nil || !first {
						t.Fatal(first, err)
					}
				}
				a = node(t, open(), k)
				if when == "after" {
					until(t, a, id, 0, isType(chat.TurnResumed))
					if err := a.AnswerApproval(t.Context(), ada, question.ID, yes); err != nil {
						t.Fatal(err)
					}
				}
				got := until(t, a, id, 0, func(ev chat.Event) bool { return ev.Type == chat.TurnEnded && ev.Input == n })
				if lastOf(got).Reason != chat.Done || burned.get() != 1 || strings.Count(isReported(got), "ask") != 1 {
					t.Errorf("burned %d times: %s", burned.get(), isReported(got))
				}
			})
		})
	}
}

func lastOf(all []chat.Event) chat.Event { return all[len(all)-1] }
