package skillapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/skill"
)

const hidden = "a\u202eb"

// The draft among the hits has no ID, and texts of skills have no hidden characters.
func TestFoundDrafts(t *testing.T) {
	out := newDraftFoundJSON(library.DraftSearchResult{Query: "q", Rank: 2, Hits: []library.DraftHit{
		{Skill: &library.Skill{ID: "s1"}, Name: "one", Namespace: "public", Description: hidden, Score: 2},
		{Name: "draft", Namespace: "user:ada", Description: "Mine.", Score: 1},
	}})
	if out.Query != "q" || out.Rank != 2 || len(out.Hits) != 2 {
		t.Fatalf("%+v", out)
	}
	one, draft := out.Hits[0], out.Hits[1]
	if one.SkillID != "s1" || one.Name != "one" || one.Namespace != "public" || one.Draft || one.Score != 2 || strings.Contains(one.Description, "\u202e") {
		t.Errorf("a skill is %+v", one)
	}
	if draft.SkillID != "" || draft.Name != "draft" || draft.Namespace != "user:ada" || !draft.Draft || draft.Description != "Mine." {
		t.Errorf("the draft is %+v", draft)
	}
	if none := newDraftFoundJSON(library.DraftSearchResult{}); none.Hits == nil {
		t.Error("no hits are null")
	}
}

func TestCheckedDrafts(t *testing.T) {
	manifest := skill.Manifest{{Path: "SKILL.md", Size: 10}, {Path: "run.py", Size: 5, Script: true}}
	out := newCheckedJSON(&library.DraftCheck{
		Valid: true, Loadable: true, Savable: true, CanSave: true, Unscanned: true, Code: true, Runnable: true, CatalogLine: "- pdf: Reads.", Manifest: manifest,
		Skill: &skill.Skill{Name: "pdf", DisplayName: hidden, Description: hidden, Version: "1.2", Instructions: "Read it.", AllowedTools: []string{"Bash"}, Model: "m",
			Dependencies: []string{"csv"}, Tools: []skill.Tool{{Name: "split"}}},
		Diagnostics: []library.DraftDiagnostic{{Diagnostic: skill.Diagnostic{Severity: skill.Warning, Code: "c", Line: 3, Column: 4, Message: hidden, Fix: "f"}, File: "SKILL.md",
			Edit: &skill.Edit{StartLine: 1, Text: "x"}, Rename: "SKILL.md"}},
		Existing: &library.ExistingSkill{ID: "s1", CanAddVersion: true},
	})
	if !out.Valid || !out.Loads || !out.Saves || !out.MayAdd || !out.Unscanned || !out.Code || !out.Runnable || out.Digest != manifest.Digest() || out.Size != 15 {
		t.Errorf("%+v", out)
	}
	if out.Name != "pdf" || out.Label != "1.2" || out.Instructions != "Read it." || out.Tokens.Instructions == 0 || out.Tokens.CatalogLine == 0 || out.Taken == nil || out.Taken.ID != "s1" {
		t.Errorf("%+v", out)
	}
	if p := out.Permissions; len(p.AllowedTools) != 1 || len(p.Tools) != 1 || p.Tools[0] != "split" || len(p.Dependencies) != 1 || p.Model != "m" {
		t.Errorf("permissions %+v", p)
	}
	if d := out.Diagnostics; len(d) != 1 || d[0].Line != 3 || d[0].Edit == nil || d[0].Edit.Text != "x" || d[0].Rename != "SKILL.md" {
		t.Errorf("diagnostics %+v", d)
	}
	for _, text := range []string{out.DisplayName, out.Description, out.Diagnostics[0].Message} {
		if text == "" || strings.Contains(text, "\u202e") {
			t.Errorf("text %q", text)
		}
	}
	// A draft whose SKILL.md cannot be read has empty lists, which JSON shows as [].
	text, err := json.Marshal(newCheckedJSON(&library.DraftCheck{}))
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
}
