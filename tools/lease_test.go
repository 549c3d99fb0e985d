package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

const bringsA = "mcpServers: {a: {command: a}}"

// conversation is a session that has tools of the world.
func (w *world) conversation(t *testing.T, log session.Log) *loadout.Session {
	t.Helper()
	s, err := w.rt.NewSession(t.Context(), &session.Options{Log: log, Tools: w.ForSession()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func told(all []session.Tool) []string {
	var out []string
	for _, t := range all {
		out = append(out, t.Name)
	}
	return out
}

func (w *world) brought() []string {
	var out []string
	for _, s := range w.Servers() {
		if s.Skill != "" {
			out = append(out, s.Name)
		}
	}
	return out
}

// W18: a skill's tools come with its load, and go when it is unloaded or was not
// used for long enough. A conversation that another one shares them with keeps
// them.
func TestW18ToolsComeAndGoWithTheSkill(t *testing.T) {
	w := newWorld(t, texts{"x": skillText("x", bringsA)}, "", nil)
	first, second := w.conversation(t, nil), w.conversation(t, nil)
	r, err := first.Load(t.Context(), "x", nil)
	if err != nil || r.State != session.StateLoaded || !slices.Equal(told(r.Tools), []string{"x_a__read_note", "x_a__write_note"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := second.Load(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Unload(t.Context(), "x", "not needed", false); err != nil {
		t.Fatal(err)
	}
	if got := w.brought(); !slices.Equal(got, []string{"x_a"}) {
		t.Errorf("with one of two conversations that need it there are %v", got)
	}
	for range 6 { // more than the retention of an unused skill
		if got := w.brought(); !slices.Equal(got, []string{"x_a"}) {
			t.Errorf("while it is active there are %v", got)
		}
		if err := second.AddMessage(t.Context(), llm.User, "something else"); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.brought(); len(got) > 0 {
		t.Errorf("after its time there are %v", got)
	}
}

// W18: a conversation that is opened again has its tools without a load.
func TestW18RestoredSessionRegainsItsTools(t *testing.T) {
	w := newWorld(t, texts{"x": skillText("x", bringsA)}, "", nil)
	log := &session.MemoryLog{}
	yesterday := w.conversation(t, log)
	if _, err := yesterday.Load(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	yesterday.Close()
	if got := w.brought(); len(got) > 0 {
		t.Errorf("after the conversation there are %v", got)
	}
	today := w.conversation(t, log)
	if got := w.brought(); len(got) > 0 {
		t.Errorf("before they are needed there are %v", got)
	}
	found, problems := today.Tools(t.Context())
	if got := told(found); !slices.Equal(got, []string{"x_a__read_note", "x_a__write_note"}) || len(problems) > 0 {
		t.Errorf("tools %v, problems %v", got, problems)
	}
	if found[0].Skill != today.Active()[0].Skill {
		t.Errorf("the tool is of %+v", found[0].Skill)
	}
}

func TestConversationKeepsClientLoads(t *testing.T) {
	w := newWorld(t, texts{"x": skillText("x", bringsA)}, "", nil)
	w.bring(t, "x")
	s := w.conversation(t, nil)
	if _, err := s.Load(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got := w.brought(); !slices.Equal(got, []string{"x_a"}) {
		t.Errorf("there are %v", got)
	}
}

func TestFindKnowsSkillsLoadedElsewhere(t *testing.T) {
	cache := &upstream.Files{Dir: t.TempDir()}
	keep := func(o *tools.TestOptions, w *world) {
		w.pool = upstream.NewPool(&upstream.PoolOptions{Dialer: w.dialer, Cache: cache})
		o.Pool = w.pool
		t.Cleanup(func() { o.Pool.Close() })
	}
	skills := texts{"x": skillText("x", bringsA), "never": skillText("never", "mcpServers: {b: {command: b}}")}
	before := newWorld(t, skills, "", keep)
	before.bring(t, "x")
	before.pool.Close() // by then its tools are kept

	w := newWorld(t, skills, "", keep)
	found, err := w.Find(t.Context(), tools.Query{Text: "note"})
	if err != nil {
		t.Fatal(err)
	}
	got := namesOf(found.Tools)
	slices.Sort(got)
	if !slices.Equal(got, []string{"x_a__read_note", "x_a__write_note"}) || len(found.Problems) > 0 {
		t.Errorf("found %v, problems %v", got, found.Problems)
	}
	if got := w.names(); len(got) > 0 {
		t.Errorf("connected %v", got)
	}
}

func TestFindNeedsNoPermission(t *testing.T) {
	asked := 0
	w := newWorld(t, texts{"x": skillText("x", bringsA)}, "", func(o *tools.TestOptions, _ *world) {
		o.AcquirePermission = func(context.Context, *catalog.Entry) (*tools.Permission, error) {
			asked++
			return nil, errors.New("not approved")
		}
		o.IsPermitted = func(context.Context, *catalog.Entry) bool { return false }
	})
	if found, err := w.Find(t.Context(), tools.Query{}); err != nil || len(found.Tools)+len(found.Problems) > 0 || asked > 0 {
		t.Errorf("%+v, %v; asked %d times", found, err, asked)
	}
}

// A search checks the permissions of 100 skills with tools at most. Skills without tools
// do not count.
func TestFindChecksAHundredPermissions(t *testing.T) {
	for name, tt := range map[string]struct{ plain, withTools, want int }{
		"as many":  {20, 100, 100},
		"one more": {0, 101, 100},
	} {
		t.Run(name, func(t *testing.T) {
			skills := texts{}
			for i := range tt.plain {
				name := fmt.Sprintf("a%03d", i)
				skills[name] = skillText(name, "")
			}
			for i := range tt.withTools {
				name := fmt.Sprintf("b%03d", i)
				skills[name] = skillText(name, bringsA)
			}
			checked := map[string]bool{}
			w := newWorld(t, skills, "", func(o *tools.TestOptions, _ *world) {
				o.IsPermitted = func(_ context.Context, e *catalog.Entry) bool {
					checked[e.Name] = true
					return false
				}
			})
			if _, err := w.Find(t.Context(), tools.Query{}); err != nil {
				t.Fatal(err)
			}
			if len(checked) != tt.want {
				t.Errorf("checked %d skills, want %d", len(checked), tt.want)
			}
		})
	}
}

// What is found of a server that does not answer comes with the reason.
func TestFindReportsDeadServer(t *testing.T) {
	cache := &upstream.Files{Dir: t.TempDir()}
	keep := func(o *tools.TestOptions, w *world) {
		w.pool = upstream.NewPool(&upstream.PoolOptions{Dialer: w.dialer, Cache: cache})
		o.Pool = w.pool
		t.Cleanup(func() { o.Pool.Close() })
	}
	const servers = "mcpServers: {notes: {command: notes}}"
	before := newWorld(t, nil, servers, keep)
	before.Connect(t.Context(), "notes")
	before.pool.Close() // by then its tools are kept
	w := newWorld(t, nil, servers, keep)
	w.broken["notes"] = errors.New("out of paper")
	w.Connect(t.Context(), "notes")
	found, err := w.Find(t.Context(), tools.Query{Server: "notes"})
	if err != nil || len(found.Tools) != 2 || len(found.Problems) != 1 || !strings.Contains(found.Problems[0], "notes is DEAD") || !strings.Contains(found.Problems[0], "out of paper") {
		t.Errorf("%v, %v, %v", namesOf(found.Tools), found.Problems, err)
	}
}

// For a tool that does not work, similar tools are suggested, those of connected servers
// first, and never unrelated ones.
func TestSuggestionsAreSimilar(t *testing.T) {
	w := newWorld(t, nil, "mcpServers: {a: {command: a}, b: {command: b}, c: {command: c}}", nil)
	w.Connect(t.Context(), "")
	w.mu.Lock()
	w.broken["a"] = errors.New("gone")
	w.mu.Unlock()
	if got := namesOf(w.Alternatives("a__read_note")); !slices.Equal(got, []string{"b__read_note", "c__read_note"}) {
		t.Errorf("for reading a note: %v", got)
	}
	if got := namesOf(w.Alternatives("a__fly_to_moon")); len(got) > 0 {
		t.Errorf("for flying to the moon: %v", got)
	}
}

// Whatever makes a call fail, the model gets alternatives in the same form, unless it
// can correct the call or the user declined it.
func TestEveryFailureOffersAlternatives(t *testing.T) {
	w := newWorld(t, nil, "mcpServers: {a: {command: a}, b: {command: b}, c: {command: c}}", func(o *tools.TestOptions, _ *world) {
		o.Rules, _ = policy.ParseRules([]string{"deny mcp.c.read_note", "ask mcp.b.write_note", "ask mcp.a.write_note"})
	})
	w.Connect(t.Context(), "")
	fail := func(name, args string) string {
		t.Helper()
		c := &tools.Call{Name: name, Arguments: json.RawMessage(args)}
		_, err := w.Call(t.Context(), c)
		if err == nil {
			t.Fatalf("the call of %s succeeded", name)
		}
		return w.DescribeAlternatives(t.Context(), err, c)
	}
	const note = `{"text":"x"}`
	want := func(what, got string, names ...string) {
		t.Helper()
		if len(names) > 0 && !strings.HasPrefix(got, "\nOther tools to try:\n- "+names[0]+": ") || len(names) == 0 && got != "" || strings.Count(got, "\n- ") != len(names) {
			t.Errorf("%s: %q, want %q", what, got, names)
		}
		for _, name := range names {
			if !strings.Contains(got, "\n- "+name+": ") {
				t.Errorf("%s: %q lacks %s", what, got, name)
			}
		}
	}
	want("denied", fail("c__read_note", note), "a__read_note", "b__read_note")
	want("unknown", fail("none__read_note", note), "a__read_note", "b__read_note")
	want("unanswered", fail("b__write_note", note), "c__write_note") // not a__write_note, which nobody can approve either
	want("wrong arguments", fail("a__read_note", `{"text":1}`))
	want("without a similar tool", fail("c__fly_to_moon", note))
	c := &tools.Call{Name: "a__read_note", Arguments: json.RawMessage(note)}
	want("no response", w.DescribeAlternatives(t.Context(), &tools.FailedError{Tool: tools.Tool{Name: c.Name}, Err: errors.New("gone")}, c), "b__read_note")
	c = &tools.Call{Name: "b__write_note", Arguments: json.RawMessage(note), Approve: func(context.Context, *loadout.ApprovalRequest) (loadout.Approval, error) {
		return loadout.Approval{}, nil
	}}
	_, err := w.Call(t.Context(), c)
	want("declined", w.DescribeAlternatives(t.Context(), err, c))
}
