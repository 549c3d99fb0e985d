// Package loadout gives an AI agent the right skill at the right moment: it
// finds skills, tells an agent only what it needs to choose, and loads their
// instructions and files on demand.
//
// A [Runtime] knows the skills; a [Session] is one conversation that loads
// them:
//
//	rt, err := loadout.New(ctx, nil)
//	if err != nil { … }
//	defer rt.Close()
//	s, err := rt.NewSession(ctx, nil)
//	fmt.Println(rt.CatalogText(loadout.TextOptions{Tokens: 2000})) // for the system prompt
//	res, err := s.Load(ctx, "pdf")
//	fmt.Println(res.Text) // for the model
//
// With zero options skills are enabled, from the default places of the working
// directory, the home directory and the program itself. To start closed, set
// [Options.Filter].Disabled, or give Sources: then there is nothing but those.
//
// The package opens no network connection and prints nothing. It runs scripts of
// skills in the sandbox that [Options.Scripts] gives it, and nowhere else. It asks the system for the home and the working directory where it
// is not told them, and reads no environment variable of its own.
package loadout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// Options adjust a runtime. The zero value is ready to use.
type Options struct {
	// Sources are where skills come from, in order of preference within each
	// scope; nil means [DefaultSources] with no options.
	Sources []catalog.Source
	// Filter decides which of the skills are available.
	Filter catalog.Filter
	// Search ranks many skills in place of the catalog, as [catalog.Options.Search].
	Search func(ctx context.Context, query string, limit int) ([]string, error)
	// Watch keeps the catalog up to date until the runtime is closed.
	Watch bool
	// Scripts is what running scripts of skills needs; nil runs none.
	Scripts *Scripts
	// Logger receives what goes on in the background; nil discards it.
	Logger *slog.Logger
}

// Runtime knows skills and delivers them. It is safe for concurrent use.
type Runtime struct {
	catalog *catalog.Catalog
	stop    context.CancelFunc
	running sync.WaitGroup
	tokens  tokenCache
	scripts *Scripts
}

// New reads the sources and returns the runtime; close it when done. A source
// that cannot be read is a problem of the catalog, not an error.
func New(ctx context.Context, opts *Options) (*Runtime, error) {
	if opts == nil {
		opts = &Options{}
	}
	sources := opts.Sources
	if sources == nil {
		var err error
		if sources, err = DefaultSources(nil); err != nil {
			return nil, err
		}
	}
	c, err := catalog.New(sources, &catalog.Options{Filter: opts.Filter, Search: opts.Search, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	if err := c.Reload(ctx); err != nil {
		return nil, err
	}
	r := &Runtime{catalog: c, stop: func() {}, scripts: opts.Scripts}
	if opts.Watch {
		watching, stop := context.WithCancel(context.WithoutCancel(ctx))
		r.stop = stop
		r.running.Go(func() { _ = c.Run(watching) }) // returns nil when stopped
	}
	return r, nil
}

// Close stops what the runtime started and waits for it. It is safe to call
// twice.
func (r *Runtime) Close() error {
	r.stop()
	r.running.Wait()
	return nil
}

// Catalog returns the catalog: what there is, why, and how to find it.
func (r *Runtime) Catalog() *catalog.Catalog { return r.catalog }

// TextOptions bound the catalog text.
type TextOptions = catalog.TextOptions

// CatalogText tells a model which skills there are, one line each, within the
// bounds. It is empty where there is none.
func (r *Runtime) CatalogText(o TextOptions) string {
	return catalog.Text(r.catalog.Snapshot().Offered(), o)
}

// Session is a conversation that loads skills from a runtime.
type Session = session.Session

// SessionOptions adjust a session. The zero value is ready to use.
type SessionOptions = session.Options

// NewSession opens the conversation in the log of the options, which may hold
// events of earlier days. Close it when done.
func (r *Runtime) NewSession(ctx context.Context, o *SessionOptions) (*Session, error) {
	if o == nil {
		o = &SessionOptions{}
	}
	s, err := session.Open(ctx, sessionSkills{r, o.ID}, o)
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return s, nil
}

// Preload loads the skills that are marked preload into a session that has not
// loaded them yet, with the tools that they bring. What cannot be loaded is a
// result that says so. For a model, the texts of the results are part of what it is
// told first.
func (r *Runtime) Preload(ctx context.Context, s *Session) ([]*session.Result, error) {
	var out []*session.Result
	for _, e := range r.catalog.Snapshot().Offered() {
		if !e.Preload {
			continue
		}
		res, err := s.Load(ctx, e.Key())
		if err != nil {
			return out, err
		}
		if res.State != session.StateAlready {
			out = append(out, res)
		}
	}
	return out, nil
}

// sessionSkills is what a session sees of a runtime.
type sessionSkills struct {
	r       *Runtime
	session string // its ID
}

var (
	_ session.Skills = sessionSkills{}
	_ session.Lister = sessionSkills{}
)

func (s sessionSkills) Fetch(ctx context.Context, ref string) ([]*session.Material, error) {
	all, err := s.r.Fetch(ctx, ref)
	for _, m := range all {
		wants := len(m.AllowedTools) > 0 || m.Model != ""
		if wants && !s.r.WouldLeave(ctx, m.ID.Key(), policy.Principal{}, s.session) {
			m.AllowedTools, m.Model = nil, ""
		}
	}
	return all, err
}

func (s sessionSkills) Digest(ctx context.Context, id session.ID) (string, error) {
	for e := range s.r.catalog.Snapshot().All() {
		if e.Origin == id.Origin && e.Dir == id.Dir {
			return s.r.Digest(ctx, e)
		}
	}
	return "", &catalog.NotFoundError{Ref: id.Key()}
}

func (s sessionSkills) Names() []string {
	var names []string
	for _, e := range s.r.catalog.Snapshot().Offered() {
		names = append(names, e.Name)
	}
	return names
}

// ErrNotFound says that no skill answers to a name.
var ErrNotFound = catalog.ErrNotFound

// IsNotFound reports whether err says that a skill or file is not there.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) || catalog.IsNotFound(err) }
