package api

import (
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/skill"
)

// Reference is an item that refers to a skill.
type Reference struct {
	Kind      string `json:"kind" doc:"Ghost, Bot or Team; Skill for a dependent skill; Default; or Listing for a namespace that lists it"`
	ID        string `json:"id" doc:"Of the kind or skill; for defaults and listings the namespace"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace" doc:"Owner"`
	Slot      string `json:"slot,omitempty" doc:"Field with the reference"`
	Precise   bool   `json:"precise" doc:"Whether it refers to the ID of the skill, not to its name"`
	Digest    string `json:"content_hash,omitempty" doc:"Digest of the referenced version"`
}

// References lists the items that refer to a skill.
type References struct {
	Seen   []Reference `json:"seen" nullable:"false"`
	Others int         `json:"others" doc:"Number of others that you may not see"`
	More   bool        `json:"more" doc:"Whether there are more than were counted"`
}

func ReferencesOf(refs *library.References) *References {
	out := &References{Seen: make([]Reference, len(refs.Visible)), Others: refs.Hidden, More: refs.More}
	for i, r := range refs.Visible {
		out.Seen[i] = Reference{r.Kind, r.ID, r.Name, string(r.Namespace), r.Slot, r.Precise, r.Digest}
	}
	return out
}

// Diagnostic is a diagnostic about a SKILL.md.
type Diagnostic struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Line     int    `json:"line" doc:"0 for the whole file"`
	Column   int    `json:"column"`
	Message  string `json:"message"`
	Fix      string `json:"fix"`
}

func DiagnosticsOf(ds []skill.Diagnostic) []Diagnostic {
	out := make([]Diagnostic, len(ds))
	for i, d := range ds {
		out[i] = Diagnostic{string(d.Severity), d.Code, d.Line, d.Column, d.Message, d.Fix}
	}
	return out
}

// Change is the result for one document.
type Change struct {
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace" doc:"As written"`
	Name      string       `json:"name"`
	Line      int          `json:"line" doc:"Position in the request body"`
	Outcome   string       `json:"outcome" enum:"created,updated,unchanged,refused,skipped"`
	Diff      []Field      `json:"diff" nullable:"false" doc:"Changed fields; all fields of a new resource"`
	Findings  []Diagnostic `json:"findings" nullable:"false"`
	Stale     *Stale       `json:"stale,omitempty" doc:"Current state, if the document is outdated and was rejected for that"`
}

// Stale describes a resource that changed in the meantime.
type Stale struct {
	Generation int64     `json:"generation" doc:"Current generation; 0 if deleted"`
	ChangedBy  string    `json:"changedBy,omitempty" doc:"ID of a user"`
	Name       string    `json:"name,omitempty" doc:"Name of that user"`
	Updated    time.Time `json:"updated,omitzero"`
}

// Field is one changed value.
type Field struct {
	Path string `json:"path" doc:"For example spec.skills[0]"`
	Old  string `json:"old,omitempty" doc:"JSON, truncated if long; absent for none"`
	New  string `json:"new,omitempty"`
}
