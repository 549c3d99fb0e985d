package hub

import (
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/skill"
)

// SkillJSON is a skill, and what its current version says of it.
type SkillJSON struct {
	ID          string           `json:"id"`
	Namespace   string           `json:"namespace" doc:"Where it is at home: user:ID, group:ID or public"`
	Name        string           `json:"name"`
	DisplayName string           `json:"displayName,omitempty"`
	Description string           `json:"description"`
	Tags        []string         `json:"tags" nullable:"false"`
	Number      int64            `json:"number" doc:"Of the current version"`
	Label       string           `json:"version,omitempty" doc:"The current version as its author calls it"`
	Digest      string           `json:"digest" doc:"Of the files of the current version"`
	Review      string           `json:"review" enum:"pending,approved,rejected"`
	Code        bool             `json:"code" doc:"Whether it has scripts, servers or a provider, which a review is about"`
	Runnable    bool             `json:"runnable" doc:"Whether a reviewer approved these files, so that code in them may run; without, it is instructions alone"`
	Tokens      int              `json:"tokens" doc:"Of the instructions, about"`
	LineTokens  int              `json:"catalogTokens" doc:"Of the line by which models are told of it in every conversation, about; 0 where they are not"`
	Rating      *skillScore      `json:"rating,omitempty" doc:"Not there where nobody has rated it, nor in answers that are neither a list, a search nor the skill alone"`
	Size        int64            `json:"size" doc:"Of all files, in bytes"`
	Files       int64            `json:"files" doc:"How many there are"`
	Hidden      bool             `json:"hidden"`
	Source      *skillSourceJSON `json:"source,omitempty" doc:"Where it was imported from; not there for an upload"`
	CreatedBy   string           `json:"createdBy"`
	Created     time.Time        `json:"created"`
	Updated     time.Time        `json:"updated"`
}

func skillOf(s *library.Skill) SkillJSON {
	return SkillJSON{
		ID: s.ID, Namespace: string(s.Namespace), Name: s.Name, DisplayName: s.DisplayName, Description: s.Description, Tags: filled(s.Tags),
		Number: s.Number, Label: s.Label, Digest: s.Digest, Review: string(s.Review), Code: s.Code, Runnable: s.Review == library.Approved,
		Tokens: s.Tokens, LineTokens: s.LineTokens, Rating: skillScoreOf(s.Score), Size: s.Size, Files: s.Files, Hidden: s.Hidden, Source: skillSourceOf(s.Source), CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Updated,
	}
}

// skillScore is the ratings of a skill together.
type skillScore struct {
	Count int64   `json:"count"`
	Stars float64 `json:"stars" doc:"Of 5, the mean"`
}

func skillScoreOf(s *library.Score) *skillScore {
	if s == nil || s.Count == 0 {
		return nil
	}
	return &skillScore{Count: s.Count, Stars: float64(s.Stars) / float64(s.Count)}
}

// skillSourceJSON is where a skill was imported from.
type skillSourceJSON struct {
	Kind     string    `json:"kind"`
	URL      string    `json:"url"`
	Dir      string    `json:"dir" doc:"In the place; . is the whole"`
	Ref      string    `json:"ref,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Imported time.Time `json:"imported"`
	By       string    `json:"by" doc:"The user whose credential is used"`
	Pinned   bool      `json:"pinned" doc:"Whether updates leave it as it is"`
}

func skillSourceOf(s *library.Source) *skillSourceJSON {
	if s == nil {
		return nil
	}
	return &skillSourceJSON{s.Kind, s.URL, s.Dir, s.Ref, s.Commit, s.Imported, s.By, s.Pinned}
}

// SkillVersionJSON is one state of the files of a skill.
type SkillVersionJSON struct {
	SkillID     string           `json:"skill_id"`
	Number      int64            `json:"number" doc:"1 is the first"`
	Label       string           `json:"version,omitempty" doc:"As its author calls it"`
	Digest      string           `json:"digest"`
	Current     bool             `json:"current"`
	Description string           `json:"description"`
	Size        int64            `json:"size" doc:"Of all files, in bytes"`
	Files       int64            `json:"files" doc:"How many there are"`
	Scripts     int              `json:"scripts" doc:"How many of them can be run"`
	Code        bool             `json:"code" doc:"Whether it has scripts, servers or a provider, which a review is about"`
	Tokens      int              `json:"tokens" doc:"Of the instructions, about"`
	Review      string           `json:"review" enum:"pending,approved,rejected"`
	Runnable    bool             `json:"runnable" doc:"Whether a reviewer approved these files, so that code in them may run; without, it is instructions alone"`
	Reviewer    string           `json:"reviewer,omitempty"`
	Reviewed    *time.Time       `json:"reviewed,omitempty"`
	Note        string           `json:"note,omitempty" doc:"Of the reviewer"`
	CreatedBy   string           `json:"createdBy"`
	Created     time.Time        `json:"created"`
	Source      *skillSourceJSON `json:"source,omitempty" doc:"Where it was imported from; not there for an upload"`
	Findings    map[string]int   `json:"findings,omitempty" doc:"How many a scan found of each severity"`
	Unscanned   bool             `json:"unscanned" doc:"Whether the scan took too long, or failed"`
	Diagnostics []diagnosticJSON `json:"diagnostics" nullable:"false" doc:"What was repaired or is unusual in SKILL.md"`
}

func skillVersionOf(v *library.Version) SkillVersionJSON {
	return SkillVersionJSON{
		SkillID: v.SkillID, Number: v.Number, Label: v.Label, Digest: v.Digest, Current: v.Current, Description: v.Description,
		Size: v.Size, Files: v.Files, Scripts: v.Scripts, Code: v.Code, Tokens: v.Tokens, Review: string(v.Review), Runnable: library.Runnable(v),
		Reviewer: v.Reviewer, Reviewed: when(v.Reviewed), Note: v.Note, CreatedBy: v.CreatedBy, Created: v.Created,
		Source: skillSourceOf(v.Source), Findings: v.Findings, Unscanned: v.Unscanned, Diagnostics: diagnosticsOf(v.Diagnostics),
	}
}

// diagnosticJSON is a finding about a SKILL.md.
type diagnosticJSON struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Line     int    `json:"line" doc:"0 is the file as a whole"`
	Column   int    `json:"column"`
	Message  string `json:"message"`
	Fix      string `json:"fix"`
}

func diagnosticsOf(ds []skill.Diagnostic) []diagnosticJSON {
	out := make([]diagnosticJSON, len(ds))
	for i, d := range ds {
		out[i] = diagnosticJSON{string(d.Severity), d.Code, d.Line, d.Column, d.Message, d.Fix}
	}
	return out
}

// filled is a list that is written as one also where there is nothing in it.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
