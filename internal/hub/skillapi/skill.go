package skillapi

import (
	"time"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// Skill is a skill with data of its current version.
type Skill struct {
	ID          string           `json:"id"`
	Namespace   string           `json:"namespace" doc:"Its own namespace: user:ID, group:ID or public"`
	Name        string           `json:"name"`
	DisplayName string           `json:"displayName,omitempty"`
	Description string           `json:"description"`
	Tags        []string         `json:"tags" nullable:"false"`
	Number      int64            `json:"number" doc:"Of the current version"`
	Label       string           `json:"version,omitempty" doc:"Version given by the author"`
	Digest      string           `json:"digest" doc:"Of the files of the current version"`
	Review      string           `json:"review" enum:"pending,approved,rejected"`
	Code        bool             `json:"code" doc:"Whether it has scripts, servers or a provider that need a review"`
	Runnable    bool             `json:"runnable" doc:"Whether its code may run, because a reviewer approved these files"`
	Tokens      int              `json:"tokens" doc:"Estimate for the instructions"`
	LineTokens  int              `json:"catalogTokens" doc:"Estimate for its line in the context of every conversation; 0 if there is none"`
	Rating      *skillScore      `json:"rating,omitempty" doc:"Absent without ratings; only in lists, searches and details"`
	Size        int64            `json:"size" doc:"Total size in bytes"`
	Files       int64            `json:"files" doc:"Number of files"`
	Hidden      bool             `json:"hidden"`
	Source      *skillSourceJSON `json:"source,omitempty" doc:"Source of the import; absent for an upload"`
	CreatedBy   string           `json:"createdBy"`
	Created     time.Time        `json:"created"`
	Updated     time.Time        `json:"updated"`
}

func skillOf(s *library.Skill) Skill {
	return Skill{
		ID: s.ID, Namespace: string(s.Namespace), Name: s.Name, DisplayName: s.DisplayName, Description: s.Description, Tags: api.NonNil(s.Tags),
		Number: s.Number, Label: s.Label, Digest: s.Digest, Review: string(s.Review), Code: s.Code, Runnable: s.Review == library.Approved,
		Tokens: s.Tokens, LineTokens: s.LineTokens, Rating: skillScoreOf(s.Score), Size: s.Size, Files: s.Files, Hidden: s.Hidden, Source: skillSourceOf(s.Source), CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Updated,
	}
}

// skillScore sums up the ratings of a skill.
type skillScore struct {
	Count int64   `json:"count"`
	Stars float64 `json:"stars" doc:"Mean, of 5"`
}

func skillScoreOf(s *library.Score) *skillScore {
	if s == nil || s.Count == 0 {
		return nil
	}
	return &skillScore{Count: s.Count, Stars: float64(s.Stars) / float64(s.Count)}
}

// skillSourceJSON is the source of an imported skill.
type skillSourceJSON struct {
	Kind     string    `json:"kind"`
	URL      string    `json:"url"`
	Dir      string    `json:"dir" doc:"In the source; . for all of it"`
	Ref      string    `json:"ref,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Imported time.Time `json:"imported"`
	By       string    `json:"by" doc:"User whose credential is used"`
	Pinned   bool      `json:"pinned" doc:"Whether updates skip it"`
}

func skillSourceOf(s *library.Source) *skillSourceJSON {
	if s == nil {
		return nil
	}
	return &skillSourceJSON{s.Kind, s.URL, s.Dir, s.Ref, s.Commit, s.Imported, s.By, s.Pinned}
}

// SkillVersion is a version of a skill.
type SkillVersion struct {
	SkillID     string           `json:"skill_id"`
	Number      int64            `json:"number" doc:"Starts at 1"`
	Label       string           `json:"version,omitempty" doc:"Version given by the author"`
	Digest      string           `json:"digest"`
	Current     bool             `json:"current"`
	Description string           `json:"description"`
	Size        int64            `json:"size" doc:"Total size in bytes"`
	Files       int64            `json:"files" doc:"Number of files"`
	Scripts     int              `json:"scripts" doc:"Number of executable files"`
	Code        bool             `json:"code" doc:"Whether it has scripts, servers or a provider that need a review"`
	Tokens      int              `json:"tokens" doc:"Estimate for the instructions"`
	Review      string           `json:"review" enum:"pending,approved,rejected"`
	Runnable    bool             `json:"runnable" doc:"Whether its code may run, because a reviewer approved these files"`
	Reviewer    string           `json:"reviewer,omitempty"`
	Reviewed    *time.Time       `json:"reviewed,omitempty"`
	Note        string           `json:"note,omitempty" doc:"Comment of the reviewer"`
	CreatedBy   string           `json:"createdBy"`
	Created     time.Time        `json:"created"`
	Source      *skillSourceJSON `json:"source,omitempty" doc:"Source of the import; absent for an upload"`
	Findings    map[string]int   `json:"findings,omitempty" doc:"Number of findings by severity"`
	Unscanned   bool             `json:"unscanned" doc:"Whether the scan failed or timed out"`
	Diagnostics []api.Diagnostic `json:"diagnostics" nullable:"false" doc:"Repaired or unusual parts of SKILL.md"`
}

func skillVersionOf(v *library.Version) SkillVersion {
	return SkillVersion{
		SkillID: v.SkillID, Number: v.Number, Label: v.Label, Digest: v.Digest, Current: v.Current, Description: v.Description,
		Size: v.Size, Files: v.Files, Scripts: v.Scripts, Code: v.Code, Tokens: v.Tokens, Review: string(v.Review), Runnable: library.IsRunnable(v),
		Reviewer: v.Reviewer, Reviewed: api.OptionalTime(v.Reviewed), Note: v.Note, CreatedBy: v.CreatedBy, Created: v.Created,
		Source: skillSourceOf(v.Source), Findings: v.Findings, Unscanned: v.Unscanned, Diagnostics: api.DiagnosticsOf(v.Diagnostics),
	}
}
