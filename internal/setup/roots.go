package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/sources"
)

// Roots adds the skills in the roots of an MCP client to a runtime. The skills are
// project skills: the user trusts each root separately, and each root has its own
// list of skills. Other files in a root, such as its configuration, have no
// effect. It is safe for concurrent use. Create it with
// [Setup.NewRuntimeWithRoots].
type Roots struct {
	s      *Setup
	rt     *loadout.Runtime
	opts   *sources.Options
	own    []catalog.Source // the sources without those in roots
	skills *projectSkills
	search func(o *sources.Options, known []catalog.Source, current []sources.Root, dirs []string) ([]sources.Root, []error) // sources.NewRoots

	mu      sync.Mutex // held while the sources are replaced; guards the fields below
	dirs    []string   // as given to Set
	current []sources.Root
	// searching is closed when the last search of roots has ended; nil before the
	// first search.
	searching chan struct{}
}

// rootsTimeout is how long the file systems of a client's roots may take to answer.
const rootsTimeout = 10 * time.Second

// NewRuntimeWithRoots is like [Setup.NewRuntimeWith], but returns a runtime that
// serves one MCP client and watches its skills. roots is nil if the client's roots
// have no effect: with --skills, or if the configuration disables project skills.
func (s *Setup) NewRuntimeWithRoots(ctx context.Context, c *config.Config, chosen []string) (rt *loadout.Runtime, roots *Roots, err error) {
	rt, skills, err := s.openRuntime(ctx, c, true, chosen)
	if err != nil || len(s.Skills) > 0 || !c.Skills.Project {
		return rt, nil, err
	}
	opts := s.sourceOptions(c)
	roots = &Roots{s: s, rt: rt, opts: opts, own: rt.Catalog().Sources(), skills: skills, search: sources.NewRoots}
	s.roots = roots
	return rt, roots, nil
}

// Wait returns how long a server waits for the roots and their skills before it
// first lists its tools.
func (r *Roots) Wait() time.Duration { return skillWait(time.Second) }

// Set replaces the roots of the client with the given directories, and reads the
// skills in them. It skips directories that are not projects, and prints a note for
// each. It returns an error if ctx is done, or if the file system of a
// directory does not answer within 10 seconds; after that, Set fails
// immediately until the file system answers.
func (r *Roots) Set(ctx context.Context, dirs []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(dirs, r.dirs) {
		return nil
	}
	found, err := r.find(ctx, dirs)
	if err != nil {
		return err
	}
	before := r.current
	if len(before) == 0 && len(found) == 0 {
		r.dirs = slices.Clone(dirs)
		return nil
	}
	all := slices.Clone(r.own)
	for _, root := range found {
		all = append(all, root.Sources...)
	}
	r.skills.addRoots(found)
	err = r.rt.Catalog().SetSources(ctx, all)
	if err != nil && ctx.Err() == nil { // nothing was replaced
		r.skills.addRoots(before)
		r.skills.removeRoots(before)
		return err
	}
	r.dirs, r.current = slices.Clone(dirs), found
	r.skills.removeRoots(found)
	if err != nil {
		return err
	}
	r.skills.record(context.WithoutCancel(ctx), r.rt.Catalog().Snapshot()) // nothing was published if the roots have no skills
	return nil
}

// find returns the roots in directories. A call to a file system that does not
// answer cannot be canceled. find abandons such a call, and starts no other one
// before it returns.
func (r *Roots) find(ctx context.Context, dirs []string) ([]sources.Root, error) {
	if r.searching != nil {
		select {
		case <-r.searching:
		default:
			return nil, errors.New("the file system of the previous roots has not answered yet")
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, rootsTimeout, fmt.Errorf("the file system did not answer within %v", rootsTimeout))
	defer cancel()
	var roots []sources.Root
	var skipped []error
	done, current := make(chan struct{}), r.current
	r.searching = done
	go func() {
		defer close(done)
		roots, skipped = r.search(r.opts, r.own, current, dirs)
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("search %s for skills: %w", strings.Join(dirs, ", "), context.Cause(ctx))
	case <-done:
		for _, err := range skipped {
			r.s.Note("root of the client ignored: %v", err)
		}
		return roots, nil
	}
}

// RootOf returns the root that contains a skill, from the roots of the MCP
// client. It returns "" if no root contains the skill, or if this program
// serves no client with roots.
func (s *Setup) RootOf(skill string) string {
	r := s.roots
	if r == nil {
		return ""
	}
	e, err := r.rt.Catalog().Snapshot().Get(skill)
	if err != nil {
		return ""
	}
	return r.skills.rootOf(e)
}

// inDirectory returns a command line that runs a command in a directory.
func inDirectory(dir, command string) string {
	return "cd " + console.ShellQuote(filepath.Clean(dir)) + " && " + command
}
