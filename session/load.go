package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// Skills is where a session gets its skills from. It is safe for concurrent
// use.
type Skills interface {
	// Fetch resolves a reference and returns the skill and those it needs,
	// each after those it needs, as they are now. The error matches
	// [fs.ErrNotExist] where no skill answers to the reference.
	Fetch(ctx context.Context, ref string) ([]*Material, error)
	// Digest returns the digest of a skill's SKILL.md as it is now.
	Digest(ctx context.Context, id ID) (string, error)
}

// Lister may be implemented by [Skills] that can say which skills there are: a
// load of something else then names them.
type Lister interface {
	// Names are the names of the skills that a model may be told of.
	Names() []string
}

// Material is a skill as it is delivered: level 2, and the names of level 3.
type Material struct {
	ID           ID
	Title        string
	Description  string
	Version      string
	Digest       string // "sha256:" and the hex SHA-256 of SKILL.md
	Instructions string // as written
	Location     string // where its reader finds its files
	Files        []skill.File
	Tokens       int // of the instructions, estimated
	Needs        []string
	Problems     []string
	// Hidden says that only a person may load it, and ArgumentHint what may follow
	// its name then.
	Hidden       bool
	ArgumentHint string
	// AllowedTools and Model are what it wants for the time in which it is in force.
	// [Skills] leave them out where it is not approved as it is.
	AllowedTools []string
	Model        string
}

// called is what people call the skill, "" where that is its name.
func (m *Material) called() string {
	if m.Title == m.ID.Name {
		return ""
	}
	return m.Title
}

// LoadState is what a load came to.
type LoadState string

// The outcomes of a load.
const (
	StateLoaded   LoadState = "loaded"   // everything works
	StateAlready  LoadState = "already"  // it was in force, and is unchanged
	StateDegraded LoadState = "degraded" // in force, but not all of it works
	StateFailed   LoadState = "failed"   // not in force
)

// Result is what a load came to, for the model and for the person.
type Result struct {
	State    LoadState
	Material *Material // nil where it failed; shared, do not change it
	Text     string    // what the model is given
	Tools    []Tool    // that can be called now, of all skills that were loaded
	Problems []string
	Brought  []string // names of skills that were loaded because it needs them
}

// LoadOptions say how a skill is loaded. The zero value is for a program.
type LoadOptions struct {
	// Keep is for how long it stays in force, and no less than it does already, but where
	// Set says that a person wants it so: then also what it brought along stays so.
	Keep Keep
	Set  bool
	// ByModel says that a model asks: what only a person may load is refused.
	ByModel bool
	// Direct says that the result is not told to the model by the caller: the text
	// becomes a part of the conversation by itself.
	Direct bool
	// Arguments are what a person typed after the name: see [FillArguments]. Of a direct
	// load the author's places for them are filled also where there are none.
	Arguments string
	// By is who brings it into force, where neither ByModel nor Direct says it, and Why is
	// the reason, where that is none of the conversation.
	By  Cause
	Why string
}

// by is who brings a skill into force, "" where that is some program.
func (o LoadOptions) by() Cause {
	switch {
	case o.By != "":
		return o.By
	case o.ByModel:
		return ByModel
	case o.Direct:
		return ByPerson
	}
	return ""
}

// keep is for how long a skill stays in force that is so already, and whether that is what
// a person wants.
func (o LoadOptions) keep(main *Material, a Active) (k Keep, set bool) {
	if o.Set && (a.Skill == main.ID || a.For == main.ID.Name) {
		return o.Keep, true
	}
	return longer(o.Keep, a.Keep), false
}

// flightKey is what loads at the same time have in common to be one.
type flightKey struct {
	ref string
	o   LoadOptions
}

// flight is one load in progress and those who wait for it. Session.mu guards
// its fields until done is closed, and taken after that too.
type flight struct {
	cancel  context.CancelFunc
	done    chan struct{}
	waiting int
	decided bool // what it came to stands, and is in the log
	taken   bool // somebody was given its text
	result  *Result
	err     error
}

// Load brings a skill and those it needs into force. Calls for one reference
// at the same time are one load, and one of them is given its text; to the
// others it is loaded already. The load goes on while somebody waits for it;
// where nobody does any more, nothing is loaded.
//
// A load that cannot be done is a result with [StateFailed] and its reason, not
// an error; an error means that the log could not be written or ctx ended.
func (s *Session) Load(ctx context.Context, ref string) (*Result, error) {
	return s.LoadAs(ctx, ref, LoadOptions{})
}

// LoadAs is [Session.Load] with options. Calls are one where these are the same.
func (s *Session) LoadAs(ctx context.Context, ref string, o LoadOptions) (*Result, error) {
	key := flightKey{ref, o}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f := s.join(ctx, key)
	if f == nil {
		return nil, ErrClosed
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		if s.leave(key, f) {
			return nil, context.Cause(ctx)
		}
		<-f.done // too late to leave: it is in the log, so it must be told
	}
	return s.take(f)
}

// join waits for a load, starting it where there is none; nil is that the
// session is closed.
func (s *Session) join(ctx context.Context, key flightKey) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if f := s.flights[key]; f != nil {
		f.waiting++
		return f
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{cancel: cancel, done: make(chan struct{}), waiting: 1}
	s.flights[key] = f
	s.running.Go(func() { s.fly(ctx, key, f) })
	return f
}

// leave stops waiting. It reports false where the load is decided already.
func (s *Session) leave(key flightKey, f *flight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.decided {
		return false
	}
	if f.waiting--; f.waiting == 0 {
		delete(s.flights, key)
		f.cancel()
	}
	return true
}

func (s *Session) fly(ctx context.Context, key flightKey, f *flight) {
	defer close(f.done)
	defer f.cancel()
	all, err := s.fetch(ctx, key)
	b := s.bring(ctx, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiting > 0 { // else it was taken out of flights when the last one left
		delete(s.flights, key)
		f.decided = true
		if f.err = ErrClosed; !s.closed {
			f.result, f.err = s.enter(ctx, key, all, b, err)
		}
	}
	s.release(s.notInForce(all))
}

// take hands out what a flight came to; the text to the first who asks.
func (s *Session) take(f *flight) (*Result, error) {
	if f.err != nil {
		return nil, f.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := *f.result
	if r.State == StateFailed || r.State == StateAlready {
		return &r, nil
	}
	if f.taken {
		again := already(r.Material)
		again.Tools, again.Problems = r.Tools, r.Problems
		return again, nil
	}
	f.taken = true
	return &r, nil
}

// enter brings what was fetched into force. s.mu is held.
func (s *Session) enter(ctx context.Context, key flightKey, all []*Material, b brought, err error) (*Result, error) {
	if err != nil {
		return &Result{State: StateFailed, Text: s.failure(err), Problems: []string{err.Error()}}, nil
	}
	main := all[len(all)-1]
	r := &Result{State: StateLoaded, Material: main, Tools: b.tools}
	var events []Event
	var texts []string
	loads, before := 0, "" // of the last load, what the conversation has of it
	for _, m := range all {
		filled := m == main && key.o.Arguments != "" // its text is another one each time
		if a, ok := s.state.Find(m.ID); ok && a.Digest == m.Digest && !filled && a.Model == m.Model && slices.Equal(a.AllowedTools, m.AllowedTools) {
			if m == main {
				texts = append(texts, RenderAlready(m))
			}
			u := Used{Skill: m.ID}
			u.Keep, u.Set = key.o.keep(main, a)
			if u.Set || a.Used != s.state.Turn || u.Keep != a.Keep {
				events = append(events, Event{Type: TypeUsed, Used: &u})
			}
			continue
		}
		loads++
		l := Loaded{Skill: m.ID, Title: m.called(), Digest: m.Digest, Version: m.Version, Text: Render(m), Files: m.Files, Tokens: m.Tokens, Needs: m.Needs, Tools: b.names(m.ID),
			Keep: key.o.Keep, Direct: key.o.Direct, AllowedTools: m.AllowedTools, Model: m.Model, Description: m.Description, By: key.o.by(), Why: key.o.Why}
		if old, ok := s.state.Find(m.ID); ok {
			l.Keep, _ = key.o.keep(main, old)
		}
		if m != main {
			l.For, l.By, l.Why = main.ID.Name, ByDependency, ""
			r.Brought = append(r.Brought, m.ID.Name)
		}
		events = append(events, Event{Type: TypeLoaded, Loaded: &l})
		if before = s.told(&l); before != "" {
			texts = append(texts, RenderAgain(m))
		} else {
			texts = append(texts, l.Text)
		}
		r.Problems = append(r.Problems, m.Problems...)
	}
	if len(events) > 0 {
		if rest := b.text(); rest != "" && loads > 0 { // part of what the model was told
			if !strings.HasSuffix(before, "\n"+rest) {
				texts = append(texts, rest)
			}
			lastLoad(events).Text += "\n" + rest
		}
		events = append(events, s.beyond(all, events)...)
		if err := s.append(ctx, events...); err != nil {
			return nil, fmt.Errorf("load %s: %w", main.ID.Name, err)
		}
	}
	if loads == 0 {
		r := already(main)
		r.Tools, r.Problems = b.tools, slices.Concat(r.Problems, b.problems)
		return r, nil
	}
	r.Problems = append(r.Problems, b.problems...)
	if len(r.Problems) > 0 {
		r.State = StateDegraded
	}
	r.Text = strings.Join(texts, "\n")
	return r, nil
}

// told is the text with which the instructions of a load were told before, where that
// is in the conversation still; "" where it is not, or they are others now. s.mu is
// held.
func (s *Session) told(l *Loaded) string {
	if l.Direct {
		return "" // it is told where it is
	}
	for _, e := range slices.Backward(s.events) {
		switch {
		case e.Compacted != nil && !slices.Contains(e.Compacted.Skills, l.Skill):
			return ""
		case e.Loaded != nil && e.Loaded.Skill == l.Skill:
			if strings.HasPrefix(e.Loaded.Text, l.Text) {
				return e.Loaded.Text
			}
			return ""
		}
	}
	return ""
}

// fetch gets the material of a load.
func (s *Session) fetch(ctx context.Context, key flightKey) ([]*Material, error) {
	all, err := s.skills.Fetch(ctx, key.ref)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("skill %s: %w", key.ref, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	main := all[len(all)-1]
	if main.Hidden && key.o.ByModel {
		return nil, fmt.Errorf("the skill %s is for a person to load: it does not let a model do so", main.ID.Name)
	}
	if key.o.Direct || key.o.Arguments != "" {
		filled := *main // it may be shared
		rest := ""
		filled.Instructions, rest = FillArguments(main.Instructions, []string{key.o.Arguments}, main.ArgumentHint != "")
		if rest != "" {
			filled.Instructions = strings.TrimRight(filled.Instructions, "\r\n") + "\n\nArguments: " + rest + "\n"
		}
		all = slices.Clone(all)
		all[len(all)-1] = &filled
	}
	return all, nil
}

// lastLoad is the last of the loads in events, of which there is one.
func lastLoad(events []Event) *Loaded {
	for _, e := range slices.Backward(events) {
		if e.Loaded != nil {
			return e.Loaded
		}
	}
	panic("no skill was loaded")
}

func already(m *Material) *Result {
	return &Result{State: StateAlready, Material: m, Text: RenderAlready(m), Problems: m.Problems}
}

// maxNamed bounds the skills that a failed load names.
const maxNamed = 20

// failure is a failed load for the model: why, and what there is instead.
func (s *Session) failure(err error) string {
	l, ok := s.skills.(Lister)
	if !ok || !errors.Is(err, fs.ErrNotExist) {
		return err.Error()
	}
	names := l.Names()
	if len(names) == 0 {
		return sentence(err) + " There are no skills."
	}
	text := sentence(err) + " Available skills: " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if rest := len(names) - maxNamed; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// sentence is the text of an error with a mark at its end.
func sentence(err error) string {
	if text := err.Error(); strings.HasSuffix(text, "?") {
		return text
	}
	return err.Error() + "."
}

// Refresh compares every skill in force with what it is now and appends
// [TypeUpdated] for each that changed since it was last looked at. A skill
// that is gone is left as it is: its text is in the conversation already.
func (s *Session) Refresh(ctx context.Context) ([]Updated, error) {
	var updated []Updated
	for _, a := range s.Active() {
		now, err := s.skills.Digest(ctx, a.Skill)
		if ctx.Err() != nil {
			return updated, context.Cause(ctx)
		}
		if err != nil || now == a.Current {
			continue
		}
		u, err := s.update(ctx, a.Skill, now)
		if err != nil {
			return updated, err
		}
		if u != nil {
			updated = append(updated, *u)
		}
	}
	return updated, nil
}

// update records that a skill has another digest now, unless that is known by
// now or the skill went out of force meanwhile.
func (s *Session) update(ctx context.Context, id ID, now string) (*Updated, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.state.Find(id)
	if !ok || a.Current == now {
		return nil, nil
	}
	u := Updated{Skill: id, Old: a.Current, Digest: now}
	if err := s.append(ctx, Event{Type: TypeUpdated, Updated: &u}); err != nil {
		return nil, err
	}
	return &u, nil
}
