package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// content is a skill read from an upload or an import source, with its files.
type content struct {
	skill    *skill.Skill
	fsys     fs.FS
	manifest skill.Manifest
	meta     *meta
	findings json.RawMessage

	changelog string // one line by the author
	base      int64  // the newest version that the author knows, or 0
}

// readContent reads the skill in b. It returns an error if the skill is invalid.
func (l *Library) readContent(ctx context.Context, b *skill.Bundle) (*content, error) {
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &skill.RefusedError{What: "skill", Refusals: []skill.Refusal{{Code: "no-skill", Message: "the package contains no SKILL.md"}}}
	}
	if err != nil {
		return nil, fmt.Errorf("read SKILL.md: %w", mapDiskFull(err))
	}
	if s == nil || !ds.Loads() {
		return nil, &BrokenError{Diagnostics: ds}
	}
	if err := checkName(s.Name); err != nil {
		return nil, err
	}
	file, err := skillfile.Find(b.FS)
	if err != nil {
		return nil, err
	}
	files, _, err := skill.ReadManifest(b.FS)
	if err != nil {
		return nil, fmt.Errorf("read skill %q: %w", s.Name, mapDiskFull(err))
	}
	if found := l.opts.Limits.Check(files); found != nil {
		return nil, &skill.RefusedError{What: "skill", Refusals: found}
	}
	m := newMeta(s, ds, file, files)
	m.Questions = readQuestions(b.FS, s.Name)
	return &content{skill: s, fsys: b.FS, manifest: files, meta: m}, ctx.Err()
}

// storeFiles scans the files and stores them in the database, so that a version
// can reference them. skills is the number of skills that will be added to the
// namespace: 1 for a new skill, or 0 for a new version of an existing one.
func (l *Library) storeFiles(ctx context.Context, in Namespace, c *content, skills int64) error {
	// Adding the version checks the quota again; this check stores no files in vain.
	if err := l.opts.Quotas.Check(ctx, &l.db.Tables, in, quota.Amounts{Skills: skills, Bytes: manifestSize(c.manifest)}); err != nil {
		return err
	}
	if err := l.scan(ctx, c); err != nil {
		return err
	}
	const atOnce = 4 << 20 // maximum bytes per transaction; other writers wait for it
	var (
		batch [][]byte
		held  int64
	)
	put := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := l.db.Blobs.Put(ctx, batch...)
		batch, held = nil, 0
		return err
	}
	for _, f := range c.manifest {
		data, err := readFile(c.fsys, f)
		if err != nil {
			return err
		}
		if held > 0 && held+f.Size > atOnce {
			if err := put(); err != nil {
				return err
			}
		}
		batch, held = append(batch, data), held+f.Size
	}
	return put()
}

// readFile reads a file and verifies it against the manifest.
func readFile(fsys fs.FS, want skill.File) ([]byte, error) {
	f, err := fsys.Open(want.Path)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", want.Path, mapDiskFull(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, want.Size+1))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", want.Path, mapDiskFull(err))
	}
	if int64(len(data)) != want.Size || skillfile.Hash(data) != want.SHA256 {
		return nil, fmt.Errorf("read %q: file changed while being read", want.Path)
	}
	return data, nil
}

// maxFindingsBytes is the maximum size of the findings stored as JSON, in bytes.
const maxFindingsBytes = 2 << 20

// scan scans the files for up to [Options.ScanTime].
func (l *Library) scan(ctx context.Context, c *content) error {
	limited, stop := context.WithTimeout(ctx, l.opts.ScanTime)
	defer stop()
	report, err := scan.Skill(limited, c.fsys, c.skill.Name)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil: // ignore a timeout or unreadable file, because findings are advisory
		report = &scan.Report{Name: c.skill.Name, Truncated: true}
		c.meta.Unscanned = true
	}
	if c.findings, err = json.Marshal(report); err != nil {
		return err
	}
	for len(c.findings) > maxFindingsBytes {
		report.Findings, report.Truncated = report.Findings[:len(report.Findings)/2], true
		if c.findings, err = json.Marshal(report); err != nil {
			return err
		}
	}
	for severity, n := range report.Counts() {
		if c.meta.Findings == nil {
			c.meta.Findings = map[string]int{}
		}
		c.meta.Findings[severity.String()] = n
	}
	return nil
}

// manifestSize returns the total size of the files in m.
func manifestSize(m skill.Manifest) (total int64) {
	for _, f := range m {
		total += f.Size
	}
	return total
}

// versionRow returns the database rows for a version with this content and for
// its files.
func (c *content) versionRow(skillID, by string, source json.RawMessage) (store.Version, []store.File, error) {
	data, err := json.Marshal(c.meta)
	if err != nil {
		return store.Version{}, nil, err
	}
	files := make([]store.File, len(c.manifest))
	for i, f := range c.manifest {
		files[i] = store.File{Path: f.Path, SHA256: f.SHA256, Size: f.Size}
	}
	return store.Version{
		SkillID: skillID, Label: cleanLine(c.skill.Version, 256), Digest: c.manifest.Digest(), CreatedBy: by,
		Display: cleanLine(c.skill.DisplayName, 1024), Description: truncate(c.skill.Description, 16<<10), Tags: cleanLines(c.skill.Tags),
		Source: source, Meta: data, Changelog: c.changelog,
	}, files, nil
}

// mapDiskFull returns an error that wraps [ErrFull] if err reports a full disk, and
// otherwise err.
func mapDiskFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("write temporary file: %w", ErrFull)
	}
	return err
}

// spoolUpload copies an upload of up to most bytes to a temporary file, which Close
// removes.
func (l *Library) spoolUpload(r io.Reader, most int64) (*uploadFile, error) {
	f, err := os.CreateTemp(l.opts.TempDir, "upload-")
	if err != nil {
		return nil, fmt.Errorf("store upload: %w", mapDiskFull(err))
	}
	s := &uploadFile{File: f}
	s.size, err = io.Copy(f, io.LimitReader(r, most+1))
	switch {
	case err != nil:
		err = fmt.Errorf("read upload: %w", mapDiskFull(err))
	case s.size > most:
		err = &TooLargeError{Limit: most}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// uploadFile is a temporary file that holds an upload.
type uploadFile struct {
	*os.File
	size int64
}

// Close closes and removes the temporary file.
func (s *uploadFile) Close() error {
	return errors.Join(s.File.Close(), os.Remove(s.Name()))
}
