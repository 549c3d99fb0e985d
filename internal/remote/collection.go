package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// collect finds the skills below l.Dir in a tree, according to the rules of
// package catalog. It reads only SKILL.md files. close, which may be nil,
// removes the tree's data. It is called when the collection is closed, or by
// collect after an error.
func (c *Client) collect(ctx context.Context, l Location, rev Revision, t *tree, close func() error) (*Collection, error) {
	o, err := c.findSkills(ctx, l, t)
	if err != nil {
		if close != nil {
			err = errors.Join(err, close())
		}
		return nil, err
	}
	o.Location, o.Revision, o.close = l, rev, close
	o.open = func(ctx context.Context, s Skill) (*skill.Bundle, error) {
		ctx, cancel := c.startSession(ctx, l)
		defer cancel()
		return c.openSkill(ctx, t, s.Dir)
	}
	return o, nil
}

// findSkills lists the skills in a tree.
func (c *Client) findSkills(ctx context.Context, l Location, t *tree) (*Collection, error) {
	if n := len(t.entries); n > c.opts.Limits.Entries {
		return nil, fmt.Errorf("open %s: too many files (%d, limit %d)", l.displayURL(), n, c.opts.Limits.Entries)
	}
	dir, err := t.startDir(l.Dir)
	if err != nil {
		return nil, err
	}
	if n := t.skillFiles(dir); n > c.opts.Limits.Skills {
		return nil, fmt.Errorf("open %s: too many skills (%d, limit %d); specify a subdirectory", l.displayURL(), n, c.opts.Limits.Skills)
	}
	listing, err := t.list(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", l.displayURL(), err)
	}
	files, err := fs.Sub(t, dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", l.displayURL(), err)
	}
	o := &Collection{Problems: listing.Problems, files: files}
	for _, e := range listing.Entries {
		o.Skills = append(o.Skills, Skill{Name: e.Name, Description: e.Description, Version: e.Version, Dir: e.Dir})
	}
	sortSkills(o.Skills)
	return o, nil
}

func sortSkills(skills []Skill) {
	slices.SortFunc(skills, func(a, b Skill) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Dir, b.Dir)) })
}

// startDir returns the tree directory for a Location's Dir. If Dir is the path
// of a SKILL.md, startDir returns its directory.
func (t *tree) startDir(dir string) (string, error) {
	if dir = strings.Trim(dir, "/"); dir == "" {
		dir = "."
	}
	if !fs.ValidPath(dir) {
		return "", fmt.Errorf("list skills below %q: want a relative path", dir)
	}
	if _, ok := t.dirs[dir]; ok {
		return dir, nil
	}
	if e, ok := t.files[dir]; ok && e.kind == plainEntry && skillpath.IsSkillFile(path.Base(dir)) {
		return path.Dir(dir), nil
	}
	return "", &NotFoundError{What: fmt.Sprintf("directory %q", dir), Suggestions: t.similarDirs(dir)}
}

// similarDirs returns up to 3 directories with similar paths or names.
func (t *tree) similarDirs(dir string) []string {
	type guess struct {
		dir string
		far int
	}
	var guesses []guess
	whole, name := editdistance.Normalize(dir), editdistance.Normalize(path.Base(dir))
	most := max(1, len(name)/3)
	for d := range t.dirs {
		if len(d) > 256 {
			continue
		}
		far := editdistance.Distance(whole, editdistance.Normalize(d), most)
		far = min(far, editdistance.Distance(name, editdistance.Normalize(path.Base(d)), most)+1)
		if far <= most {
			guesses = append(guesses, guess{d, far})
		}
	}
	slices.SortFunc(guesses, func(a, b guess) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.dir, b.dir)) })
	var out []string
	for _, g := range guesses[:min(3, len(guesses))] {
		out = append(out, printable.OneLine(g.dir))
	}
	return out
}

func (t *tree) skillFiles(dir string) int {
	n := 0
	for _, e := range t.entriesBelow(dir) {
		if skillpath.IsSkillFile(path.Base(e.path)) {
			n++
		}
	}
	return n
}

// list finds the skills below dir. The returned paths are relative to the tree,
// not to dir.
func (t *tree) list(ctx context.Context, dir string) (catalog.Listing, error) {
	const origin = "remote"
	sub, inTree, err := t.subtree(dir)
	if err != nil {
		return catalog.Listing{}, err
	}
	listing, err := catalog.NewFS(origin, catalog.User, sub).List(ctx)
	if err != nil {
		return catalog.Listing{}, err
	}
	for _, e := range listing.Entries {
		e.Dir = inTree(e.Dir)
	}
	for i, p := range listing.Problems {
		listing.Problems[i].Path = inTree(strings.TrimPrefix(p.Path, origin+":"))
		listing.Problems[i].Origin = ""
	}
	return listing, nil
}

// isSkill reports whether a directory has a SKILL.md.
func (t *tree) isSkill(dir string) bool {
	return slices.ContainsFunc(t.dirs[dir], func(d fs.DirEntry) bool { return skillpath.IsSkillFile(d.Name()) })
}

// subtree returns the tree below dir and a function that maps its paths to
// paths of t. If dir itself is a skill, the tree includes a parent folder, so
// that a skill without a name is named after its folder.
func (t *tree) subtree(dir string) (*tree, func(string) string, error) {
	entries := slices.Clone(t.entriesBelow(dir))
	top, folder := dir, ""
	switch {
	case dir != "." && t.isSkill(dir):
		top = path.Dir(dir)
	case dir == "." && t.isSkill(".") && t.folder != "" && t.isNameless():
		folder = t.folder
	case dir == ".":
		return t, func(p string) string { return p }, nil
	}
	for i, e := range entries {
		if top != "." {
			e.path = strings.TrimPrefix(e.path, top+"/")
		}
		if folder != "" {
			e.path = folder + "/" + e.path
		}
		entries[i].path = e.path
	}
	sub, err := newTree(entries)
	return sub, func(p string) string {
		if folder != "" {
			return path.Clean("." + strings.TrimPrefix(p, folder))
		}
		return path.Join(top, p)
	}, err
}

// isNameless reports whether the tree is a skill whose SKILL.md has no name.
func (t *tree) isNameless() bool {
	s, _, err := skill.Parse(t, "")
	return err == nil && s != nil && s.Name == ""
}

// openSkill returns the files below dir after checking them.
func (c *Client) openSkill(ctx context.Context, t *tree, dir string) (*skill.Bundle, error) {
	if _, ok := t.dirs[dir]; !ok {
		return nil, &NotFoundError{What: fmt.Sprintf("skill in %q", dir)}
	}
	files, err := c.check(ctx, t, dir)
	if err != nil {
		return nil, fmt.Errorf("open skill %s: %w", printable.OneLine(dir), err)
	}
	checked, err := newTree(files)
	if err != nil {
		return nil, fmt.Errorf("open skill %s: %w", printable.OneLine(dir), err)
	}
	if _, err := skillfile.Find(checked); err != nil {
		return nil, fmt.Errorf("open skill %s: %w", printable.OneLine(dir), err)
	}
	folder := path.Base(dir)
	if dir == "." {
		folder = ""
	}
	return skill.NewBundle(checked, folder, nil), nil
}
