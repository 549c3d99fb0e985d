package skillapi

import (
	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// checkedJSON is the result of checking a draft. Its strings contain no
// disallowed characters, except Instructions, the paths of files and the edits,
// which repeat the author's files exactly or replace parts of them.
type checkedJSON struct {
	Name         string                `json:"name" doc:"Empty if missing"`
	DisplayName  string                `json:"displayName,omitempty"`
	Description  string                `json:"description"`
	Label        string                `json:"version,omitempty" doc:"Version given by the author"`
	Valid        bool                  `json:"valid" doc:"Whether SKILL.md follows the specification"`
	Loads        bool                  `json:"loads" doc:"Whether the skill can be loaded"`
	Saves        bool                  `json:"saves" doc:"Whether it could be uploaded; not if its name is taken"`
	MayAdd       bool                  `json:"maySave" doc:"Whether you may save it in the namespace"`
	Taken        *api.Taken            `json:"taken,omitempty" doc:"Skill of the same name in the namespace"`
	Diagnostics  []draftDiagnosticJSON `json:"diagnostics" nullable:"false"`
	Findings     []scan.Finding        `json:"findings" nullable:"false" doc:"Findings of a scan; advice only"`
	Unscanned    bool                  `json:"unscanned" doc:"Whether something was not scanned"`
	Tokens       draftTokensJSON       `json:"tokens"`
	CatalogLine  string                `json:"catalogLine" doc:"Line about it in the context of models; empty if there is none"`
	Instructions string                `json:"instructions" doc:"SKILL.md without its fields, which loading adds to the context"`
	Digest       string                `json:"digest" doc:"Digest of the files, as for an upload"`
	Size         int64                 `json:"size" doc:"Total size in bytes"`
	Files        []manifestFileJSON    `json:"files" nullable:"false" doc:"Without files that are rejected or ignored"`
	Code         bool                  `json:"code" doc:"Whether it has scripts, servers or a provider that need a review"`
	Runnable     bool                  `json:"runnable" doc:"Whether you may run its code: a reviewer approved these files"`
	Permissions  draftAsksJSON         `json:"asks"`
}

type draftTokensJSON struct {
	Instructions int `json:"instructions" doc:"Estimate, once loaded"`
	CatalogLine  int `json:"catalogLine" doc:"Estimate, in every conversation"`
}

// draftDiagnosticJSON is a diagnostic about a draft's file.
type draftDiagnosticJSON struct {
	Severity string    `json:"severity" enum:"error,warning,info"`
	Code     string    `json:"code"`
	File     string    `json:"file"`
	Line     int       `json:"line" doc:"0 for the whole file"`
	Column   int       `json:"column" doc:"In characters, from 1"`
	Message  string    `json:"message"`
	Fix      string    `json:"fix"`
	Edit     *editJSON `json:"edit,omitempty" doc:"Automatic fix, if there is one"`
	Rename   string    `json:"rename,omitempty" doc:"Correct name of the file"`
}

// editJSON is a text edit that replaces a range of a file. Text is exact: it may
// repeat disallowed characters of the file, which a page must make visible.
type editJSON struct {
	StartLine   int    `json:"startLine" doc:"From 1"`
	StartColumn int    `json:"startColumn" doc:"From 1, in characters"`
	EndLine     int    `json:"endLine"`
	EndColumn   int    `json:"endColumn" doc:"Exclusive"`
	Text        string `json:"text" doc:"Replacement"`
}

// draftAsksJSON lists the permissions that a draft requests and the tools and
// servers that it provides.
type draftAsksJSON struct {
	AllowedTools []string                     `json:"allowedTools" nullable:"false" doc:"Tools that need no approval while it is loaded"`
	Tools        []string                     `json:"tools" nullable:"false" doc:"Tools that it provides"`
	MCPServers   []string                     `json:"mcpServers" nullable:"false" doc:"MCP servers that it provides or expects"`
	Dependencies []string                     `json:"dependencies" nullable:"false" doc:"Skills that it depends on"`
	Model        string                       `json:"model,omitempty" doc:"Model to use while it is loaded"`
	All          []skilldiff.PermissionChange `json:"all" nullable:"false" doc:"Everything to review, as in a comparison of versions"`
}

func newCheckedJSON(c *library.DraftCheck) checkedJSON {
	manifest := newManifestJSON(c.Manifest)
	out := checkedJSON{
		Valid: c.Valid, Loads: c.Loadable, Saves: c.Savable, MayAdd: c.CanSave, Diagnostics: make([]draftDiagnosticJSON, len(c.Diagnostics)),
		Findings: api.NonNil(c.Findings), Unscanned: c.Unscanned, CatalogLine: c.CatalogLine, Tokens: draftTokensJSON{CatalogLine: tokencount.Estimate(c.CatalogLine)},
		Digest: manifest.Digest, Size: manifest.Size, Files: manifest.Files, Code: c.Code, Runnable: c.Runnable,
		Permissions: draftAsksJSON{AllowedTools: []string{}, Tools: []string{}, MCPServers: []string{}, Dependencies: []string{}, All: api.NonNil(c.RequestedPermissions)},
	}
	for i, d := range c.Diagnostics {
		out.Diagnostics[i] = draftDiagnosticJSON{string(d.Severity), d.Code, d.File, d.Line, d.Column, cleanText(d.Message), cleanText(d.Fix), (*editJSON)(d.Edit), d.Rename}
	}
	if c.Existing != nil {
		out.Taken = &api.Taken{ID: c.Existing.ID, MayAdd: c.Existing.CanAddVersion}
	}
	if s := c.Skill; s != nil {
		out.Name, out.DisplayName, out.Description, out.Label = cleanText(s.Name), cleanText(s.DisplayName), cleanText(s.Description), cleanText(s.Version)
		out.Instructions, out.Tokens.Instructions = s.Instructions, tokencount.Estimate(s.Instructions)
		out.Permissions.AllowedTools, out.Permissions.MCPServers = cleanTexts(s.AllowedTools), cleanTexts(s.MCPServers.Names)
		out.Permissions.Dependencies, out.Permissions.Model = cleanTexts(s.Dependencies), cleanText(s.Model)
		for _, t := range s.Tools {
			out.Permissions.Tools = append(out.Permissions.Tools, cleanText(t.Name))
		}
	}
	return out
}

// cleanText removes disallowed characters from text of a skill.
func cleanText(s string) string { return untrusted.New(s).ForPage() }

// cleanTexts applies cleanText to each string in a list. It never returns nil.
func cleanTexts(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = cleanText(s)
	}
	return out
}

// draftFoundJSON is the result of a search that includes a draft.
type draftFoundJSON struct {
	Query string         `json:"query"`
	Rank  int            `json:"rank" doc:"Rank of the draft, from 1; 0 if it is not among the first hundred"`
	Hits  []draftHitJSON `json:"hits" nullable:"false" doc:"The first ten"`
}

type draftHitJSON struct {
	SkillID     string  `json:"skill_id,omitempty" doc:"Absent for the draft"`
	Name        string  `json:"name"`
	Namespace   string  `json:"namespace" doc:"user:ID, group:ID or public"`
	Description string  `json:"description"`
	Score       float64 `json:"score" doc:"Higher is better; comparable only within one search"`
	Weak        bool    `json:"weak" doc:"Whether the skill probably does not fit the query"`
	Draft       bool    `json:"draft"`
}

func newDraftFoundJSON(f library.DraftSearchResult) draftFoundJSON {
	out := draftFoundJSON{Query: f.Query, Rank: f.Rank, Hits: make([]draftHitJSON, len(f.Hits))}
	for i, h := range f.Hits {
		out.Hits[i] = draftHitJSON{Name: cleanText(h.Name), Namespace: string(h.Namespace), Description: cleanText(h.Description), Score: h.Score, Weak: bm25.IsWeak(h.Fit), Draft: h.Skill == nil}
		if h.Skill != nil {
			out.Hits[i].SkillID = h.Skill.ID
		}
	}
	return out
}
