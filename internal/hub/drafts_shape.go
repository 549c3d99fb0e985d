package hub

import (
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/skill"
)

// checkedJSON is what there is to know of a draft.
type checkedJSON struct {
	Name         string                `json:"name" doc:"Empty where it has none"`
	DisplayName  string                `json:"displayName,omitempty"`
	Description  string                `json:"description"`
	Label        string                `json:"version,omitempty" doc:"As its author calls it"`
	Valid        bool                  `json:"valid" doc:"Whether SKILL.md is as the specification has it"`
	Loads        bool                  `json:"loads" doc:"Whether it can be used as it is"`
	Saves        bool                  `json:"saves" doc:"Whether its files and its name are taken as an upload, which a name that another skill has is not"`
	MayAdd       bool                  `json:"maySave" doc:"Whether you may keep it there"`
	Taken        *takenJSON            `json:"taken,omitempty" doc:"The skill that has its name in the namespace"`
	Diagnostics  []draftDiagnosticJSON `json:"diagnostics" nullable:"false"`
	Findings     []findingJSON         `json:"findings" nullable:"false" doc:"What a scan found. It is advice"`
	Unscanned    bool                  `json:"unscanned" doc:"Whether something was not looked at"`
	Tokens       draftTokensJSON       `json:"tokens"`
	CatalogLine  string                `json:"catalogLine" doc:"By which a model is told of it; empty where no model is"`
	Instructions string                `json:"instructions" doc:"What is loaded: SKILL.md behind its fields"`
	Digest       string                `json:"digest" doc:"Of the files, as an upload of them has it"`
	Size         int64                 `json:"size" doc:"Of all of them, in bytes"`
	Files        []manifestFileJSON    `json:"files" nullable:"false" doc:"Without those that are refused, or are no part of a skill"`
	Code         bool                  `json:"code" doc:"Whether it has scripts, servers or a provider, which a review is about"`
	Runnable     bool                  `json:"runnable" doc:"Whether you may run its code as it is: a reviewer approved these very files"`
	Asks         draftAsksJSON         `json:"asks"`
}

// takenJSON is a skill that has the name of a draft.
type takenJSON struct {
	ID     string `json:"skill_id,omitempty" doc:"Not there where you may not know more of it"`
	MayAdd bool   `json:"mayAddVersion" doc:"Whether you may add the draft to it as a version"`
}

type draftTokensJSON struct {
	Instructions int `json:"instructions" doc:"About how many, once it is loaded"`
	CatalogLine  int `json:"catalogLine" doc:"About how many, in every conversation"`
}

// draftDiagnosticJSON is a finding about a file of a draft.
type draftDiagnosticJSON struct {
	Severity string    `json:"severity" enum:"error,warning,info"`
	Code     string    `json:"code"`
	File     string    `json:"file"`
	Line     int       `json:"line" doc:"0 is the file as a whole"`
	Column   int       `json:"column" doc:"In characters, from 1"`
	Message  string    `json:"message"`
	Fix      string    `json:"fix"`
	Edit     *editJSON `json:"edit,omitempty" doc:"Does away with it, where that takes no person"`
	Rename   string    `json:"rename,omitempty" doc:"What the file has to be called"`
}

// editJSON replaces what is between two places of a file.
type editJSON struct {
	StartLine   int    `json:"startLine" doc:"From 1"`
	StartColumn int    `json:"startColumn" doc:"From 1, in characters, not in bytes or halves of them"`
	EndLine     int    `json:"endLine"`
	EndColumn   int    `json:"endColumn" doc:"What is here stays"`
	Text        string `json:"text" doc:"What comes in place of it"`
}

// draftAsksJSON is what a skill asks for.
type draftAsksJSON struct {
	AllowedTools []string      `json:"allowedTools" nullable:"false" doc:"About which nobody is asked while it is loaded"`
	Tools        []string      `json:"tools" nullable:"false" doc:"That it brings"`
	MCPServers   []string      `json:"mcpServers" nullable:"false" doc:"That it brings, or wants the host to have"`
	Dependencies []string      `json:"dependencies" nullable:"false" doc:"Skills that it needs"`
	Model        string        `json:"model,omitempty" doc:"That is used while it is loaded"`
	All          []diffAskJSON `json:"all" nullable:"false" doc:"All that a reviewer looks at, as in a comparison of versions"`
}

func checkedOf(c *library.Checked) checkedJSON {
	manifest := manifestOf(c.Manifest)
	out := checkedJSON{
		Valid: c.Valid, Loads: c.Loads, Saves: c.Saves, MayAdd: c.MayAdd, Diagnostics: make([]draftDiagnosticJSON, len(c.Diagnostics)),
		Findings: findingsOf(c.Findings), Unscanned: c.Unscanned, CatalogLine: c.CatalogLine, Tokens: draftTokensJSON{CatalogLine: skill.Tokens(c.CatalogLine)},
		Digest: manifest.Digest, Size: manifest.Size, Files: manifest.Files, Code: c.Code, Runnable: c.MayRun,
		Asks: draftAsksJSON{AllowedTools: []string{}, Tools: []string{}, MCPServers: []string{}, Dependencies: []string{}, All: diffAsksOf(c.Asks)},
	}
	for i, d := range c.Diagnostics {
		out.Diagnostics[i] = draftDiagnosticJSON{string(d.Severity), d.Code, d.File, d.Line, d.Column, d.Message, d.Fix, (*editJSON)(d.Edit), d.Rename}
	}
	if c.Taken != nil {
		out.Taken = &takenJSON{c.Taken.ID, c.Taken.MayAdd}
	}
	if s := c.Skill; s != nil {
		out.Name, out.DisplayName, out.Description, out.Label = s.Name, s.DisplayName, s.Description, s.Version
		out.Instructions, out.Tokens.Instructions = s.Instructions, skill.Tokens(s.Instructions)
		out.Asks.AllowedTools, out.Asks.MCPServers = filled(s.AllowedTools), filled(s.MCPServers.Names)
		out.Asks.Dependencies, out.Asks.Model = filled(s.Dependencies), s.Model
		for _, t := range s.Tools {
			out.Asks.Tools = append(out.Asks.Tools, t.Name)
		}
	}
	return out
}

// draftFoundJSON is what a search finds with a draft among the others.
type draftFoundJSON struct {
	Query string         `json:"query"`
	Rank  int            `json:"rank" doc:"Of the draft, 1 being the first; 0 where it is not among the best hundred"`
	Hits  []draftHitJSON `json:"hits" nullable:"false" doc:"The best ten"`
}

type draftHitJSON struct {
	SkillID     string  `json:"skill_id,omitempty" doc:"Not there for the draft"`
	Name        string  `json:"name"`
	Namespace   string  `json:"namespace" doc:"user:ID, group:ID or public"`
	Description string  `json:"description"`
	Score       float64 `json:"score" doc:"More is better; comparable within one search only"`
	Draft       bool    `json:"draft"`
}

func draftFoundOf(f library.Found) draftFoundJSON {
	out := draftFoundJSON{Query: f.Query, Rank: f.Rank, Hits: make([]draftHitJSON, len(f.Hits))}
	for i, h := range f.Hits {
		out.Hits[i] = draftHitJSON{Name: h.Name, Namespace: string(h.Namespace), Description: h.Description, Score: h.Score, Draft: h.Skill == nil}
		if h.Skill != nil {
			out.Hits[i].SkillID = h.Skill.ID
		}
	}
	return out
}
