package chat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// anyStep returns a step that a transcript can contain.
func anyStep() *rapid.Generator[session.Event] {
	tides := session.ID{Name: "tides", Origin: "mine", Dir: "tides"}
	id := rapid.SampledFrom([]string{"1", "2"})
	text := rapid.SampledFrom([]string{"", "a", "bad \xff UTF-8", "<&>\u2028"})
	return rapid.Custom(func(t *rapid.T) session.Event {
		switch rapid.IntRange(0, 10).Draw(t, "kind") {
		case 0, 1:
			return session.Event{Message: &session.Message{Role: llm.User, Text: text.Draw(t, "text")}}
		case 2, 3:
			m := &session.Message{Role: llm.Assistant, Text: text.Draw(t, "text"), Model: "m", Usage: &llm.Usage{Input: 3}}
			for _, id := range rapid.SliceOfN(id, 0, 2).Draw(t, "calls") {
				m.Calls = append(m.Calls, llm.Call{ID: id, Name: "look", Arguments: "{}"})
			}
			return session.Event{Message: m}
		case 4:
			return session.Event{Result: &session.CallResult{Call: id.Draw(t, "call"), Text: text.Draw(t, "text")}}
		case 5:
			return session.Event{CallStarted: &session.CallStart{Call: id.Draw(t, "call")}}
		case 6:
			return session.Event{Loaded: &session.SkillLoad{Skill: tides, Text: text.Draw(t, "text"), Direct: rapid.Bool().Draw(t, "direct")}}
		case 7:
			return session.Event{Unloaded: &session.SkillUnload{Skill: tides}}
		case 8:
			return session.Event{Compacted: &session.Compaction{Text: "So far."}}
		case 9:
			return session.Event{Branched: &session.Branch{After: rapid.Int64Range(-1, 20).Draw(t, "after")}}
		}
		return session.Event{Start: &session.Start{Instructions: text.Draw(t, "text")}}
	})
}

// storedStep is a step with the numbers of inputs that the hub stores.
type storedStep struct {
	session.Event
	Input int64 `json:"input,omitempty"`
	Turn  int64 `json:"turn,omitempty"`
}

func anyStoredStep() *rapid.Generator[storedStep] {
	number := rapid.Int64Range(0, 5)
	return rapid.Custom(func(t *rapid.T) storedStep {
		return storedStep{anyStep().Draw(t, "event"), number.Draw(t, "input"), number.Draw(t, "turn")}
	})
}

// For any steps, read by two nodes at any time, the state of a conversation and its
// next request equal those computed from all steps: with snapshots in memory, stored,
// lost, damaged, of a later format, or of another conversation.
func TestSnapshotsEqualTranscript(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		clock := time.Unix(1e9, 0)
		nodes := []*chat.Engine{node(t, db, setupFixture{}), node(t, open(), setupFixture{})}
		rapid.Check(t, func(rt *rapid.T) {
			id, other := begin(t, nodes[0]), begin(t, nodes[0])
			last := map[string]int64{}
			appendSteps := func(id string, steps []storedStep) {
				var rows []store.Event
				for i, e := range steps {
					clock = clock.Add(time.Nanosecond)
					e.Seq, e.Time = last[id]+int64(i)+1, clock
					e.SetType()
					data, err := json.Marshal(e)
					if err != nil {
						rt.Fatal(err)
					}
					rows = append(rows, store.Event{Kind: e.Type, Data: data})
				}
				end, err := db.Events.Append(t.Context(), id, last[id], rows...)
				if err != nil {
					rt.Fatal(err)
				}
				last[id] = end
			}
			check := func(e *chat.Engine, id string) {
				got, err := chat.SnapshotOf(t.Context(), e, id)
				if err != nil {
					rt.Fatal(err)
				}
				if want := chat.FoldTranscript(t, db, id); got != want {
					rt.Fatalf("after step %d: got\n%s\nwant\n%s", last[id], got, want)
				}
			}
			rt.Repeat(map[string]func(*rapid.T){
				"append": func(rt *rapid.T) {
					appendSteps(id, rapid.SliceOfN(anyStoredStep(), 1, 5).Draw(rt, "steps"))
				},
				"append to another": func(rt *rapid.T) {
					appendSteps(other, rapid.SliceOfN(anyStoredStep(), 1, 3).Draw(rt, "steps"))
				},
				"lose the last steps": func(rt *rapid.T) { // restore an older backup
					if last[id] > 0 {
						last[id] = rapid.Int64Range(0, last[id]-1).Draw(rt, "left")
						rewrite(t, db, id, func(rows []store.Event) []store.Event { return rows[:last[id]] })
					}
				},
				"read": func(rt *rapid.T) {
					check(rapid.SampledFrom(nodes).Draw(rt, "node"), id)
				},
				"forget": func(rt *rapid.T) {
					chat.ForgetSnapshots(rapid.SampledFrom(nodes).Draw(rt, "node"))
				},
				"store": func(rt *rapid.T) {
					e := rapid.SampledFrom(nodes).Draw(rt, "node")
					check(e, id)
					chat.StoreSnapshot(t, e, id)
				},
				"damage": func(rt *rapid.T) {
					how := rapid.SampledFrom([]string{"not JSON", `{}`, `{"session":{"seq":1},"agent":{"seq":1}}`, `{"session":{"seq":1},"agent":null}`}).Draw(rt, "data")
					chat.PutSnapshot(t, db, store.Snapshot{Session: id, Position: rapid.Int64Range(1, last[id]+2).Draw(rt, "position"), Data: []byte(how)}, 0)
				},
				"later format": func(rt *rapid.T) {
					chat.PutSnapshot(t, db, store.Snapshot{Session: id, Position: last[id], Data: []byte(`{"later":true}`)}, 1)
				},
				"another's": func(rt *rapid.T) {
					if last[other] > 0 {
						check(nodes[0], other)
						chat.CopySnapshot(t, nodes[0], other, id)
					}
				},
			})
			for _, e := range nodes {
				check(e, id)
			}
		})
	})
}

// A node that continues reads only the steps after the stored snapshot, and a turn
// only those of the last turn.
func TestTurnReadsOnlyNewSteps(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		e := node(t, open(), setupFixture{})
		id := begin(t, e)
		seen := int64(0) // number of the last event
		turn := func(e *chat.Engine, i int) {
			say(t, e, id, fmt.Sprint("message ", i))
			ev := lastOf(until(t, e, id, seen, isType(chat.TurnEnded)))
			if seen = ev.Seq; ev.Reason != chat.Done {
				t.Fatalf("turn ended as %+v", ev)
			}
		}
		for i := range 40 {
			turn(e, i)
		}
		if err := e.Close(t.Context()); err != nil { // waits until the snapshot is stored
			t.Fatal(err)
		}
		db := open()
		stored, err := db.Snapshots.Last(t.Context(), id, 1<<40, chat.SnapshotFormat)
		if err != nil {
			t.Fatal(err)
		}
		const perTurn = 2 // steps
		if want := int64(1 + 40*perTurn*3/4); stored.Position < want {
			t.Errorf("stored position is %d, want at least %d", stored.Position, want)
		}
		// Steps that were folded are not read again: here they cannot be decoded.
		spoil := func(before int64) {
			rewrite(t, db, id, func(rows []store.Event) []store.Event {
				for i := range rows[:before-1] {
					rows[i].Data = json.RawMessage(`"spoilt"`)
				}
				return rows
			})
		}
		spoil(stored.Position)
		e = node(t, db, setupFixture{})
		turn(e, 40)
		last, err := db.Events.Last(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		spoil(last - perTurn) // the last step before turn 40 is compared
		turn(e, 41)
	})
}

// rewrite replaces the steps of a transcript.
func rewrite(t *testing.T, db *store.DB, id string, change func([]store.Event) []store.Event) {
	t.Helper()
	rows, err := db.Events.Read(t.Context(), id, 0, store.MaxRead)
	if err == nil {
		err = db.Events.Delete(t.Context(), id)
	}
	at := int64(0)
	for part := range slices.Chunk(change(rows), store.MaxAppend) {
		if err == nil {
			at, err = db.Events.Append(t.Context(), id, at, part...)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkedModel calls the tool "look" and then answers. It fails unless the request
// equals the one computed from all steps of the transcript.
func checkedModel(db *store.DB, id string) model {
	return func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		_, want, err := chat.RequestOf(ctx, db, id)
		if err != nil {
			return nil, err
		}
		if diff := cmp.Diff(want, r.Messages); diff != "" {
			fmt.Println("request differs from transcript (-want +got):", diff)
			return nil, errors.New("request differs from transcript")
		}
		if words := r.Messages[len(r.Messages)-1].Text(); words != "" && r.Messages[len(r.Messages)-1].Role == llm.User {
			return calls("look", map[string]string{"at": words}), nil
		}
		return says("seen"), nil
	}
}

func looking(*chat.ToolContext) []agent.Tool {
	look := tool("look", func(_ context.Context, args json.RawMessage) (*agent.Outcome, error) {
		return &agent.Outcome{Text: string(args)}, nil
	})
	look.Repeatable = true
	return []agent.Tool{look}
}

// talkingChild is a node in another process that runs turns until it is killed. It
// reports each.
func talkingChild(address, id string) int {
	db, err := store.Open(context.Background(), address, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	e := chat.New(db, chat.Options{Setup: setupFixture{model: checkedModel(db, id), tools: looking}.setup, Principal: principals, Poll: 10 * time.Millisecond, Dir: os.Getenv(childEnv + "_DIR"),
		Node: os.Getenv(childEnv + "_NODE"), Predecessor: os.Getenv(childEnv + "_PREDECESSOR")})
	for i := 0; ; i++ {
		in, err := e.SendMessage(context.Background(), ada, id, chat.Message{Text: fmt.Sprint("message ", i)})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		for ev, err := range e.Watch(context.Background(), ada, id, 0) {
			if err != nil {
				fmt.Println(err)
				return 1
			}
			if ev.Type == chat.TurnEnded && ev.Input == in {
				fmt.Println("turn", ev.Reason)
				break
			}
		}
	}
}

// Each request equals the one computed from the whole transcript, on whatever node,
// also after nodes were killed between any two writes.
func TestSnapshotsAfterKills(t *testing.T) {
	for name, address := range databases {
		t.Run(name, func(t *testing.T) {
			at := address(t)
			db := openAt(t, at)
			e := node(t, db, setupFixture{}, func(o *chat.Options) { o.Poll = time.Hour }) // does not adopt conversations
			id := begin(t, e)
			const kills = 4
			for kill := range kills {
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), childEnv+"="+at, childEnv+"_TALKS="+id, childEnv+"_DIR="+t.TempDir(),
					fmt.Sprintf("%s_NODE=%s%d", childEnv, childNode, kill), fmt.Sprintf("%s_PREDECESSOR=%s%d", childEnv, childNode, kill-1))
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewScanner(out)
				for range 20 + rand.IntN(10) {
					if !lines.Scan() || lines.Text() != "turn done" {
						t.Errorf("child %d returned %q", kill, lines.Text())
						break
					}
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
				_ = cmd.Wait() // it was killed
			}
			if _, err := db.Snapshots.Last(t.Context(), id, 1<<40, chat.SnapshotFormat); err != nil {
				t.Error(err)
			}
			last := node(t, openAt(t, at), setupFixture{model: checkedModel(db, id), tools: looking}, func(o *chat.Options) {
				o.Predecessor = fmt.Sprint(childNode, kills-1)
			})
			if ev := end(t, last, id, say(t, last, id, "and now?")); ev.Reason != chat.Done {
				t.Errorf("turn ended as %+v", ev)
			}
		})
	}
}

// Snapshots in memory are bounded by their size.
func TestSnapshotCacheIsBounded(t *testing.T) {
	steps := map[string][]*session.Event{}
	for id, size := range map[string]int{"a": 4000, "b": 4000, "c": 4000, "huge": 20_000} {
		steps[id] = []*session.Event{{Seq: 1, Message: &session.Message{Role: llm.Assistant, Text: strings.Repeat("x", size)}}}
	}
	if got := chat.CachedSnapshots(10_000, []string{"a", "b", "c"}, steps); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("cached %q, want the last two", got)
	}
	if got := chat.CachedSnapshots(10_000, []string{"huge", "a", "b"}, steps); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("cached %q, want those that fit", got)
	}
}

// After a conversation continues on another branch, its snapshot is soon stored.
func TestSnapshotOfNewBranchIsStored(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := node(t, db, setupFixture{})
	id := begin(t, e)
	var rows []store.Event
	for i := range int64(99) {
		m := session.Event{Seq: i + 1, Message: &session.Message{Role: llm.User, Text: "x"}}
		m.SetType()
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, store.Event{Kind: m.Type, Data: data})
	}
	if _, err := db.Events.Append(t.Context(), id, 0, rows...); err != nil {
		t.Fatal(err)
	}
	if _, err := chat.SnapshotOf(t.Context(), e, id); err != nil {
		t.Fatal(err)
	}
	chat.StoreSnapshot(t, e, id)
	send(t, e, id, chat.Message{Text: "y"}, 90)
	if err := e.Close(t.Context()); err != nil { // waits until the snapshot is stored
		t.Fatal(err)
	}
	stored, err := db.Snapshots.Last(t.Context(), id, 1<<40, chat.SnapshotFormat)
	if err != nil || stored.Position <= 99 {
		t.Errorf("stored position is %d, %v, want that of the new branch", stored.Position, err)
	}
}
