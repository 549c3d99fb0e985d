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
	"github.com/loadout-dev/loadout/internal/near"
	"github.com/loadout-dev/loadout/skill"
)

// offer finds the skills below l.Dir of a tree, by the rules of a catalog, and
// reads nothing but their SKILL.md files. close, which may be nil, removes what the
// tree reads from: the offer calls it, and where there is none offer does.
func (c *Client) offer(ctx context.Context, l Location, rev Revision, t *tree, close func() error) (*Offer, error) {
	o, err := c.find(ctx, l, t)
	if err != nil {
		if close != nil {
			err = errors.Join(err, close())
		}
		return nil, err
	}
	o.Location, o.Revision, o.close = l, rev, close
	o.open = func(ctx context.Context, s Skill) (*skill.Bundle, error) {
		ctx, cancel := c.begin(ctx, l)
		defer cancel()
		return c.openSkill(ctx, t, s.Dir)
	}
	return o, nil
}

// find lists the skills of a tree.
func (c *Client) find(ctx context.Context, l Location, t *tree) (*Offer, error) {
	if n := len(t.entries); n > c.opts.Limits.Entries {
		return nil, fmt.Errorf("look at %s: it has %d files, more than %d", l.where(), n, c.opts.Limits.Entries)
	}
	dir, err := t.start(l.Dir)
	if err != nil {
		return nil, err
	}
	if n := t.skillFiles(dir); n > c.opts.Limits.Skills {
		return nil, fmt.Errorf("look at %s: it has %d skills, more than %d; name a directory of it", l.where(), n, c.opts.Limits.Skills)
	}
	listing, err := t.list(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", l.where(), err)
	}
	o := &Offer{Problems: listing.Problems}
	for _, e := range listing.Entries {
		o.Skills = append(o.Skills, Skill{Name: e.Name, Description: e.Description, Version: e.Version, Dir: e.Dir})
	}
	sortSkills(o.Skills)
	return o, nil
}

func sortSkills(skills []Skill) {
	slices.SortFunc(skills, func(a, b Skill) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Dir, b.Dir)) })
}

// start is the directory that the Dir of a Location means; a SKILL.md means its
// directory.
func (t *tree) start(dir string) (string, error) {
	if dir = strings.Trim(dir, "/"); dir == "" {
		dir = "."
	}
	if !fs.ValidPath(dir) {
		return "", fmt.Errorf("look below %q: it is no path below a directory", dir)
	}
	if _, ok := t.dirs[dir]; ok {
		return dir, nil
	}
	if e, ok := t.files[dir]; ok && e.kind == plain && skill.IsFileName(path.Base(dir)) {
		return path.Dir(dir), nil
	}
	return "", &NotFoundError{What: fmt.Sprintf("directory %q", dir), Near: t.near(dir)}
}

// near returns the directories that are spelled like dir, or named like it
// elsewhere, at most 3.
func (t *tree) near(dir string) []string {
	type guess struct {
		dir string
		far int
	}
	var guesses []guess
	whole, name := near.Letters(dir), near.Letters(path.Base(dir))
	most := max(1, len(name)/3)
	for d := range t.dirs {
		if len(d) > 256 {
			continue
		}
		far := near.Distance(whole, near.Letters(d), most)
		far = min(far, near.Distance(name, near.Letters(path.Base(d)), most)+1)
		if far <= most {
			guesses = append(guesses, guess{d, far})
		}
	}
	slices.SortFunc(guesses, func(a, b guess) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.dir, b.dir)) })
	var out []string
	for _, g := range guesses[:min(3, len(guesses))] {
		out = append(out, skill.OneLine(g.dir))
	}
	return out
}

func (t *tree) skillFiles(dir string) int {
	n := 0
	for _, e := range t.below(dir) {
		if skill.IsFileName(path.Base(e.path)) {
			n++
		}
	}
	return n
}

// list finds the skills below dir. Directories of the listing are those of the
// tree, and the paths of its problems are, too.
func (t *tree) list(ctx context.Context, dir string) (catalog.Listing, error) {
	const origin = "remote"
	sub, inTree, err := t.cut(dir)
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
	return slices.ContainsFunc(t.dirs[dir], func(d fs.DirEntry) bool { return skill.IsFileName(d.Name()) })
}

// cut returns the tree of what is below dir, and what a path in it is in t. A
// skill that is dir itself has a folder above it there, so that it goes by its
// folder's name where it has none, as any other does.
func (t *tree) cut(dir string) (*tree, func(string) string, error) {
	entries := slices.Clone(t.below(dir))
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

// isNameless reports whether the tree is a skill that does not say its name.
func (t *tree) isNameless() bool {
	s, _, err := skill.Parse(t, "")
	return err == nil && s != nil && s.Name == ""
}

// openSkill gives the files below dir of a tree, once they are checked.
func (c *Client) openSkill(ctx context.Context, t *tree, dir string) (*skill.Bundle, error) {
	if _, ok := t.dirs[dir]; !ok {
		return nil, &NotFoundError{What: fmt.Sprintf("skill in %q", dir)}
	}
	files, err := c.check(ctx, t, dir)
	if err != nil {
		return nil, fmt.Errorf("open skill %s: %w", skill.OneLine(dir), err)
	}
	checked, err := newTree(files)
	if err != nil {
		return nil, fmt.Errorf("open skill %s: %w", skill.OneLine(dir), err)
	}
	if _, err := skill.FindFile(checked); err != nil {
		return nil, fmt.Errorf("open skill %s: %w", skill.OneLine(dir), err)
	}
	folder := path.Base(dir)
	if dir == "." {
		folder = ""
	}
	return skill.NewBundle(checked, folder, nil), nil
}
