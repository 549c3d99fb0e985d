package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/loadout-dev/loadout/skill"
)

// Archive is the source of one skill in a ZIP or .skill file.
type Archive struct {
	origin string
	scope  Scope
	file   string

	mu   sync.Mutex
	last *found
}

var _ Source = (*Archive)(nil)

// NewArchive returns a source for the archive at path file, which must be
// absolute.
func NewArchive(origin string, scope Scope, file string) *Archive {
	return &Archive{origin: origin, scope: scope, file: filepath.Clean(file)}
}

// Origin returns the label of the source.
func (a *Archive) Origin() string { return a.origin }

// Scope returns the scope of the skill.
func (a *Archive) Scope() Scope { return a.scope }

// Root returns the path of the archive.
func (a *Archive) Root() string { return a.file }

// List reads the frontmatter of the skill. It reads it again only after the
// file changed.
func (a *Archive) List(context.Context) (Listing, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fi, err := os.Stat(a.file)
	if err != nil {
		return Listing{}, fmt.Errorf("read skill archive: %w", err)
	}
	st := stampOfInfo(fi)
	if a.last == nil || a.last.stamp != st || st.racy(a.last.seen) {
		old := a.last
		a.last = readArchive(a.file)
		a.last.stamp = st
		if e := a.last.entry; e != nil {
			e.Origin, e.Scope, e.Dir, e.id = a.origin, a.scope, ".", st.id
		}
		for i := range a.last.problems {
			a.last.problems[i].Origin = a.origin
		}
		if old != nil {
			a.last.reuseEntry(old)
		}
	}
	l := Listing{Problems: append([]Problem(nil), a.last.problems...)}
	if a.last.entry != nil {
		l.Entries = []*Entry{a.last.entry}
	}
	return l, nil
}

// Open returns the files in the archive.
func (a *Archive) Open(context.Context, *Entry) (*skill.Bundle, error) { return openArchive(a.file) }
