package catalog

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/loadout-dev/loadout/skill"
)

// FS is the source of a tree that does not change: embedded skills, or a tree
// that a program made in memory. Every directory below the root that holds a
// SKILL.md is a skill.
type FS struct {
	origin string
	scope  Scope
	fsys   fs.FS
}

var _ Source = (*FS)(nil)

// NewFS returns the source of the skills in fsys.
func NewFS(origin string, scope Scope, fsys fs.FS) *FS {
	return &FS{origin, scope, fsys}
}

// Origin returns the label of the source.
func (f *FS) Origin() string { return f.origin }

// Scope returns the scope of the skills.
func (f *FS) Scope() Scope { return f.scope }

// List reads all skills of the tree.
func (f *FS) List(ctx context.Context) (Listing, error) {
	var l Listing
	err := fs.WalkDir(f.fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (skipped(d.Name()) || ownMaterial(d.Name())):
			return fs.SkipDir
		case d.IsDir() || d.Name() != skill.FileName:
			return nil
		}
		f.read(&l, path.Dir(p))
		return nil
	})
	if err != nil {
		return Listing{}, fmt.Errorf("read skills of %s: %w", f.origin, err)
	}
	return l, nil
}

func (f *FS) read(l *Listing, dir string) {
	where := f.origin + ":" + dir
	b, err := f.open(dir)
	if err != nil {
		l.Problems = append(l.Problems, Problem{Path: where, Origin: f.origin, Diagnostic: unreadable(err)})
		return
	}
	src, err := readFile(b.FS, skill.FileName)
	if err != nil {
		l.Problems = append(l.Problems, Problem{Path: where, Origin: f.origin, Diagnostic: unreadable(err)})
		return
	}
	s, ds, _ := skill.ParseHead(src, true, skill.FileName, b.Folder)
	for _, d := range ds.Noteworthy() {
		l.Problems = append(l.Problems, Problem{Path: where, Origin: f.origin, Diagnostic: d})
	}
	if s == nil || !ds.Loads() {
		return
	}
	e := newEntry(s, ds)
	e.Origin, e.Scope, e.Dir, e.Path, e.file = f.origin, f.scope, dir, where, skill.FileName
	l.Entries = append(l.Entries, e)
}

// Open returns the files of the skill.
func (f *FS) Open(_ context.Context, e *Entry) (*skill.Bundle, error) { return f.open(e.Dir) }

func (f *FS) open(dir string) (*skill.Bundle, error) {
	sub, err := fs.Sub(f.fsys, dir)
	if err != nil {
		return nil, err
	}
	folder := path.Base(dir)
	if dir == "." {
		folder = ""
	}
	return skill.NewBundle(sub, folder, nil), nil
}
