package library

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// SourceListing lists the skills available in an import source.
type SourceListing struct {
	Source   string        `json:"source" doc:"Source for the import"`
	Ref      string        `json:"ref,omitempty" doc:"Resolved branch or tag"`
	Commit   string        `json:"commit,omitempty" doc:"Pass it to the import to get exactly these skills"`
	Skills   []SourceSkill `json:"skills" nullable:"false"`
	Problems []string      `json:"problems" nullable:"false" doc:"Problems of the source, its skills and its index"`
	Broken   []BrokenSkill `json:"broken" nullable:"false" doc:"The same as problems, in parts"`
}

// BrokenSkill is a problem of a source, of one of its skills, or of an entry of its
// index.
type BrokenSkill struct {
	Path     string         `json:"path" doc:"In the source"`
	Severity skill.Severity `json:"severity" enum:"error,warning" doc:"error: the skill cannot be imported"`
	Code     string         `json:"code" doc:"Kind of problem, for example that of a diagnostic about a SKILL.md"`
	Message  string         `json:"message"`
	Fix      string         `json:"fix,omitempty"`
}

// SourceSkill is a skill available in an import source.
type SourceSkill struct {
	Dir         string `json:"dir" doc:"Identifies the skill in the source"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version,omitempty" doc:"Version given by the author"`
	Existing    *Skill `json:"here,omitempty" doc:"Existing skill of the same name in the namespace"`
	Same        bool   `json:"same" doc:"Whether the existing skill has the same files"`
	Problem     string `json:"problem,omitempty" doc:"Why it cannot be imported"`
	// ProblemCode is the code of Problem, or "" for an error of the source.
	ProblemCode SkipCode `json:"problem_code,omitempty" doc:"Kind of problem, as in reason_code of an import"`
}

// Inspect lists the skills in a source and the existing skills of a namespace
// with the same names. The source is in the syntax of package remote. The
// principal must be allowed to upload to the namespace. Inspect refuses local
// paths, private networks and ssh, except for hosts that [Options.Private]
// permits. It also returns errors from package remote.
func (l *Library) Inspect(ctx context.Context, p account.Principal, in Namespace, source string) (*SourceListing, error) {
	var out *SourceListing
	err := l.openSourceFor(ctx, p, in, source, "", false, func(offer *remote.Collection) error {
		out = &SourceListing{Source: offer.Location.String(), Ref: offer.Revision.Ref, Commit: offer.Revision.Commit, Skills: []SourceSkill{}, Problems: []string{}, Broken: []BrokenSkill{}}
		for _, pr := range offer.Problems {
			out.Problems = append(out.Problems, printable.OneLine(pr.Path+": "+pr.Message))
			severity := pr.Severity
			if severity == skill.Info { // such as directories that are not searched
				severity = skill.Warning
			}
			out.Broken = append(out.Broken, BrokenSkill{printable.OneLine(pr.Path), severity, pr.Code, printable.OneLine(pr.Message), printable.OneLine(pr.Fix)})
		}
		for i, s := range offer.Skills {
			reportProgress(ctx, Comparing, int64(i), int64(len(offer.Skills)))
			o, err := l.describeOffered(ctx, p, in, offer, s)
			if err != nil {
				return err
			}
			out.Skills = append(out.Skills, o)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// openSourceFor opens a source and calls f if the principal may upload to the
// namespace. keepTop is [remote.Options.KeepTop].
func (l *Library) openSourceFor(ctx context.Context, p account.Principal, in Namespace, source, commit string, keepTop bool, f func(*remote.Collection) error) error {
	if err := l.authorizeIn(ctx, p, account.SkillUpload, in, "import"); err != nil {
		return err
	}
	at, err := l.parseSource(source)
	if err != nil {
		return err
	}
	if commit != "" && at.Kind == remote.Git {
		at.Ref = commit
	}
	return l.openSource(ctx, p.User, at, keepTop, f)
}

// openSource opens a source with the user's credentials and calls f.
func (l *Library) openSource(ctx context.Context, user account.UserID, at remote.Location, keepTop bool, f func(*remote.Collection) error) error {
	if err := l.checkLocation(at); err != nil {
		return err
	}
	done, err := acquireSlot(ctx, l.sourceSlots)
	if err != nil {
		return err
	}
	defer done()
	var fetched atomic.Bool // importing a skill may download it, which is another phase
	offer, err := l.newClient(user, inspectTimeout, keepTop, func(p remote.Progress) {
		if !fetched.Load() {
			reportProgress(ctx, Fetching, p.Done, p.Total)
		}
	}).Open(ctx, at)
	if err != nil {
		return wrapSourceError(err)
	}
	defer offer.Close()
	fetched.Store(true)
	return f(offer)
}

// describeOffered describes a skill in a source. It reads the files only to
// compare them with an existing skill.
func (l *Library) describeOffered(ctx context.Context, p account.Principal, in Namespace, offer *remote.Collection, s remote.Skill) (SourceSkill, error) {
	o := SourceSkill{Dir: s.Dir, Name: s.Name, Description: untrusted.New(s.Description).ForPage(), Version: s.Version}
	if err := checkName(s.Name); err != nil {
		o.Problem, o.ProblemCode = err.Error(), skipCode(err)
		return o, nil
	}
	existing, err := l.findExisting(ctx, p, in, s.Name)
	switch {
	case err != nil || existing == nil:
		return o, err
	case existing.isOutOfReach(p):
		err = errOutOfReach
	case existing.ID != "":
		o.Existing = newSkill(existing.record.Skill, nil)
		o.Same, err = hasFiles(ctx, offer, s, o.Existing.Digest)
	}
	if err != nil {
		o.Problem, o.ProblemCode = err.Error(), skipCode(err)
	}
	return o, ctx.Err()
}

// hasFiles reports whether the files of a skill in a source have the given digest.
func hasFiles(ctx context.Context, offer *remote.Collection, s remote.Skill, digest string) (bool, error) {
	b, err := offer.OpenSkill(ctx, s)
	if err != nil {
		return false, err
	}
	defer b.Close()
	files, _, err := skill.ReadManifest(b.FS)
	return err == nil && files.Digest() == digest, err
}

// ImportSelection selects the skills to import. Dirs and Overwrite may each have
// up to 2,000 entries.
type ImportSelection struct {
	Commit string   `json:"commit,omitempty"` // commit of the [SourceListing]; "" means the latest
	Dirs   []string `json:"dirs"`             // directories of the skills; empty selects all
	// Overwrite lists the names of existing skills that get a new version.
	Overwrite []string `json:"overwrite"`
	// Downgrade also imports signed skills that are older than a version of the
	// existing skill, or signed with another or an expired key.
	Downgrade bool `json:"downgrade,omitempty"`
}

// ImportResult is the result of an import.
type ImportResult struct {
	Created []ImportChange `json:"created" nullable:"false"`
	Updated []ImportChange `json:"updated" nullable:"false"`
	Skipped []ImportChange `json:"skipped" nullable:"false"`
}

// ImportChange is the result for one skill.
type ImportChange struct {
	ID     string `json:"id,omitempty" doc:"Absent if the hub has no such skill"`
	Name   string `json:"name"`
	Dir    string `json:"dir" doc:"In the source"`
	Number int64  `json:"number,omitempty" doc:"Number of the version with these files"`
	// Pending is set only for updated and skipped skills.
	Pending bool   `json:"pending,omitempty" doc:"Whether the version is awaiting review; until then, users keep the current version"`
	Reason  string `json:"reason,omitempty" doc:"Why it was skipped"`
	// ReasonCode is the code of Reason, or "" if it has none.
	ReasonCode SkipCode `json:"reason_code,omitempty" doc:"Kind of reason: unchanged, pending, exists, taken, duplicate, not_found, changes_requested, rejected, withdrawn, pinned, uploaded, too_many, forbidden, quota, bad_name, bad_skill, bad_package, source, invalid, or as in code"`
	// Code is set if downgrade in the request would import it.
	Code DowngradeReason `json:"code,omitempty" enum:"downgrade,key_changed,key_expired" doc:"Set if downgrade would import it: it is older than a version here, or signed by another key or one that expired"`
}

func newImported() *ImportResult {
	return &ImportResult{[]ImportChange{}, []ImportChange{}, []ImportChange{}}
}

// Import imports skills from a source into a namespace. It creates new skills and
// adds versions to the existing skills listed in Overwrite. It skips other
// existing skills, skills with problems and, after a change, skills that exceed a
// quota; the result contains the reasons. If Import fails, the result lists the
// changes made before the error.
func (l *Library) Import(ctx context.Context, p account.Principal, in Namespace, source string, c ImportSelection) (*ImportResult, error) {
	out := newImported()
	if n := max(len(c.Dirs), len(c.Overwrite)); n > maxOffered {
		return out, invalidf("too many skills selected (%d, limit %d)", n, maxOffered)
	}
	err := l.openSourceFor(ctx, p, in, source, c.Commit, false, func(offer *remote.Collection) error {
		at, err := l.parseSource(source)
		if err != nil {
			return err
		}
		selected := slices.DeleteFunc(slices.Clone(offer.Skills), func(s remote.Skill) bool {
			return len(c.Dirs) > 0 && !slices.Contains(c.Dirs, s.Dir)
		})
		names := map[string]string{} // directories of imported skills, by name
		for i, s := range selected {
			reportProgress(ctx, Importing, int64(i), int64(len(selected)))
			if other, twice := names[s.Name]; twice {
				out.skip("", s.Name, s.Dir, skipf(SkipDuplicate, "has the same name as the skill in %s", other))
				continue
			}
			names[s.Name] = s.Dir
			from := newSource(p, at, offer, s)
			if err := l.importOne(ctx, p, in, offer, s, from, slices.Contains(c.Overwrite, s.Name), c.Downgrade, out); err != nil {
				return err
			}
		}
		for _, dir := range c.Dirs {
			if !slices.ContainsFunc(offer.Skills, func(s remote.Skill) bool { return s.Dir == dir }) {
				out.skip("", dir, dir, skipf(SkipNotFound, "skill not found"))
			}
		}
		return nil
	})
	return out, err
}

// newSource returns the source to store with an imported skill. Ref is the ref
// that updates follow; Commit is the imported commit.
func newSource(p account.Principal, at remote.Location, offer *remote.Collection, s remote.Skill) *Source {
	return &Source{
		Kind: string(at.Kind), URL: at.URL, Dir: s.Dir, Ref: at.Ref, Commit: offer.Revision.Commit,
		Imported: time.Now().UTC().Truncate(time.Second), By: string(p.User),
	}
}

func (l *Library) importOne(ctx context.Context, p account.Principal, in Namespace, offer *remote.Collection, s remote.Skill, from *Source, overwrite, downgrade bool, out *ImportResult) error {
	existing, err := l.findExisting(ctx, p, in, s.Name)
	if err != nil {
		return err
	}
	if existing != nil && existing.isOutOfReach(p) {
		out.skip("", s.Name, s.Dir, errOutOfReach)
		return nil
	}
	if existing != nil && !overwrite {
		why := errNotSelected
		if existing.ID != "" {
			if same, err := hasFiles(ctx, offer, s, existing.record.Digest); same && err == nil {
				why = errUnchanged
			}
		}
		out.skip(existing.ID, s.Name, s.Dir, why)
		return ctx.Err()
	}
	change := ImportChange{Name: s.Name, Dir: s.Dir}
	err = l.withOffered(ctx, offer, s, func(c *content) error {
		if existing != nil {
			change.ID = existing.record.ID
			change.Number, change.Pending, err = l.updateFromSource(ctx, p, change.ID, c, from, downgrade)
			return err
		}
		if err := c.checkFirstRelease(downgrade); err != nil {
			return err
		}
		if err := l.storeFiles(ctx, in, c, 1); err != nil {
			return err
		}
		change.Number = 1
		change.ID, err = l.create(ctx, p, in, c, from)
		return err
	})
	switch {
	case err == nil && existing != nil:
		out.Updated = append(out.Updated, change)
	case err == nil:
		out.Created = append(out.Created, change)
	case out.isSkipReason(err):
		out.skipChange(change, err)
	default:
		return err
	}
	return nil
}

// isSkipReason reports whether err causes the import to skip only one skill. This
// includes an exceeded quota if the import has already changed something, because
// the result must list the changes.
func (i *ImportResult) isSkipReason(err error) bool {
	return isSkillError(err) || isA[*quota.ExceededError](err) && len(i.Created)+len(i.Updated) > 0
}

// withOffered reads a skill from a source and passes its content to f.
func (l *Library) withOffered(ctx context.Context, offer *remote.Collection, s remote.Skill, f func(*content) error) error {
	b, err := offer.OpenSkill(ctx, s)
	if err != nil {
		return wrapSourceError(err)
	}
	defer b.Close()
	done, err := acquireSlot(ctx, l.packageSlots)
	if err != nil {
		return err
	}
	defer done()
	c, err := l.readContent(ctx, b)
	if err != nil {
		return err
	}
	return f(c)
}

// updateFromSource adds a version with the files of a source, or makes an existing
// version with these files current. It reports whether the version is awaiting
// review. If the version is already current, is already awaiting review or was
// rejected, updateFromSource only records the source and returns the error from
// unchangedError. It does the same for a withdrawn version, so that an update does
// not undo a reversion. Unless downgrade is set, the files must not be those of an
// older version, and a signed skill must not be older than the stored versions.
func (l *Library) updateFromSource(ctx context.Context, p account.Principal, id string, c *content, from *Source, downgrade bool) (number int64, pending bool, err error) {
	h, err := l.authorizeChange(ctx, p, id)
	if err == nil {
		err = c.checkSameSkill(h)
	}
	if err != nil {
		return 0, false, err
	}
	digest := c.manifest.Digest()
	if digest != h.Digest {
		if err := l.checkRelease(ctx, h, c, downgrade); err != nil {
			return 0, false, err
		}
	}
	v, err := l.db.Versions.GetByDigest(ctx, id, digest)
	if err != nil && !isNotFound(err) {
		return 0, false, err
	}
	if isNotFound(err) {
		if err := l.storeFiles(ctx, h.Namespace, c, 0); err != nil {
			return 0, false, err
		}
		return l.appendVersion(ctx, p, id, c, from)
	}
	if v.Number < h.Number && !downgrade {
		return 0, false, downgradef(Downgraded, "downgrade of skill %q: version %d has these files, and version %d is current", h.Name, v.Number, h.Number)
	}
	same, state := false, skillstate.Pending
	err = l.update(ctx, p, account.SkillChange, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		if state = facts(v).State(h.Number); state == skillstate.Withdrawn {
			return nil, unchangedError(v, state, false)
		}
		same = h.Number == v.Number || !mayBeCurrent(h.Skill, v)
		pending = v.Review == Pending && !mayBeCurrent(h.Skill, v)
		if !same {
			if err := l.setCurrent(ctx, tx, v); err != nil {
				return nil, err
			}
		}
		return newUploadDetails(h, v, from), setSource(ctx, tx, id, from)
	})
	if err == nil && same {
		err = unchangedError(v, state, pending)
	}
	return v.Number, pending, err
}
