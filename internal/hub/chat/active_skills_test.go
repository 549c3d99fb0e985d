package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// searcher is a model that searches, loads the harbour, and then is done.
func searcher(_ context.Context, r *llm.Request) (*llm.Answer, error) {
	steps := []*llm.Answer{
		calls("search_skills", map[string]string{"query": "where ships go"}),
		calls("load_skill", map[string]string{"name": "harbour"}),
		says("done"),
	}
	n := 0
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == llm.User && m.Text() != "" {
			break
		}
		if m.Role == llm.Assistant {
			n++
		}
	}
	return steps[min(n, 2)], nil
}

func searching(*chat.ToolContext) []agent.Tool {
	return []agent.Tool{{ReadOnly: true, Tool: llm.Tool{Name: "search_skills", InputSchema: json.RawMessage(`{"type":"object"}`)},
		Call: func(context.Context, json.RawMessage) (*agent.Outcome, error) {
			return &agent.Outcome{Text: "harbour"}, nil
		}}}
}

// Each active skill shows who loaded it and why it was chosen.
func TestActiveSkillReasons(t *testing.T) {
	k := setupFixture{model: model(searcher), tools: searching, preload: []string{"ships"}, skillID: func(name string) string { return "id of " + name }}
	e := node(t, storetest.Open(t, storetest.SQLite(t)), k, func(o *chat.Options) {
		setup := o.Setup
		o.Setup = func(ctx context.Context, r chat.Request) (*chat.Setup, error) {
			s, err := setup(ctx, r)
			if err == nil {
				s.PreloadReason = func(name string) string { return "the Ghost sea has " + name }
			}
			return s, err
		}
	})
	id := begin(t, e)
	if ev := end(t, e, id, say(t, e, id, "Who is master of the harbour?")); ev.Reason != chat.Done {
		t.Fatalf("it ended as %+v", ev)
	}
	if _, err := e.Load(t.Context(), ada, id, "tides", session.RetainPinned); err != nil {
		t.Fatal(err)
	}
	all, err := e.ActiveSkills(t.Context(), ada, id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range all {
		got = append(got, fmt.Sprintf("%s, %s, %s: %s", f.Skill.Name, f.SkillID, f.By, f.Why))
		if f.Origin != "mine" || !strings.HasPrefix(f.Digest, "sha256:") || f.Since.IsZero() || f.Changed {
			t.Errorf("of %s it is said %+v", f.Skill.Name, f)
		}
	}
	want := []string{
		"ships, id of ships, preload: preloaded: the Ghost sea has ships",
		"tides, id of tides, dependency: required by the skill harbour",
		`harbour, id of harbour, model: the model loaded it after a search for "where ships go"; words in both the message and the description: harbour`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if all[0].Start != "the Ghost sea has ships" || all[1].Start != "" {
		t.Errorf("from the start there are %q and %q", all[0].Start, all[1].Start)
	}
	if h := all[2]; h.Call != "call_load_skill" || h.Query != "where ships go" || !slices.Equal(h.MatchedWords, []string{"harbour"}) {
		t.Errorf("the harbour was chosen by %+v", h.LoadReason)
	}
}

// A user sets a longer or shorter retention for an active skill.
func TestSetRetentionManually(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, `call load_skill {"name": "tides"}`))
	for _, tt := range []struct {
		keep session.RetentionMode
		want string
	}{{session.RetainPinned, "tides for good"}, {session.RetainUsed, "tides 5"}, {session.RetainOnce, "tides 1"}} {
		l, err := e.SetRetention(t.Context(), ada, id, "tides", tt.keep)
		if err != nil || l.State != session.StateAlreadyLoaded {
			t.Fatalf("kept %q: %+v, %v", tt.keep, l, err)
		}
		wantSkills(t, e, id, tt.want)
	}
	end(t, e, id, say(t, e, id, "one"))
	wantSkills(t, e, id, "tides 0")
	end(t, e, id, say(t, e, id, "two"))
	wantSkills(t, e, id)
}
