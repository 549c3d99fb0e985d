package serverskill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// minAge is the age up to which a stored listing is used even if the server allows
// less, so that not every command connects to the server. What is read is verified
// in any case.
const minAge = 5 * time.Minute

// retryAge is the time for which a failed attempt to list the skills is not
// repeated, so that a server that does not answer delays one command and not all.
const retryAge = 2 * time.Minute

// List waits up to firstWait for a server. If a listing is stored, it waits up to
// storedWait and otherwise uses that listing, unless it is older than maxStored.
// They are variables for tests.
var (
	firstWait  = 30 * time.Second
	storedWait = 3 * time.Second
)

const maxStored = 24 * time.Hour

// OriginPrefix precedes the label of the server in the origin of a skill, so
// that its origin differs from that of every other source.
const OriginPrefix = skillname.ServedPrefix

// Options configures a [Source].
type Options struct {
	Label string // of the server, as the host assigned it: lower-case letters, digits and hyphens
	Name  string // of the server in its configuration
	// Ask is whether the user must approve each skill before it is loaded.
	Ask       bool
	Connector Connector
	Cache     *Cache // nil caches in memory
	Limits    upstream.SkillLimits
	// Wait is whether List asks the server if no listing is stored. Otherwise
	// Watch does, in the background.
	Wait   bool
	Logger *slog.Logger // nil discards messages
}

// Source is the source of the skills that a server publishes. It is safe for
// concurrent use. It lists what the server last listed, and what was found by
// URI since then.
type Source struct {
	o Options

	mu        sync.Mutex // guards the fields below; never held during I/O
	connector Connector
	listing   *Listing
	entries   map[string]*Entry // by path; the current entry of each known skill
	found     map[string]*Entry // entries that skills/get returned since the last listing
	memory    int               // of the entries in found, in bytes
	loaded    bool              // the stored listing was read
	failed    *failure          // of the last listing; nil if it did not fail
	watchers  map[int]func()    // callbacks of running calls of Watch
	watches   int
	wake      chan struct{} // asks Watch to list the skills
}

var _ catalog.ServerSource = (*Source)(nil)
var _ catalog.Watcher = (*Source)(nil)

// New returns a source. It does not connect.
func New(o Options) *Source {
	if o.Cache == nil {
		o.Cache = &Cache{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Source{o: o, connector: o.Connector, found: map[string]*Entry{}, wake: make(chan struct{}, 1)}
}

// Origin implements [catalog.Source].
func (s *Source) Origin() string { return OriginPrefix + s.o.Label }

// Scope implements [catalog.Source]. The user's own skills come first.
func (s *Source) Scope() catalog.Scope { return catalog.Public }

// Server implements [catalog.ServerSource].
func (s *Source) Server() string { return s.o.Label }

// CheckApproval implements [catalog.ServerSource].
func (s *Source) CheckApproval(ctx context.Context, e *catalog.Entry, session string, a catalog.Approvals) error {
	if !s.o.Ask {
		return nil
	}
	return a.CheckServed(ctx, e, session)
}

// Name returns the name of the server in its configuration.
func (s *Source) Name() string { return s.o.Name }

// SetConnector replaces the connector, for example because connections are now
// shared with tools. nil restores the one of the options.
func (s *Source) SetConnector(c Connector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == nil {
		c = s.o.Connector
	}
	s.connector = c
}

// ListIfOld makes Watch list the skills again, in the background, if the time to live
// of the listing is over. It does not wait.
func (s *Source) ListIfOld() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Source) do(ctx context.Context, what string, f func(context.Context, Conn) error) error {
	s.mu.Lock()
	c := s.connector
	s.mu.Unlock()
	return c.Do(ctx, what, f)
}

// List implements [catalog.Source]. It fetches no files.
func (s *Source) List(ctx context.Context) (catalog.Listing, error) {
	l := s.current()
	failed := s.lastFailure()
	if s.o.Wait && (l == nil || time.Since(l.At) > max(l.TTL, minAge)) && (failed == nil || time.Since(failed.At) >= retryAge) {
		now, err := s.refreshFor(ctx, l)
		if err != nil && (l == nil || ctx.Err() != nil) {
			return catalog.Listing{}, err
		}
		if err == nil {
			l = now
		}
	}
	if l == nil {
		why := "its skills are not listed yet; they are added when the server has listed them"
		if failed != nil {
			why = "its skills cannot be listed: " + failed.Error
			if s.o.Wait {
				why += fmt.Sprintf(" (at %s; the next attempt is %v later)", failed.At.Local().Format(time.TimeOnly), retryAge)
			}
		}
		return catalog.Listing{Problems: []catalog.Problem{s.problem(skill.Diagnostic{Severity: skill.Warning, Code: "server-not-listed", Message: why, Fix: "see its state: loadout servers"})}}, nil
	}
	return s.catalogListing(l), nil
}

// Skills returns the skills that the source knows, sorted by path: those of the last
// listing, and those found by URI since. If there is no listing yet, or if fresh is
// set, Skills asks the server and waits.
func (s *Source) Skills(ctx context.Context, fresh bool) (*Listing, error) {
	l := s.current()
	if fresh || l == nil || l.At.IsZero() {
		var err error
		if l, err = s.refreshFor(ctx, nil); err != nil {
			return nil, err
		}
		s.notify()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := *l
	out.Entries = nil
	for _, dir := range slices.Sorted(maps.Keys(s.entries)) {
		out.Entries = append(out.Entries, s.entries[dir])
	}
	return &out, nil
}

// current returns the last listing, from this process or the cache, or nil.
func (s *Source) current() *Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing == nil && !s.loaded {
		s.loaded = true
		s.failed = s.o.Cache.loadFailure()
		if l := s.o.Cache.loadListing(); l != nil {
			s.set(l)
		}
	}
	return s.listing
}

// set makes l the current listing. It must be called with s.mu held.
func (s *Source) set(l *Listing) {
	s.listing, s.entries = l, make(map[string]*Entry, len(l.Entries))
	for _, e := range l.Entries {
		s.entries[e.dir()] = e
	}
	for dir, e := range s.found {
		if s.entries[dir] != nil { // the listing is newer
			s.forgetFound(dir)
			continue
		}
		s.entries[dir] = e // not listed, but served
	}
}

// lastFailure returns the failure of the last listing, of this process or another
// one, or nil if it did not fail.
func (s *Source) lastFailure() *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// refreshFor is like refresh, but waits only for a time that depends on the stored
// listing, which may be nil.
func (s *Source) refreshFor(ctx context.Context, stored *Listing) (*Listing, error) {
	wait := firstWait
	if stored != nil && time.Since(stored.At) < maxStored {
		wait = storedWait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("no answer within %v", wait))
	defer cancel()
	return s.refresh(ctx)
}

// refresh lists the skills of the server.
func (s *Source) refresh(ctx context.Context) (*Listing, error) {
	var l *Listing
	err := s.do(ctx, "list skills", func(ctx context.Context, c Conn) (err error) {
		l, err = List(ctx, c, s.o.Limits)
		return err
	})
	if err != nil {
		if !errors.Is(context.Cause(ctx), context.Canceled) { // the user did not stop it
			s.setFailure(&failure{time.Now(), short(err.Error())})
		}
		return nil, err
	}
	s.setFailure(nil)
	if old := s.current(); old != nil && l.Partial != "" {
		l.keep(old, withDefaults(s.o.Limits).Skills)
	}
	s.mu.Lock()
	s.set(l)
	s.mu.Unlock()
	s.store(l)
	return l, nil
}

func (s *Source) setFailure(f *failure) {
	s.mu.Lock()
	changed := f != nil || s.failed != nil
	s.failed = f
	s.mu.Unlock()
	if changed {
		s.o.Cache.storeFailure(f)
	}
}

func (e *Entry) dir() string { return PathOf(strings.TrimSuffix(e.URI, "/"+skill.FileName)) }

func (s *Source) problem(d skill.Diagnostic) catalog.Problem {
	d.Message = untrusted.New(d.Message).ForTerminal()
	return catalog.Problem{Path: s.Origin(), Origin: s.Origin(), Diagnostic: d}
}

func invalidSkill(reason string) skill.Diagnostic {
	return skill.Diagnostic{Severity: skill.Warning, Code: "server-skill-invalid", Message: reason, Fix: "report it to the publisher of the server"}
}

// catalogListing converts the current entries.
func (s *Source) catalogListing(l *Listing) catalog.Listing {
	s.mu.Lock()
	entries := maps.Clone(s.entries)
	s.mu.Unlock()
	var out catalog.Listing
	if l.Partial != "" {
		out.Problems = append(out.Problems, s.problem(skill.Diagnostic{Severity: skill.Warning, Code: "server-skills-partial", Message: "the list of its skills is incomplete: " + l.Partial, Fix: "load other skills by their URI"}))
	}
	for _, err := range l.Problems {
		out.Problems = append(out.Problems, s.problem(invalidSkill(err.Error())))
	}
	more := 0 // problems that are not reported
	report := func(d skill.Diagnostic) {
		if len(out.Problems) >= 2*maxProblems {
			more++
			return
		}
		out.Problems = append(out.Problems, s.problem(d))
	}
	for _, dir := range slices.Sorted(maps.Keys(entries)) {
		e := entries[dir]
		if e.Dynamic {
			report(skill.Diagnostic{Severity: skill.Warning, Code: "server-skill-dynamic", Message: fmt.Sprintf("skill %s is not available: %v", short(e.URI), ErrDynamic)})
			continue
		}
		if c := s.CatalogEntry(e); c != nil {
			out.Entries = append(out.Entries, c)
		} else {
			report(invalidSkill(fmt.Sprintf("skill %s is not available: its frontmatter cannot be read", short(e.URI))))
		}
	}
	if more > 0 {
		out.Problems = append(out.Problems, s.problem(invalidSkill(fmt.Sprintf("%d more skills are not available", more))))
	}
	return out
}

// CatalogEntry returns the entry in a catalog for a skill of the server, or nil if
// its frontmatter cannot be used.
func (s *Source) CatalogEntry(e *Entry) *catalog.Entry {
	head, ds := e.Head()
	if head == nil || !ds.Loads() {
		return nil
	}
	if m, err := e.Manifest(); err == nil {
		head.Instructions = m.Digest() // an entry is unchanged only if all files are
	}
	c := catalog.EntryOf(s, head, e.dir())
	c.Path = e.URI
	return c
}

// entry returns the current entry of a skill in the catalog.
func (s *Source) entry(e *catalog.Entry) (*Entry, error) {
	s.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.entries[e.Dir]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("server %s does not list the skill %s: %w", s.o.Label, short(e.Dir), fs.ErrNotExist)
}

// Head implements [catalog.ServerSource].
func (s *Source) Head(e *catalog.Entry) (*skill.Skill, error) {
	found, err := s.entry(e)
	if err != nil {
		return nil, err
	}
	head, ds := found.Head()
	if head == nil || !ds.Loads() {
		return nil, &InvalidError{found.URI, "its frontmatter cannot be read"}
	}
	return head, nil
}

// Open implements [catalog.Source]. It fetches nothing; reading a file does.
func (s *Source) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	found, err := s.entry(e)
	if err != nil {
		return nil, err
	}
	return skill.NewBundle(&files{ctx: ctx, entry: found, read: s.read}, found.Name, nil), nil
}

// Find implements [catalog.ServerSource].
func (s *Source) Find(ctx context.Context, ref string) error {
	uri := ref
	if !strings.Contains(ref, "://") {
		uri = URIOf(ref) + "/" + skill.FileName
	}
	if _, err := ParseURI(uri); err != nil {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	e, err := s.get(ctx, uri)
	if err != nil {
		return err
	}
	s.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing == nil {
		s.set(&Listing{At: time.Time{}}) // out of date
	}
	s.failed = nil // the server answers again
	s.addFound(e)
	return nil
}

// Limits on unlisted skills, which are known only because they were requested by URI.
const (
	maxFound       = 1000
	maxFoundMemory = 8 << 20 // bytes; a single entry may have more
)

// addFound adds an entry that skills/get returned. Beyond the limits, it forgets
// others, which can be found again. s.mu must be held.
func (s *Source) addFound(e *Entry) {
	s.forgetFound(e.dir())
	size := e.Memory()
	for dir, other := range s.found {
		if len(s.found) < maxFound && s.memory+size <= maxFoundMemory {
			break
		}
		s.forgetFound(dir)
		if s.entries[dir] == other {
			delete(s.entries, dir)
		}
	}
	s.found[e.dir()], s.entries[e.dir()] = e, e
	s.memory += size
}

// forgetFound forgets an entry that skills/get returned, if there is one. s.mu must be
// held.
func (s *Source) forgetFound(dir string) {
	if e := s.found[dir]; e != nil {
		delete(s.found, dir)
		s.memory -= e.Memory()
	}
}

// get calls skills/get.
func (s *Source) get(ctx context.Context, uri string) (e *Entry, err error) {
	err = s.do(ctx, "get skill "+short(uri), func(ctx context.Context, c Conn) (err error) {
		e, err = Get(ctx, c, uri)
		return err
	})
	return e, err
}

// ChangedError reports that a file on the server does not match the entry that
// its skill was loaded from. The file was not used. The source now has the
// server's current entry, if that differs.
type ChangedError struct {
	Skill   string // key in the catalog
	Cause   error  // a [*MismatchError], or that the server no longer serves a file
	Changes []Change
}

func (e *ChangedError) Error() string {
	what := "the server lists the same files as before, so its content is wrong"
	if len(e.Changes) > 0 {
		var parts []string
		for _, c := range e.Changes[:min(len(e.Changes), 10)] {
			name := c.Path
			if name == "" {
				name = "frontmatter"
			}
			parts = append(parts, short(name)+" "+c.Kind)
		}
		if more := len(e.Changes) - 10; more > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", more))
		}
		what = strings.Join(parts, ", ") + "; review the skill again, then load it again"
	}
	return fmt.Sprintf("skill %s changed on its server, and was not used: %v (%s)", e.Skill, e.Cause, what)
}

func (e *ChangedError) Unwrap() error { return e.Cause }

// read returns the content of a file of an entry, from the cache or the server.
// It verifies the content in each case. If the server's content differs, read
// replaces the entry with the server's current one and returns a
// [*ChangedError].
func (s *Source) read(ctx context.Context, e *Entry, r Resource) ([]byte, error) {
	data := s.o.Cache.get(r)
	cached := data != nil
	if !cached && catalog.IsCachedOnly(ctx) {
		return nil, catalog.ErrNotFetched
	}
	if !cached {
		err := s.do(ctx, "read "+short(r.URI), func(ctx context.Context, c Conn) (err error) {
			if !c.ServesSkills() { // any more, or with this account
				return ErrNotServed
			}
			data, err = c.ReadSkillFile(ctx, r.URI)
			return err
		})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, s.replace(ctx, e, errors.New("the server no longer serves "+short(r.URI)))
		case err != nil:
			return nil, err
		}
		if err := r.Verify(data); err != nil {
			return nil, s.replace(ctx, e, err)
		}
	}
	if err := s.verifySkill(e, r, data); err != nil {
		return nil, s.replace(ctx, e, err)
	}
	if !cached {
		s.o.Cache.put(r, data)
	}
	return data, nil
}

// verifySkill verifies the frontmatter if r is the skill's SKILL.md. That of a
// nested skill is an ordinary file.
func (s *Source) verifySkill(e *Entry, r Resource, data []byte) error {
	if r.Path != skill.FileName {
		return nil
	}
	return e.VerifyFrontmatter(data)
}

// replace gets the current entry of a skill after its content failed the
// verification, and returns the [*ChangedError].
func (s *Source) replace(ctx context.Context, held *Entry, cause error) error {
	changed := &ChangedError{Skill: s.Origin() + "/" + held.dir(), Cause: cause}
	now, err := s.get(ctx, held.URI)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.update(held.dir(), nil)
		changed.Cause = fmt.Errorf("%w; the server no longer serves the skill", cause)
	case err != nil:
		changed.Cause = fmt.Errorf("%w; %w", cause, err)
		return changed
	case !now.Equal(held):
		changed.Changes = held.Compare(now)
		s.update(now.dir(), now)
	default:
		return changed
	}
	s.notify()
	return changed
}

// update replaces the entry of a skill, or removes it if now is nil, and stores the
// listing. It does not add a skill that the server does not list to the listing.
func (s *Source) update(dir string, now *Entry) {
	s.mu.Lock()
	l := *s.listing
	listed := len(l.Entries)
	l.Entries = slices.DeleteFunc(slices.Clone(l.Entries), func(e *Entry) bool { return e.dir() == dir })
	s.forgetFound(dir)
	delete(s.entries, dir)
	switch {
	case now == nil:
	case len(l.Entries) == listed:
		s.addFound(now)
	default:
		l.Entries = append(l.Entries, now)
		s.entries[dir] = now
	}
	s.listing = &l
	s.mu.Unlock()
	s.store(&l)
}

func (s *Source) store(l *Listing) {
	if err := s.o.Cache.storeListing(l); err != nil {
		s.o.Logger.Warn("could not store the skills of a server", "server", s.o.Label, "error", err)
	}
}

// notify tells the catalog to list the skills again.
func (s *Source) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, changed := range s.watchers {
		go changed() // it may call List, which waits for s.mu
	}
}

// Watch implements [catalog.Watcher]. It lists the skills in the background if no
// listing is stored, and when a connection was opened after the listing's time to
// live.
func (s *Source) Watch(ctx context.Context, changed func()) error {
	s.mu.Lock()
	s.watches++
	id := s.watches
	if s.watchers == nil {
		s.watchers = map[int]func(){}
	}
	s.watchers[id] = changed
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, id)
	}()
	if s.current() == nil {
		s.ListIfOld()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		if l := s.current(); l != nil && time.Since(l.At) < max(l.TTL, minAge) { // the server decides how often it wakes Watch
			continue
		}
		if _, err := s.refresh(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			s.o.Logger.Warn("could not list the skills of a server", "server", s.o.Label, "error", err)
		}
		s.notify() // of a failure, too, because it is a problem of the catalog
	}
}
