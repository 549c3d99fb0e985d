package skillapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skilldiff"
)

// findingJSON is a finding of a scan.
type findingJSON struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity" enum:"info,low,medium,high"`
	File     string `json:"file"`
	Line     int    `json:"line" doc:"0 for the whole file"`
	Column   int    `json:"column"`
	Excerpt  string `json:"excerpt"`
	Message  string `json:"message"`
	Advice   string `json:"advice"`
}

func findingsOf(found []scan.Finding) []findingJSON {
	out := make([]findingJSON, len(found))
	for i, f := range found {
		out[i] = findingJSON{f.Rule, f.Severity.String(), f.File, f.Line, f.Column, f.Excerpt, f.Message, f.Advice}
	}
	return out
}

// scanJSON is the result of scanning a version.
type scanJSON struct {
	Findings  []findingJSON `json:"findings" nullable:"false"`
	Files     int           `json:"files" doc:"Scanned files"`
	Bytes     int64         `json:"bytes" doc:"Scanned bytes"`
	Truncated bool          `json:"truncated" doc:"Whether something was not scanned or not stored"`
}

func (h *Handlers) getFindings(ctx context.Context, in *VersionPath) (*api.Body[scanJSON], error) {
	report, err := h.Library.Findings(ctx, account.FromContext(ctx), in.Skill, in.number())
	if err != nil {
		return nil, err
	}
	if report == nil {
		report = &scan.Report{Truncated: true} // no scan is stored
	}
	return api.BodyOf(scanJSON{findingsOf(report.Findings), report.Files, report.Bytes, report.Truncated}, nil)
}

// skillDiffJSON compares two versions of a skill.
type skillDiffJSON struct {
	Name         string          `json:"name"`
	Old          *diffSideJSON   `json:"old,omitempty"`
	New          *diffSideJSON   `json:"new,omitempty"`
	Files        []diffFileJSON  `json:"files" nullable:"false" doc:"Changed files by path"`
	Same         int             `json:"same" doc:"Number of unchanged files"`
	Instructions string          `json:"instructions,omitempty" doc:"Unified diff of SKILL.md"`
	Fields       []diffFieldJSON `json:"fields" nullable:"false" doc:"Metadata of the skill"`
	Permissions  diffAsksJSON    `json:"asks"`
	Findings     diffFoundJSON   `json:"findings"`
	Problems     []string        `json:"problems" nullable:"false" doc:"What could not be compared"`
}

type diffSideJSON struct {
	Version string `json:"version,omitempty" doc:"As stated by the skill"`
	Digest  string `json:"digest"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Scripts int    `json:"scripts"`
}

type diffFileJSON struct {
	Path      string `json:"path"`
	From      string `json:"from,omitempty" doc:"Previous path"`
	Change    string `json:"change" enum:"added,removed,changed,renamed,mode"`
	Script    bool   `json:"script"`
	Text      bool   `json:"text" doc:"Whether lines were compared"`
	Added     int    `json:"added" doc:"Added lines"`
	Removed   int    `json:"removed" doc:"Removed lines"`
	OldSize   int64  `json:"old_size"`
	NewSize   int64  `json:"new_size"`
	OldSHA256 string `json:"old_sha256,omitempty"`
	NewSHA256 string `json:"new_sha256,omitempty"`
	Diff      string `json:"diff,omitempty" doc:"Unified diff; that of SKILL.md is in instructions"`
	Omitted   string `json:"omitted,omitempty" doc:"What is omitted, and why"`
}

type diffFieldJSON struct {
	Name string `json:"name"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// diffAsksJSON holds the changes of the requested permissions.
type diffAsksJSON struct {
	More []diffAskJSON `json:"more" nullable:"false" doc:"To be reviewed"`
	Less []diffAskJSON `json:"less" nullable:"false"`
}

type diffAskJSON struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// diffFoundJSON compares the findings of two scans.
type diffFoundJSON struct {
	New       []findingJSON `json:"new" nullable:"false"`
	Removed   int           `json:"gone"`
	Unchanged int           `json:"kept"`
	Truncated bool          `json:"truncated"`
}

// skillDiffOf converts a diff.
func skillDiffOf(d *skilldiff.Diff) skillDiffJSON {
	out := skillDiffJSON{Name: d.Name, Old: diffSideOf(d.Old), New: diffSideOf(d.New), Files: make([]diffFileJSON, len(d.Files)), Same: d.Unchanged,
		Instructions: d.Instructions, Fields: make([]diffFieldJSON, len(d.Fields)), Problems: api.NonNil(d.Problems),
		Permissions: diffAsksJSON{diffAsksOf(d.Permissions.More), diffAsksOf(d.Permissions.Less)},
		Findings:    diffFoundJSON{findingsOf(d.Findings.New), d.Findings.Removed, d.Findings.Unchanged, d.Findings.Truncated}}
	for i, f := range d.Files {
		out.Files[i] = diffFileJSON{f.Path, f.From, string(f.Change), f.Script, f.Text, f.Added, f.Removed, f.OldSize, f.NewSize, f.OldSHA256, f.NewSHA256, f.Diff, f.Omitted}
	}
	for i, f := range d.Fields {
		out.Fields[i] = diffFieldJSON(f)
	}
	return out
}

func diffSideOf(v *skilldiff.Version) *diffSideJSON {
	if v == nil {
		return nil
	}
	return &diffSideJSON{v.Version, v.Digest, v.Files, v.Bytes, v.Scripts}
}

func diffAsksOf(asks []skilldiff.PermissionChange) []diffAskJSON {
	out := make([]diffAskJSON, len(asks))
	for i, a := range asks {
		out[i] = diffAskJSON(a)
	}
	return out
}

func (h *Handlers) getDiff(ctx context.Context, in *struct {
	VersionPath
	From  string `query:"from" pattern:"^(current|none|[1-9][0-9]{0,17})$" patternDescription:"a number, current, or none" doc:"Number of the older version, or current; none lists all metadata and permissions of the version; default the previous version"`
	Brief bool   `query:"brief" doc:"Without findings and without diffs of files other than SKILL.md"`
}) (*api.Body[skillDiffJSON], error) {
	p := account.FromContext(ctx)
	from := versionNumber(in.From)
	switch in.From {
	case "none":
		from = library.NoVersion
	case "":
		var err error
		if from, err = h.before(ctx, p, &in.VersionPath); err != nil {
			return nil, err
		}
	}
	d, err := h.Library.Diff(ctx, p, in.Skill, from, in.number(), &skilldiff.Options{Texts: !in.Brief, NoScan: in.Brief})
	if err != nil {
		return nil, err
	}
	return api.BodyOf(skillDiffOf(d), nil)
}

// before returns the number of the previous version.
func (h *Handlers) before(ctx context.Context, p account.Principal, v *VersionPath) (int64, error) {
	number, err := h.resolveNumber(ctx, p, v)
	if err != nil {
		return 0, err
	}
	earlier, err := h.Library.Versions(ctx, p, v.Skill, number, 1)
	if err != nil {
		return 0, err
	}
	if len(earlier) == 0 {
		return 0, &api.Problem{Status: 422, Code: "invalid", Detail: "there is no previous version", Next: "name a version to compare with: from=NUMBER", Errors: []api.Fault{{Where: "query.from", Message: "is needed"}}}
	}
	return earlier[0].Number, nil
}
