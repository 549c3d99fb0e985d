package usage_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Events are counted once, when they are appended; events already in the log of a
// resumed conversation are not. A failed load counts for the skill if it exists.
func TestCountSession(t *testing.T) {
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
		"tides/SKILL.md": {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nAdd one hour in summer.\n")},
	})}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	file := filepath.Join(t.TempDir(), "usage.jsonl")
	resolve := func(ctx context.Context, name string) (string, string, bool) {
		e, err := rt.Catalog().Resolve(ctx, name)
		if err != nil {
			return "", "", false
		}
		return e.Name, e.Key(), true
	}
	kept := &session.MemoryLog{}
	if err := kept.Append(t.Context(), &session.Event{Loaded: &session.SkillLoad{Skill: session.ID{Name: "old", Origin: "mine", Dir: "old"}}}); err != nil {
		t.Fatal(err)
	}
	if got := (*usage.Log)(nil).CountSession(kept, usage.InterfaceChat, resolve); got != session.Log(kept) {
		t.Errorf("switched off, the log is %T", got)
	}
	log := usage.NewLog(file, nil).CountSession(kept, usage.InterfaceChat, resolve)
	s, err := rt.NewSession(t.Context(), &session.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Load(t.Context(), "tides", nil); err != nil {
		t.Fatal(err)
	}
	for _, e := range []session.Event{
		{Message: &session.Message{Role: llm.User, Text: "sk-secret"}},
		{Message: &session.Message{Role: llm.Assistant, Text: "sk-secret", Model: "v:m", Usage: &llm.Usage{Input: 3, CacheRead: 4, Output: 5},
			Calls: []llm.Call{{ID: "1", Name: "load_skill", Arguments: `{"name":"sk-secret"}`}, {ID: "2", Name: "load_skill", Arguments: `{"name":"tides"}`}, {ID: "3", Name: "sk-secret", Arguments: `{}`}}}},
		{Message: &session.Message{Role: llm.Assistant, Model: "v:no-usage"}},
		{Message: &session.Message{Role: llm.Assistant, Usage: &llm.Usage{Input: 3}}},
		{Message: &session.Message{Role: llm.Assistant, Text: "sk-secret",
			Calls: []llm.Call{{ID: "1", Name: "load_skill", Arguments: `{"name":"sk-secret"}`}, {ID: "2", Name: "load_skill", Arguments: `{"name":"tides"}`}, {ID: "3", Name: "sk-secret", Arguments: `{}`}}}},
		{Result: &session.CallResult{Call: "1", Text: "sk-secret", Error: true}},
		{Result: &session.CallResult{Call: "2", Text: "sk-secret", Error: true}},
		{Result: &session.CallResult{Call: "3", Text: "sk-secret", Error: true}},
	} {
		if err := s.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	r, err := usage.Read(usage.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Skills) != 1 || r.Skills[0].Key != "mine/tides" || r.Skills[0].Loads != 2 || r.Skills[0].Failures != 1 || r.Skills[0].Tokens == 0 {
		t.Errorf("skills %+v", r.Skills)
	}
	if len(r.Models) != 1 || r.Models[0].Name != "v:m" || r.Models[0].Input != 3 || r.Models[0].CacheRead != 4 || r.Models[0].Output != 5 {
		t.Errorf("models %+v", r.Models)
	}
	if r.Unknown != 1 || len(r.Tools) != 0 || r.Damaged != 0 {
		t.Errorf("%d unknown, tools %+v, %d damaged", r.Unknown, r.Tools, r.Damaged)
	}
	if len(r.Interfaces) != 1 || r.Interfaces[0].Name != usage.InterfaceChat {
		t.Errorf("faces %+v", r.Interfaces)
	}
}
