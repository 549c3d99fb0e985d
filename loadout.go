// Package loadout gives an AI agent the right skill at the right moment. It
// finds skills, lists them for the agent, and loads their instructions and
// files on demand.
//
// A [Runtime] finds and delivers skills; a [Session] is one conversation that
// loads them:
//
//	rt, err := loadout.New(ctx, nil)
//	if err != nil { … }
//	defer rt.Close()
//	s, err := rt.NewSession(ctx, nil)
//	fmt.Println(rt.CatalogText(2000)) // for the system prompt
//	res, err := s.Load(ctx, "pdf", nil)
//	fmt.Println(res.Text) // for the model
//
// With zero options, skills from the default locations in the working
// directory, the home directory and the program itself are enabled. To start
// with no skills, set [Options.Filter].Disabled. To use only your own sources,
// set Sources.
//
// The package opens no network connection and prints nothing. It runs skill
// scripts only in the sandbox of [Options.Scripts]. The package itself reads no
// environment variables. If no home or working directory is set, it uses those
// of the process.
package loadout

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// Options configures a runtime. The zero value is ready to use.
type Options struct {
	// Sources are the sources of skills, in order of preference within each
	// scope; nil means [DefaultSources] with no options. An empty slice means
	// no sources.
	Sources []catalog.Source
	// Filter decides which skills are available.
	Filter catalog.Filter
	// Search replaces the catalog's ranking of search results: see
	// [catalog.Options.Search].
	Search func(ctx context.Context, query string, limit int) ([]catalog.Match, error)
	// Wait is how long New waits for slow sources; 0 means until all are read:
	// see [catalog.Options.Wait].
	Wait time.Duration
	// Confirm decides whether a project's skill is available: see [catalog.Options.Confirm].
	Confirm func(r catalog.ProjectSkill, manifest func() (skill.Manifest, error)) (reason string)
	// Watch keeps the catalog up to date until the runtime is closed. Without
	// it, call [catalog.Catalog.Reload].
	Watch bool
	// Scripts configures how skill scripts run; nil disables them. The caller
	// must not modify it afterwards.
	Scripts *Scripts
	// Approve asks the user to approve skill code that is not approved yet,
	// and tool calls that need approval; nil refuses both. Without
	// [Scripts.Grants], approvals are stored in memory.
	Approve Approver
	// Logger receives log messages from background work; nil discards them.
	Logger *slog.Logger
}

// Runtime finds skills and loads them. It is safe for concurrent use. The zero
// value is not usable; call [New].
type Runtime struct {
	catalog *catalog.Catalog
	stop    context.CancelFunc
	running sync.WaitGroup
	bodies  bodyCache
	scripts *Scripts
	// installFailures belongs to all runners, which exist only for one command.
	installFailures execution.InstallFailures
	approve         Approver // may be nil
}

// New reads the sources and returns a runtime. opts may be nil. The caller must
// close the runtime. ctx applies only to this call. New returns an error if ctx
// is done or a filter pattern is invalid. Source labels must be valid and
// unique. If a source cannot be read, the catalog reports a problem and New
// returns no error.
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
	c, err := catalog.New(sources, &catalog.Options{Filter: opts.Filter, Search: opts.Search, Wait: opts.Wait, Confirm: opts.Confirm, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	if err := c.Reload(ctx); err != nil {
		return nil, err
	}
	r := &Runtime{catalog: c, stop: func() {}, scripts: opts.Scripts, approve: opts.Approve}
	if s := opts.Scripts; s != nil && s.Grants == nil && opts.Approve != nil {
		with := *s
		with.Grants = policy.NewMemoryStore()
		r.scripts = &with
	}
	if opts.Watch {
		watching, stop := context.WithCancel(context.WithoutCancel(ctx))
		r.stop = stop
		r.running.Go(func() { _ = c.Run(watching) }) // returns nil when stopped
	}
	return r, nil
}

// Close stops the background work and waits for it to finish. It may be called
// more than once, and always returns nil. It does not close sessions, and does
// not stop runs.
func (r *Runtime) Close() error {
	r.stop()
	r.running.Wait()
	return nil
}

// Catalog returns the runtime's catalog of skills.
func (r *Runtime) Catalog() *catalog.Catalog { return r.catalog }

// CatalogText returns a list of the available skills for a model's system
// prompt, one per line. The list has at most the given number of estimated
// tokens; 0 means no limit. It is empty if no skills are available. It omits
// skills that a model must not load. For other limits, see
// [catalog.Snapshot.Text].
func (r *Runtime) CatalogText(tokens int) string {
	return r.catalog.Snapshot().Text(catalog.FormatOptions{Tokens: tokens})
}

// Session is a conversation that loads skills from a runtime; see
// [Runtime.NewSession].
type Session = session.Session

// NewSession opens a session on the conversation in o.Log, which may contain
// earlier events. o may be nil. NewSession returns an error if the log cannot
// be read. The caller must close the session.
func (r *Runtime) NewSession(ctx context.Context, o *session.Options) (*Session, error) {
	if o == nil {
		o = &session.Options{}
	}
	s, err := session.Open(ctx, sessionSkills{r, o.ID}, o)
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return s, nil
}

// Preload loads the skills that are marked preload and not yet active in the
// session, with their tools. If a skill cannot be loaded, its result says so.
// Add the text of each result to the model's system prompt. If
// [session.Session.Load] returns an error, Preload returns that error and the
// results so far.
func (r *Runtime) Preload(ctx context.Context, s *Session) ([]*session.LoadResult, error) {
	var out []*session.LoadResult
	for _, e := range r.catalog.Snapshot().Preloaded() {
		res, err := s.Load(ctx, e.Key(), nil)
		if err != nil {
			return out, err
		}
		if res.State != session.StateAlreadyLoaded {
			out = append(out, res)
		}
	}
	return out, nil
}

// sessionSkills provides a runtime's skills to a session.
type sessionSkills struct {
	r       *Runtime
	session string // session ID
}

var _ session.Skills = sessionSkills{}

func (s sessionSkills) Fetch(ctx context.Context, ref string) ([]*session.Skill, error) {
	all, err := s.r.fetch(ctx, ref, s.session)
	for _, m := range all {
		wants := (len(m.AllowedTools) > 0 || m.Model != "") && !isServed(m.ID) // checked by fetch
		if wants && !s.IsApproved(ctx, m.ID, m.Digest) {
			m.AllowedTools, m.Model = nil, ""
		}
	}
	return all, err
}

func (s sessionSkills) Digest(ctx context.Context, id session.ID) (string, error) {
	e := s.r.catalog.Snapshot().ByKey(id.Key())
	if e == nil {
		return "", &catalog.NotFoundError{Ref: id.Key()}
	}
	return s.r.catalog.Digest(ctx, e)
}

// IsApproved reports whether the current version of a skill is approved and its
// SKILL.md has the given digest; see [session.UpdateReload].
func (s sessionSkills) IsApproved(ctx context.Context, id session.ID, digest string) bool {
	if isServed(id) { // what it requests is ignored, and only a request loads another version
		return false
	}
	return s.r.newRunner(nil).IsTextApproved(ctx, id.Key(), digest, execution.Caller{Session: s.session})
}

func (s sessionSkills) Names() []string {
	var names []string
	for _, e := range s.r.catalog.Snapshot().ForModel() {
		names = append(names, e.Name)
	}
	return names
}
