package skillapi

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/store"
)

// scanJSON is the result of scanning a version.
type scanJSON struct {
	Findings  []scan.Finding `json:"findings" nullable:"false"`
	Files     int            `json:"files" doc:"Scanned files"`
	Bytes     int64          `json:"bytes" doc:"Scanned bytes"`
	Truncated bool           `json:"truncated" doc:"Whether something was not scanned or not stored"`
}

func (h *Handlers) getFindings(ctx context.Context, in *VersionPath) (*api.Body[scanJSON], error) {
	report, err := h.Library.Findings(ctx, account.FromContext(ctx), in.Skill, in.number())
	if err != nil {
		return nil, err
	}
	if report == nil {
		report = &scan.Report{Truncated: true} // no scan was stored
	}
	return api.BodyOf(scanJSON{api.NonNil(report.Findings), report.Files, report.Bytes, report.Truncated}, nil)
}

// skillDiffJSON is the difference between two versions of a skill.
type skillDiffJSON struct {
	Name         string                  `json:"name"`
	Old          *skilldiff.Version      `json:"old,omitempty"`
	New          *skilldiff.Version      `json:"new,omitempty"`
	Files        []skilldiff.File        `json:"files" nullable:"false" doc:"Changed files by path"`
	Same         int                     `json:"same" doc:"Number of unchanged files"`
	Instructions string                  `json:"instructions,omitempty" doc:"Unified diff of SKILL.md"`
	Fields       []skilldiff.FieldChange `json:"fields" nullable:"false" doc:"Metadata of the skill"`
	Permissions  diffAsksJSON            `json:"asks"`
	Findings     diffFoundJSON           `json:"findings"`
	Problems     []string                `json:"problems" nullable:"false" doc:"What could not be compared"`
}

// diffAsksJSON lists changes to the requested permissions.
type diffAsksJSON struct {
	More []skilldiff.PermissionChange `json:"more" nullable:"false" doc:"New permissions, to be reviewed"`
	Less []skilldiff.PermissionChange `json:"less" nullable:"false"`
}

// diffFoundJSON is the difference between two scan results.
type diffFoundJSON struct {
	New       []scan.Finding `json:"new" nullable:"false"`
	Removed   int            `json:"gone"`
	Unchanged int            `json:"kept"`
	Truncated bool           `json:"truncated"`
}

func newSkillDiffJSON(d *skilldiff.Diff) skillDiffJSON {
	return skillDiffJSON{Name: d.Name, Old: d.Old, New: d.New, Files: api.NonNil(d.Files), Same: d.Unchanged,
		Instructions: d.Instructions, Fields: api.NonNil(d.Fields), Problems: api.NonNil(d.Problems),
		Permissions: diffAsksJSON{api.NonNil(d.Permissions.More), api.NonNil(d.Permissions.Less)},
		Findings:    diffFoundJSON{api.NonNil(d.Findings.New), d.Findings.Removed, d.Findings.Unchanged, d.Findings.Truncated}}
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
		if from, err = h.previousVersion(ctx, p, &in.VersionPath); err != nil {
			return nil, err
		}
	}
	d, err := h.Library.Diff(ctx, p, in.Skill, from, in.number(), &skilldiff.Options{Texts: !in.Brief, NoScan: in.Brief})
	if err != nil {
		return nil, err
	}
	return api.BodyOf(newSkillDiffJSON(d), nil)
}

// previousVersion returns the number of the newest earlier version that the
// principal may access, or [library.NoVersion] if there is none.
func (h *Handlers) previousVersion(ctx context.Context, p account.Principal, v *VersionPath) (int64, error) {
	number, err := h.resolveNumber(ctx, p, v)
	if err != nil {
		return 0, err
	}
	earlier, err := h.Library.Versions(ctx, p, v.Skill, number, store.MaxPage)
	if err != nil {
		return 0, err
	}
	if len(earlier) == 0 {
		return 0, &api.Problem{Status: 422, Code: "invalid", Detail: "there is no previous version", Next: "name a version to compare with: from=NUMBER", Errors: []api.Fault{{Where: "query.from", Message: "is needed"}}}
	}
	i := slices.IndexFunc(earlier, func(v *library.Version) bool { return !v.Withheld })
	if i < 0 {
		return library.NoVersion, nil
	}
	return earlier[i].Number, nil
}
