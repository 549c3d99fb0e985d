package library

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

// Collection is an uploaded file or a source with any number of skills and other
// files, for a namespace. It is not safe for concurrent use.
type Collection struct {
	*remote.Collection
	l       *Library
	p       account.Principal
	in      Namespace
	planned quota.Amounts // of the new skills that Compare found
}

// WithCollection opens an uploaded file and calls f, which must not keep the
// collection. The file is a ZIP, a gzipped tar, or a single other file named name.
// The principal must be allowed to upload to the namespace.
func (l *Library) WithCollection(ctx context.Context, p account.Principal, in Namespace, name string, data io.Reader, f func(*Collection) error) error {
	if err := l.authorizeIn(ctx, p, account.SkillUpload, in, name); err != nil {
		return err
	}
	ctx, stop := withTimeLimit(ctx)
	defer stop()
	file, err := l.spoolUpload(data, maxDownload)
	if err != nil {
		return err
	}
	defer file.Close()
	done, err := acquireSlot(ctx, l.sourceSlots)
	if err != nil {
		return err
	}
	defer done()
	client := remote.New(&remote.Options{KeepTop: true, TempDir: l.opts.TempDir,
		Limits: remote.Limits{Unpacked: maxUnpacked, Entries: maxEntries, Skills: maxOffered, Time: inspectTimeout, Skill: l.opts.Limits}})
	offer, err := client.OpenUpload(ctx, name, file, file.size)
	if err != nil {
		return uploadError(ctx, err)
	}
	defer offer.Close()
	return f(&Collection{Collection: offer, l: l, p: p, in: in})
}

// WithSource opens a source and calls f, which must not keep the collection. The
// source is as for [Library.Inspect], but not a site that publishes skills. If it is
// a repository and commit is not "", WithSource reads the files of this commit. The
// principal must be allowed to upload to the namespace.
func (l *Library) WithSource(ctx context.Context, p account.Principal, in Namespace, source, commit string, f func(*Collection) error) error {
	return l.openSourceFor(ctx, p, in, source, commit, true, func(offer *remote.Collection) error {
		if offer.Files() == nil {
			return &remote.LocationError{Text: offer.Location.String(), Reason: "a site that publishes skills has no other files; use a repository or an archive"}
		}
		return f(&Collection{Collection: offer, l: l, p: p, in: in})
	})
}

// uploadError converts an error from opening an uploaded file. Errors other than
// those of this machine are caused by the file.
func uploadError(ctx context.Context, err error) error {
	_, here := errors.AsType[*fs.PathError](err)
	_, refused := errors.AsType[*skill.RefusedError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case here, refused:
		return mapDiskFull(err)
	}
	return invalidf("%v", err)
}

// Presence describes a skill of a [Collection] in comparison with its namespace.
type Presence struct {
	ID      string // existing skill of the same name, or ""
	Same    bool   // whether a version of that skill has the same files
	Digest  string // of the files in the collection
	Problem string // why the skill cannot be added
}

// Compare checks a skill of the collection as if it were uploaded, and compares it
// with the skill of the same name in the namespace. The check of the quota includes
// the new skills of earlier calls.
func (c *Collection) Compare(ctx context.Context, s remote.Skill) (out Presence, err error) {
	out.Problem, err = c.withSkill(ctx, s, func(content *content) error { return c.compare(ctx, content, &out) })
	return out, err
}

// CompareText is like [Collection.Compare] for a skill that consists of a SKILL.md.
func (c *Collection) CompareText(ctx context.Context, name string, file []byte) (out Presence, err error) {
	content, err := c.l.readText(ctx, SkillText{In: c.in, Name: name, File: file})
	if err == nil {
		err = c.compare(ctx, content, &out)
	}
	out.Problem, err = splitProblem(err)
	return out, err
}

func (c *Collection) compare(ctx context.Context, content *content, out *Presence) (err error) {
	out.Digest = content.manifest.Digest()
	out.ID, out.Same, err = c.findVersion(ctx, content)
	if err != nil || out.ID != "" {
		return err
	}
	if err := content.checkFirstRelease(false); err != nil {
		return err
	}
	return c.plan(ctx, manifestSize(content.manifest))
}

// plan records that a skill will be added. It returns a [*quota.ExceededError] if the
// namespace may not store it besides the other planned skills.
func (c *Collection) plan(ctx context.Context, size int64) error {
	all := quota.Amounts{Skills: c.planned.Skills + 1, Bytes: c.planned.Bytes + size}
	if err := c.l.opts.Quotas.Check(ctx, &c.l.db.Tables, c.in, all); err != nil {
		return err
	}
	c.planned = all
	return nil
}

// withSkill reads and checks a skill of the collection and passes its content to f.
// If the skill is invalid, or f fails for a reason that concerns only this skill or
// because of a quota, problem is the reason.
func (c *Collection) withSkill(ctx context.Context, s remote.Skill, f func(*content) error) (problem string, err error) {
	read := false
	err = c.l.withOffered(ctx, c.Collection, s, func(content *content) error {
		read = true
		return f(content)
	})
	_, here := errors.AsType[*fs.PathError](err) // would reveal a path on this machine
	if err != nil && !read && !here && ctx.Err() == nil && !errors.Is(err, ErrFull) {
		return err.Error(), nil
	}
	return splitProblem(err)
}

// splitProblem returns an error that concerns only one skill, or a quota, as its
// text.
func splitProblem(err error) (problem string, other error) {
	if isA[*quota.ExceededError](err) || isSkillError(err) {
		return err.Error(), nil
	}
	return "", err
}

// findVersion returns the skill that the namespace lists under the name of content, or
// "", and whether a version of it has these files. It returns an [*ExistsError] for a
// skill that the principal may not see.
func (c *Collection) findVersion(ctx context.Context, content *content) (id string, same bool, err error) {
	existing, err := c.l.findExisting(ctx, c.p, c.in, content.skill.Name)
	switch {
	case err != nil || existing == nil:
		return "", false, err
	case existing.ID == "":
		return "", false, &ExistsError{content.skill.Name, *existing}
	}
	_, err = c.l.db.Versions.GetByDigest(ctx, existing.ID, content.manifest.Digest())
	if isNotFound(err) {
		return existing.ID, false, nil
	}
	return existing.ID, err == nil, err
}

// Add adds a skill of the collection to the namespace, as [Library.Upload] does. It
// never changes an existing skill. If the skill cannot be added, but others may be,
// problem is the reason.
func (c *Collection) Add(ctx context.Context, s remote.Skill) (id, problem string, err error) {
	problem, err = c.withSkill(ctx, s, func(content *content) (err error) {
		id, err = c.l.addContent(ctx, c.p, c.in, content)
		return err
	})
	return id, problem, err
}

// AddText is like [Collection.Add] for a skill that consists of a SKILL.md.
func (c *Collection) AddText(ctx context.Context, name string, file []byte) (id, problem string, err error) {
	content, err := c.l.readText(ctx, SkillText{In: c.in, Name: name, File: file})
	if err == nil {
		id, err = c.l.addContent(ctx, c.p, c.in, content)
	}
	problem, err = splitProblem(err)
	return id, problem, err
}

// addContent stores a new skill.
func (l *Library) addContent(ctx context.Context, p account.Principal, in Namespace, c *content) (string, error) {
	if err := c.checkFirstRelease(false); err != nil {
		return "", err
	}
	if err := l.checkNameFree(ctx, p, in, c); err != nil {
		return "", err
	}
	if err := l.storeFiles(ctx, in, c, 1); err != nil {
		return "", err
	}
	return l.create(ctx, p, in, c, nil)
}
