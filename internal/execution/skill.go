package execution

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// owner identifies the skill or project that a command belongs to.
type owner struct {
	label  string        // label for messages, such as "skill pdf"
	name   string        // name for audit records
	digest policy.Digest // digest of the approved bytes
}

// openedSkill is a skill whose files, and those of its dependencies, are open.
type openedSkill struct {
	owner
	entry *catalog.Entry
	skill *skill.Skill
	parts []part      // dependencies, followed by the skill itself
	files *verifiedFS // files of the skill that decisions are based on
}

// part is a skill or dependency whose files are added to the sandbox.
type part struct {
	entry    *catalog.Entry
	bundle   *skill.Bundle
	manifest skill.Manifest
}

// openSkill resolves a skill and opens its files and those of its dependencies.
// The caller must close the result.
func openSkill(ctx context.Context, c *catalog.Catalog, ref string) (_ *openedSkill, err error) {
	e, err := c.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	order, err := c.LoadOrder(ctx, e)
	if err != nil {
		return nil, err
	}
	last := order[len(order)-1]
	s := &openedSkill{entry: e, skill: last.Skill}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, l := range order {
		if err := s.addPart(ctx, c, l.Entry); err != nil {
			return nil, err
		}
	}
	own := s.main()
	if err := CheckManifest(own.manifest, last.Source); err != nil {
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	s.owner = owner{"skill " + e.Name, e.Name, decision.SubjectOf(e.Name, e.Origin, own.manifest.Digest())}
	s.files = &verifiedFS{fsys: own.bundle.FS, files: own.manifest}
	return s, nil
}

func (s *openedSkill) addPart(ctx context.Context, c *catalog.Catalog, e *catalog.Entry) error {
	b, err := c.Open(ctx, e)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, part{entry: e, bundle: b})
	s.main().manifest, err = c.CompleteManifest(ctx, e)
	return err
}

func (s *openedSkill) close() {
	for _, p := range slices.Backward(s.parts) {
		p.bundle.Close()
	}
}

// CheckManifest returns an error if src, the parsed SKILL.md, differs from the
// one in the manifest. A user approves the manifest, but SKILL.md determines
// what a skill may do.
func CheckManifest(m skill.Manifest, src []byte) error {
	if hasSkillFile(m, skillfile.Hash(src)) {
		return nil
	}
	return &sandbox.ChangedError{Tree: mountpoint.Skill, Path: skill.FileName}
}

// hasSkillFile reports whether the manifest has a SKILL.md with the given
// SHA-256 in hex.
func hasSkillFile(m skill.Manifest, hash string) bool {
	return slices.ContainsFunc(m, func(f skill.File) bool { return skillpath.IsSkillFile(f.Path) && f.SHA256 == hash })
}

// main returns the skill itself, without its dependencies.
func (s *openedSkill) main() *part { return &s.parts[len(s.parts)-1] }

// needs returns the dependencies as they are listed in an approval.
func (s *openedSkill) needs() []policy.Need {
	var out []policy.Need
	for _, p := range s.parts[:len(s.parts)-1] {
		out = append(out, policy.Need{Name: p.entry.Name, Digest: policy.Digest(p.manifest.Digest())})
	}
	return out
}

// isUnavailable reports whether the skill or one of its dependencies is
// disabled or hidden.
func (s *openedSkill) isUnavailable(now *catalog.Snapshot) bool {
	return now.Disabled || slices.ContainsFunc(s.parts, func(p part) bool { return now.IsHidden(p.entry.Key()) })
}

func (s *openedSkill) isBundled() bool {
	return !slices.ContainsFunc(s.parts, func(p part) bool { return p.entry.Scope != catalog.Bundled })
}

// findScript finds a script by its path or base name.
func (s *openedSkill) findScript(name string) (string, error) {
	file, err := script.Find(s.files, s.main().manifest, name)
	return file, s.checkUnchanged(err)
}

// findFile returns the path of the file in the skill that word refers to, and
// reports whether the file exists.
func (s *openedSkill) findFile(word string) (string, bool) {
	p := path.Clean(strings.TrimPrefix(word, mountpoint.Skill+"/"))
	_, ok := s.main().manifest.Find(p)
	return p, ok
}

// checkUnchanged adds the skill's name to err. If a file differs from the
// manifest, it returns an error about that file instead, because the difference
// may have caused err.
func (s *openedSkill) checkUnchanged(err error) error {
	if s.files.changed != nil {
		err = s.files.changed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.label, err)
	}
	return nil
}

// trees returns the files of the skill and its dependencies for the sandbox.
func (s *openedSkill) trees() []sandbox.Tree {
	var out []sandbox.Tree
	for _, p := range s.parts {
		at := s.dir()
		if p.entry != s.entry {
			at = needsPath(p.entry.Name)
		}
		out = append(out, skillTree(at, p.bundle.FS, p.manifest))
	}
	return out
}

// dir returns the path of the skill in the sandbox of its script. s may be nil. The
// path of a skill of an MCP server contains the label of the server and the path of
// the skill there.
func (s *openedSkill) dir() string {
	if s == nil || s.entry.Server == "" {
		return mountpoint.Skill
	}
	name := url.QueryEscape(s.entry.Name)
	if len(name) > maxServedDir { // file systems allow 255 bytes
		name = fmt.Sprintf("%s~%.16x", name[:maxServedDir], sha256.Sum256([]byte(name)))
	}
	return mountpoint.Needs + "/" + name
}

const maxServedDir = 200

// needsPath returns the path in the sandbox of a skill other than the one whose
// script runs. The names of other directories there begin with a dot.
func needsPath(name string) string {
	name = strings.ReplaceAll(name, "/", "_")
	if rest, ok := strings.CutPrefix(name, "."); ok {
		name = "_" + rest
	}
	return mountpoint.Needs + "/" + name
}

// skillTree returns the files of a skill as a tree.
func skillTree(at string, fsys fs.FS, m skill.Manifest) sandbox.Tree {
	t := sandbox.Tree{Path: at, FS: fsys}
	for _, f := range m {
		t.Files = append(t.Files, sandbox.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256, Exec: f.Script})
	}
	return t
}
