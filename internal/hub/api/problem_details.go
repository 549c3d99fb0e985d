package api

import (
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// Diagnostic is a diagnostic about a SKILL.md.
type Diagnostic struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Line     int    `json:"line" doc:"0 for the whole file"`
	Column   int    `json:"column"`
	Message  string `json:"message"`
	Fix      string `json:"fix"`
}

// DiagnosticsOf returns the JSON form of diagnostics. It removes disallowed
// characters, because diagnostics may repeat values from the SKILL.md.
func DiagnosticsOf(ds []skill.Diagnostic) []Diagnostic {
	out := make([]Diagnostic, len(ds))
	for i, d := range ds {
		out[i] = Diagnostic{string(d.Severity), d.Code, d.Line, d.Column, untrusted.New(d.Message).ForPage(), untrusted.New(d.Fix).ForPage()}
	}
	return out
}

// Taken is an existing skill with the same name as an upload or a draft.
type Taken struct {
	ID     string `json:"skill_id,omitempty" doc:"Absent if you may not see the skill"`
	MayAdd bool   `json:"mayAddVersion" doc:"Whether you may add a version to it"`
	Same   bool   `json:"same,omitempty" doc:"Whether its current version has the files of the upload"`
}

// Change describes how a document was applied.
type Change struct {
	Kind      string               `json:"kind"`
	Namespace string               `json:"namespace" doc:"As written"`
	Name      string               `json:"name"`
	Line      int                  `json:"line" doc:"Position in the request body"`
	Outcome   string               `json:"outcome" enum:"created,updated,unchanged,refused,skipped"`
	Diff      []agents.FieldChange `json:"diff" nullable:"false" doc:"Changed fields; all fields of a new resource"`
	Findings  []Diagnostic         `json:"findings" nullable:"false"`
	Stale     *agents.NewerChange  `json:"stale,omitempty" doc:"Current state, if the document is outdated and was rejected for that"`
}
