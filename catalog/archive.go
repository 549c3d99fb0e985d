package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// archiveSource is a source with a single skill in a ZIP or .skill file.
type archiveSource struct {
	origin string
	scope  Scope
	file   string

	guard scanGuard
	mu    sync.Mutex // held while listing; guards last
	last  *found
}

var _ Source = (*archiveSource)(nil)

// NewArchive returns a source with the single skill in a ZIP or .skill file,
// within the default [skill.Limits]. file must be an absolute path. List reads
// the file again only if it has changed, and returns an error if it does not
// exist. If the archive is rejected, List returns problems. The source is safe
// for concurrent use and does not need to be closed.
func NewArchive(origin string, scope Scope, file string) Source {
	return &archiveSource{origin: origin, scope: scope, file: filepath.Clean(file)}
}

// Origin returns the label of the source.
func (a *archiveSource) Origin() string { return a.origin }

// Scope returns the scope of the skill.
func (a *archiveSource) Scope() Scope { return a.scope }

// Root returns the path of the archive.
func (a *archiveSource) Root() string { return a.file }

// List returns the skill. It reads the frontmatter again only if the file has
// changed.
func (a *archiveSource) List(ctx context.Context) (Listing, error) {
	return a.guard.run(ctx, archiveTime, a.list)
}

// archiveTime is the maximum time that reading an archive may take.
const archiveTime = 30 * time.Second

func (a *archiveSource) list() (Listing, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fi, err := os.Stat(a.file)
	if err != nil {
		return Listing{}, fmt.Errorf("read skill archive: %w", err)
	}
	st := stampOfInfo(fi)
	if a.last == nil || a.last.stamp != st || st.racy(a.last.seen) {
		old := a.last
		a.last = readArchive(a.file, nil)
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

// Open opens the archive.
func (a *archiveSource) Open(context.Context, *Entry) (*skill.Bundle, error) {
	return openArchive(a.file, nil)
}
