package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func skillIDs(of func(string) string) func(session.ID) string {
	return func(id session.ID) string { return of(id.Name) }
}

func TestWatchedOnAnotherNode(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		a, b := node(t, open(), setupFixture{}), node(t, open(), setupFixture{})
		id := begin(t, a)
		n := say(t, a, id, "hello there")
		got := until(t, b, id, 0, isType(chat.TurnEnded))
		want := "said, begun, begun, user, text you said: hello there, assistant, done"
		if isReported(got) != want {
			t.Errorf("got\n%s\nwant\n%s", isReported(got), want)
		}
		for i, ev := range got {
			if ev.Seq != int64(i)+1 || ev.Time.IsZero() || ev.Input != n {
				t.Errorf("event %d is %+v", i, ev)
			}
			if ev.Step != nil && ev.Step.Start != nil && ev.Step.Start.Instructions != "" {
				t.Error("the instructions are reported")
			}
		}
		// The node that received the second message answers it.
		m := say(t, b, id, "again")
		if ev := end(t, a, id, m); ev.Reason != chat.Done {
			t.Errorf("turn ended as %+v", ev)
		}
		if got := transcript(t, a, id); got != "user: hello there\nassistant: you said: hello there\nuser: again\nassistant: you said: again" {
			t.Errorf("the transcript is\n%s", got)
		}
	})
}

// Messages that come at the same time, on all nodes, are answered one after the other,
// in the order of their numbers, each once.
func TestOneTurnAtATime(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		var mu sync.Mutex
		running, most := 0, 0
		k := setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() { mu.Lock(); running--; mu.Unlock() }()
			return echo(ctx, r)
		})}
		nodes := []*chat.Engine{node(t, open(), k), node(t, open(), k)}
		id := begin(t, nodes[0])
		const many = 20
		var all sync.WaitGroup
		var last int64
		said := map[int64]string{}
		for i := range many {
			all.Go(func() {
				text := fmt.Sprint("message ", i)
				n, err := nodes[i%2].SendMessage(t.Context(), ada, id, chat.Message{Text: text})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				said[n] = text
				last = max(last, n)
			})
		}
		all.Wait()
		end(t, nodes[1], id, last)
		var want []string
		for n := int64(1); n <= last; n++ {
			want = append(want, "user: "+said[n], "assistant: you said: "+said[n])
		}
		if got := transcript(t, nodes[0], id); got != strings.Join(want, "\n") {
			t.Errorf("the transcript is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		if most != 1 || len(said) != many {
			t.Errorf("%d turns at once, %d messages", most, len(said))
		}
	})
}

func TestCancelFromAnotherNode(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		var called counter
		k := setupFixture{
			model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
				if last := r.Messages[len(r.Messages)-1].Text(); last == "both" {
					return &llm.Answer{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{
						llm.Call{ID: "1", Name: "wait", Arguments: "{}"}, llm.Call{ID: "2", Name: "count", Arguments: "{}"}}}}, nil
				}
				return echo(ctx, r)
			}),
			tools: func(*chat.ToolContext) []agent.Tool {
				return []agent.Tool{
					tool("wait", func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}),
					tool("count", func(context.Context, json.RawMessage) (*agent.Outcome, error) {
						called.add()
						return &agent.Outcome{Text: "counted"}, nil
					}),
				}
			}}
		a, b := node(t, open(), k), node(t, open(), k)
		id := begin(t, a)
		first := say(t, a, id, "both")
		until(t, b, id, 0, isType(chat.ToolCall))
		second := say(t, b, id, "and this")
		if err := b.Cancel(t.Context(), ada, id); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{first, second} {
			if ev := end(t, b, id, n); ev.Reason != chat.Cancelled {
				t.Errorf("message %d ended as %+v", n, ev)
			}
		}
		third := say(t, b, id, "go on")
		if ev := end(t, b, id, third); ev.Reason != chat.Done {
			t.Errorf("after it: %+v", ev)
		}
		if called.get() != 0 {
			t.Errorf("a cancelled call was made %d times", called.get())
		}
		if err := b.Cancel(t.Context(), ada, id); err != nil { // of nothing
			t.Error(err)
		}
		if ev := end(t, b, id, say(t, a, id, "still there?")); ev.Reason != chat.Done {
			t.Errorf("a cancel of nothing cancelled what came after: %+v", ev)
		}
		var out strings.Builder
		if err := a.Export(t.Context(), ada, id, chat.JSONL, &out); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "The user cancelled the turn."); n != 2 || !strings.Contains(out.String(), "The call was not made.") || !strings.Contains(out.String(), "It may have had an effect") {
			t.Errorf("of the two calls it says\n%s", &out)
		}
	})
}

// A failed setup is reported, and the message stays.
func TestSetupFails(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	var fail atomic.Bool
	fail.Store(true)
	k := setupFixture{}
	e := node(t, db, k, func(o *chat.Options) {
		o.Setup = func(ctx context.Context, r chat.Request) (*chat.Setup, error) {
			if fail.Load() {
				return nil, errors.New("there is no such model")
			}
			return k.setup(ctx, r)
		}
	})
	id := begin(t, e)
	if ev := end(t, e, id, say(t, e, id, "first")); ev.Reason != chat.Failed || ev.Text != "there is no such model" {
		t.Errorf("turn ended as %+v", ev)
	}
	fail.Store(false)
	end(t, e, id, say(t, e, id, "second"))
	if got := transcript(t, e, id); got != "user: first\nuser: second\nassistant: you said: second" {
		t.Errorf("the transcript is\n%s", got)
	}
}

// A model that fails ends the turn, and not the conversation.
func TestModelFails(t *testing.T) {
	var asked counter
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		if asked.add() == 1 {
			return nil, &llm.StatusError{Code: 500, Message: "overloaded"}
		}
		return echo(ctx, r)
	})})
	id := begin(t, e)
	if ev := end(t, e, id, say(t, e, id, "first")); ev.Reason != chat.Failed || !strings.Contains(ev.Text, "overloaded") {
		t.Errorf("turn ended as %+v", ev)
	}
	if ev := end(t, e, id, say(t, e, id, "second")); ev.Reason != chat.Done {
		t.Errorf("the next one ended as %+v", ev)
	}
}

// Invalid messages and too many pending ones are refused.
func TestMessageLimits(t *testing.T) {
	hold := make(chan struct{})
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		return echo(ctx, r)
	})})
	id := begin(t, e)
	for name, text := range map[string]string{"nothing": "", "too long": strings.Repeat("x", chat.MaxText+1), "no text": "\xff"} {
		if _, err := e.SendMessage(t.Context(), ada, id, chat.Message{Text: text}); !errors.Is(err, chat.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	say(t, e, id, "the one under way")
	until(t, e, id, 0, isType(chat.TurnStarted))
	for range chat.MaxQueued {
		say(t, e, id, "x")
	}
	if _, err := e.SendMessage(t.Context(), ada, id, chat.Message{Text: "one more"}); !errors.Is(err, chat.ErrQueueFull) {
		t.Errorf("one more than may wait: %v", err)
	}
	if err := e.Cancel(t.Context(), ada, id); err != nil { // there is always room for that
		t.Fatal(err)
	}
	close(hold)
	if ev := end(t, e, id, chat.MaxQueued+1); ev.Reason != chat.Cancelled {
		t.Errorf("the last that waited ended as %+v", ev)
	}
}

func TestListRenameDelete(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		e := node(t, open(), setupFixture{})
		var ids []string
		for i := range 5 {
			c, err := e.Create(t.Context(), ada, "Bot/public/b", fmt.Sprint("no. ", i))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, c.ID)
		}
		slices.Reverse(ids)
		var got []string
		for page := (store.Page{Limit: 2}); ; {
			list, next, err := e.List(t.Context(), ada, "ada", chat.ListOptions{Page: page})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				got = append(got, c.ID)
			}
			if next == "" {
				break
			}
			page.After = next
		}
		if !slices.Equal(got, ids) {
			t.Errorf("listed %v, want %v", got, ids)
		}
		if err := e.Rename(t.Context(), ada, ids[0], " The\nreport "); err != nil {
			t.Fatal(err)
		}
		c, err := e.Get(t.Context(), ada, ids[0])
		if err != nil || c.Title != "The report" || c.Agent != "Bot/public/b" || c.Owner != "ada" || c.Busy {
			t.Errorf("it is %+v, %v", c, err)
		}
		if err := e.Rename(t.Context(), ada, ids[0], strings.Repeat("x", chat.MaxTitle+1)); !errors.Is(err, chat.ErrInvalid) {
			t.Errorf("a long title: %v", err)
		}
		say(t, e, ids[0], "hello")
		after := until(t, e, ids[0], 0, isType(chat.TurnEnded))
		done := make(chan error)
		go func() {
			for _, err := range e.Watch(t.Context(), ada, ids[0], after[len(after)-1].Seq) {
				done <- err
			}
		}()
		if err := e.Delete(t.Context(), ada, ids[0]); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, store.ErrNotFound) {
			t.Errorf("who watches got %v", err)
		}
		if _, err := e.Get(t.Context(), ada, ids[0]); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it is there still: %v", err)
		}
	})
}

// Deleting a conversation during a turn ends the turn.
func TestDeleteWhileRunning(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	ended := make(chan error, 1)
	e := node(t, db, setupFixture{model: model(func(ctx context.Context, _ *llm.Request) (*llm.Answer, error) {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	})})
	id := begin(t, e)
	say(t, e, id, "hello")
	until(t, e, id, 0, func(ev chat.Event) bool { return ev.Step != nil && ev.Step.Message != nil })
	if err := e.Delete(t.Context(), ada, id); err != nil {
		t.Fatal(err)
	}
	<-ended
	closeNode(t, e)
	for _, stream := range []string{id, id + "/in", id + "/out"} {
		if n, err := db.Events.Last(t.Context(), stream); err != nil || n != 0 {
			t.Errorf("%d events are left in %s, %v", n, stream, err)
		}
	}
}

// What an operator switches off ends, with the reason, and nothing else does.
func TestStop(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})})
	var ids []string
	for _, agent := range []string{"Bot/public/a", "Bot/public/b"} {
		c, err := e.Create(t.Context(), ada, agent, "")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
		say(t, e, c.ID, "hello")
		until(t, e, c.ID, 0, func(ev chat.Event) bool { return ev.Step != nil && ev.Step.Message != nil })
	}
	e.StopTurns(func(c chat.Conversation) bool { return c.Agent == "Bot/public/a" }, "the bot was switched off")
	if ev := end(t, e, ids[0], 1); ev.Reason != chat.Failed || ev.Text != "the bot was switched off" {
		t.Errorf("turn ended as %+v", ev)
	}
	if c, err := e.Get(t.Context(), ada, ids[1]); err != nil || !c.Busy {
		t.Errorf("the other one is %+v, %v", c, err)
	}
}

func TestExport(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: func(*chat.ToolContext) []agent.Tool {
		return []agent.Tool{tool("look", func(context.Context, json.RawMessage) (*agent.Outcome, error) {
			return &agent.Outcome{Text: "\x1b[31mred ``` fence"}, nil
		})}
	}})
	c, err := e.Create(t.Context(), ada, "", "A *bold* title")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`call load_skill {"name": "tides"}`, `call look {"at": "x"}`} {
		end(t, e, c.ID, say(t, e, c.ID, text))
	}
	var out strings.Builder
	if err := e.Export(t.Context(), ada, c.ID, chat.Markdown, &out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"# A \\*bold\\* title\n", "## You, ", "The skill tides was loaded.\n", "Called look:\n\n```\n{\"at\":\"x\"}\n```\n",
		"Result:\n\n````\n[31mred ``` fence\n````\n", "## script:1\n\nresult: "} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in it:\n%s", part, &out)
		}
	}
	if strings.ContainsRune(out.String(), 0x1b) {
		t.Error("what steers a terminal is in it")
	}
	// The lines are a log that a session of package session can continue.
	out.Reset()
	if err := e.Export(t.Context(), ada, c.ID, chat.JSONL, &out); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "1.jsonl")
	if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := session.OpenFileLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, err := log.Read(t.Context(), 0)
	if err != nil || len(events) == 0 || events[0].Start == nil || events[0].Start.Instructions != "" {
		t.Errorf("%d events, %v", len(events), err)
	}
	if err := e.Export(t.Context(), ada, c.ID, "pdf", &out); !errors.Is(err, chat.ErrInvalid) {
		t.Errorf("another format: %v", err)
	}
	broken := errors.New("the client is gone")
	if err := e.Export(t.Context(), ada, c.ID, chat.JSONL, failing{broken}); !errors.Is(err, broken) {
		t.Errorf("a writer that fails: %v", err)
	}
}

// failing is a writer that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The list starts with the conversation that has the latest message. Another title does
// not move a conversation.
func TestConversationsByLastMessage(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	first, second := begin(t, e), begin(t, e)
	list := func() (out []string) {
		t.Helper()
		all, _, err := e.List(t.Context(), ada, "ada", chat.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			out = append(out, c.ID)
		}
		return out
	}
	if got := list(); !slices.Equal(got, []string{second, first}) {
		t.Errorf("before: %q", got)
	}
	for start := time.Now(); time.Since(start) < 2*time.Millisecond; { // times are stored in milliseconds
		runtime.Gosched()
	}
	end(t, e, first, say(t, e, first, "hello"))
	if err := e.Rename(t.Context(), ada, second, "Renamed"); err != nil {
		t.Fatal(err)
	}
	if got := list(); !slices.Equal(got, []string{first, second}) {
		t.Errorf("after a message: %q", got)
	}
	c, err := e.Get(t.Context(), ada, first)
	if err != nil || !c.Last.After(c.Created) {
		t.Errorf("%+v, %v", c, err)
	}
}
