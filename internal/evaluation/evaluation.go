// Package evaluation measures skills: whether a skill is valid and has no dangerous
// content, whether a search among all skills finds it for the prompts of its evaluation
// files, and whether a model loads it for them. It runs no code of a skill. Start reading
// at [Evaluate].
package evaluation

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/evalfile"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/skill"
)

// Considered is the number of search results that a model is expected to consider. A
// skill that should be loaded must be among them.
const Considered = 3

// Result is the evaluation of a skill.
type Result struct {
	Skill   string   `json:"skill"`
	Path    string   `json:"path"`
	Passed  bool     `json:"passed"`
	Static  Static   `json:"static"`
	Routing *Routing `json:"routing"` // null without cases
	Model   *Model   `json:"model"`   // null without a model or without cases
	Files   []string `json:"files"`   // that describe the evaluation
	// NotMeasured counts what the files contain and this evaluation does not measure.
	NotMeasured map[string]int     `json:"not_measured"`
	Problems    []evalfile.Problem `json:"problems"` // invalid parts of the files
}

// Static holds what is known from the files of the skill alone.
type Static struct {
	Passed      bool              `json:"passed"`
	Valid       bool              `json:"valid"`
	Complete    bool              `json:"complete"` // whether all files that the instructions refer to exist
	Diagnostics skill.Diagnostics `json:"diagnostics"`
	Findings    []scan.Finding    `json:"findings"` // with severity high
}

// Routing says whether a search among all skills finds a skill.
type Routing struct {
	Passed bool   `json:"passed"`
	Skills int    `json:"skills"` // number of skills searched
	Cases  []Case `json:"cases"`
	Share
	// Similar lists the skills that a search with this skill's description finds, other
	// than the skill itself, with their score relative to that of the skill.
	Similar []Similar `json:"similar"`
}

// Case is a case with its result.
type Case struct {
	evalfile.Case
	Passed bool   `json:"passed"`
	Rank   int    `json:"rank"`  // of the skill, or of an accepted one; 0 if it is not among the first ten
	First  string `json:"first"` // name of the best result; "" if there is none
}

// Similar is a skill that competes for the same prompts.
type Similar struct {
	Name  string  `json:"name"`
	Score float64 `json:"score"` // 1 means as good a match as the skill itself
}

const (
	searched   = 10 // results of a search
	maxSimilar = 3
	minSimilar = 0.5
)

// Evaluate evaluates the skill e of rt, whose files are in the directory dir, with the
// model m if it is not nil. Its error is the cause of ctx, or says that the skill cannot
// be read.
func Evaluate(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry, dir string, suite *evalfile.Suite, m llm.Model) (*Result, error) {
	out := &Result{Skill: e.Name, Path: dir, Files: list(suite.Files), NotMeasured: suite.NotMeasured, Problems: list(suite.Problems)}
	var err error
	if out.Static, err = check(ctx, dir); err != nil {
		return nil, err
	}
	out.Passed = out.Static.Passed && len(suite.Problems) == 0
	if len(suite.Cases) == 0 {
		return out, nil
	}
	if out.Routing, err = route(ctx, rt.Catalog(), e, suite.Cases); err != nil {
		return nil, err
	}
	if m == nil {
		out.Passed = out.Passed && out.Routing.Passed
		return out, nil
	}
	// A model that loads the skill outweighs a search that does not find it.
	out.Model, err = askAll(ctx, m, rt, e, suite.Cases)
	if err == nil {
		out.Passed = out.Passed && out.Model.Passed
	}
	return out, err
}

// check validates and scans the skill in a directory.
func check(ctx context.Context, dir string) (Static, error) {
	valid, err := skillcheck.Validate(ctx, dir)
	if err != nil {
		return Static{}, err
	}
	scanned, err := skillcheck.ScanPath(ctx, dir)
	if err != nil {
		return Static{}, err
	}
	out := Static{Valid: true, Complete: true, Diagnostics: skill.Diagnostics{}, Findings: []scan.Finding{}}
	for _, v := range valid {
		out.Valid = out.Valid && v.Valid
		out.Complete = out.Complete && !slices.ContainsFunc(v.Diagnostics, func(d skill.Diagnostic) bool { return d.Code == "reference-missing" })
		out.Diagnostics = append(out.Diagnostics, v.Diagnostics...)
	}
	for _, s := range scanned {
		for _, f := range s.Findings {
			if f.Severity == scan.High {
				out.Findings = append(out.Findings, f)
			}
		}
	}
	out.Passed = out.Valid && out.Complete && len(out.Findings) == 0
	return out, nil
}

// route searches for each prompt.
func route(ctx context.Context, c *catalog.Catalog, e *catalog.Entry, cases []evalfile.Case) (*Routing, error) {
	out := &Routing{Skills: len(c.Snapshot().Skills()), Cases: make([]Case, len(cases)), Similar: []Similar{}}
	var passed tally
	for i, one := range cases {
		hits, err := c.Search(ctx, one.Prompt, catalog.SearchOptions{Limit: searched, ForModel: true})
		if err != nil {
			return nil, err
		}
		out.Cases[i] = judge(one, e, hits)
		passed.add(out.Cases[i].Passed)
	}
	out.Passed, out.Share = passed.all(), passed.share()
	hits, err := c.Search(ctx, e.Description, catalog.SearchOptions{Limit: searched, ForModel: true})
	if err != nil {
		return nil, err
	}
	own := slices.IndexFunc(hits, func(h catalog.Hit) bool { return h.Key() == e.Key() })
	for _, h := range hits {
		if own < 0 || len(out.Similar) == maxSimilar {
			break
		}
		if score := h.Score / hits[own].Score; h.Key() != e.Key() && score >= minSimilar {
			out.Similar = append(out.Similar, Similar{h.Name, math.Round(score*100) / 100})
		}
	}
	return out, nil
}

// judge compares the results of a search with what a case expects.
func judge(c evalfile.Case, e *catalog.Entry, hits []catalog.Hit) Case {
	out := Case{Case: c}
	own := 0 // rank of the skill itself
	for i, h := range hits {
		if i == 0 {
			out.First = h.Name
		}
		if h.Key() == e.Key() {
			own = i + 1
		}
		if out.Rank == 0 && (h.Key() == e.Key() || c.Trigger && slices.Contains(c.Accept, h.Name)) {
			out.Rank = i + 1
		}
	}
	if c.Trigger {
		out.Passed = out.Rank > 0 && out.Rank <= Considered
	} else {
		out.Passed = own != 1
	}
	return out
}

// ListNotMeasured returns the kinds in NotMeasured with their counts, in order.
func (r *Result) ListNotMeasured() []string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(r.NotMeasured)) {
		out = append(out, fmt.Sprintf("%s (%d)", kind, r.NotMeasured[kind]))
	}
	return out
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
