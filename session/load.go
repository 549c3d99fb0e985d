package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/loadout-dev/loadout/skill"
)

// Skills is where a session gets its skills from.
type Skills interface {
	// Fetch resolves a reference and returns the skill and those it needs,
	// each after those it needs, as they are now.
	Fetch(ctx context.Context, ref string) ([]*Material, error)
	// Digest returns the digest of a skill's SKILL.md as it is now.
	Digest(ctx context.Context, id ID) (string, error)
}

// Material is a skill as it is delivered: level 2, and the names of level 3.
type Material struct {
	ID           ID
	Title        string
	Version      string
	Digest       string // "sha256:" and the hex SHA-256 of SKILL.md
	Instructions string // as written
	Location     string // where its reader finds its files
	Files        []skill.File
	Tokens       int // of the instructions, estimated
	Needs        []string
	Problems     []string
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
	Material *Material // nil where it failed
	Text     string    // what the model is given
	Problems []string
	Brought  []string // names of skills that were loaded because it needs them
}

// Session is one conversation. It is safe for concurrent use.
type Session struct {
	log    Log
	skills Skills
	flight singleflight.Group

	mu    sync.Mutex // guards state; held while appending, so that both agree
	state State
}

// Open continues the conversation in log, which may be empty.
func Open(ctx context.Context, log Log, skills Skills) (*Session, error) {
	events, err := log.Read(ctx, 0)
	if err != nil {
		return nil, err
	}
	s := &Session{log: log, skills: skills}
	for _, e := range events {
		s.state.Apply(e)
	}
	return s, nil
}

// Append adds events to the log and to the state.
func (s *Session) Append(ctx context.Context, events ...Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(ctx, events...)
}

func (s *Session) append(ctx context.Context, events ...Event) error {
	ptrs := make([]*Event, len(events))
	for i := range events {
		if events[i].Time.IsZero() {
			events[i].Time = time.Now().UTC()
		}
		ptrs[i] = &events[i]
	}
	if err := s.log.Append(ctx, ptrs...); err != nil {
		return err
	}
	for _, e := range events {
		s.state.Apply(e)
	}
	return nil
}

// Say adds a message.
func (s *Session) Say(ctx context.Context, role Role, text string) error {
	return s.Append(ctx, Event{Type: TypeMessage, Message: &Message{role, text}})
}

// Active returns the skills in force in the order in which they were loaded.
func (s *Session) Active() []Active {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Active()
}

// Turn is the number of the current turn, 0 before the first message.
func (s *Session) Turn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Turn
}

// Load brings a skill and those it needs into force. Calls for one reference
// at the same time are one load. A load that cannot be done is a result with
// [StateFailed] and its reason, not an error; an error means that the log
// could not be written or ctx ended.
func (s *Session) Load(ctx context.Context, ref string) (*Result, error) {
	ch := s.flight.DoChan(ref, func() (any, error) { return s.load(context.WithoutCancel(ctx), ref) })
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-ch:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Result), nil
	}
}

func (s *Session) load(ctx context.Context, ref string) (*Result, error) {
	all, err := s.skills.Fetch(ctx, ref)
	if err != nil {
		return &Result{State: StateFailed, Text: err.Error(), Problems: []string{err.Error()}}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	main := all[len(all)-1]
	if a, ok := s.state.Find(main.ID); ok && a.Digest == main.Digest {
		return &Result{State: StateAlready, Material: main, Text: RenderAlready(main), Problems: main.Problems}, nil
	}
	r := &Result{State: StateLoaded, Material: main}
	var events []Event
	var texts []string
	for _, m := range all {
		if a, ok := s.state.Find(m.ID); ok && a.Digest == m.Digest {
			continue
		}
		l := Loaded{Skill: m.ID, Digest: m.Digest, Text: Render(m), Files: m.Files, Tokens: m.Tokens, Needs: m.Needs}
		if m != main {
			l.For = main.ID.Name
			r.Brought = append(r.Brought, m.ID.Name)
		}
		events = append(events, Event{Type: TypeLoaded, Loaded: &l})
		texts = append(texts, l.Text)
		r.Problems = append(r.Problems, m.Problems...)
	}
	if len(r.Problems) > 0 {
		r.State = StateDegraded
	}
	r.Text = strings.Join(texts, "\n\n")
	if err := s.append(ctx, events...); err != nil {
		return nil, fmt.Errorf("load %s: %w", main.ID.Name, err)
	}
	return r, nil
}

// NeededError says that a skill cannot be unloaded because others need it.
type NeededError struct {
	Name string
	By   []string
}

func (e *NeededError) Error() string {
	return fmt.Sprintf("skill %s is needed by %s; unload them too, or all at once", e.Name, strings.Join(e.By, ", "))
}

// ErrNotLoaded says that a skill is not in force.
var ErrNotLoaded = errors.New("skill is not loaded")

// Unload takes a skill out of force. Where other skills in force need it, it
// is a [*NeededError], or with cascade these are unloaded first. It returns
// the names of what was unloaded.
func (s *Session) Unload(ctx context.Context, name, reason string, cascade bool) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := s.state.Active()
	i := slices.IndexFunc(active, func(a Active) bool { return a.Skill.Name == name || a.Skill.Key() == name })
	if i < 0 {
		return nil, fmt.Errorf("unload %s: %w", name, ErrNotLoaded)
	}
	going := dependents(active, active[i].Skill.Name)
	if len(going) > 0 && !cascade {
		return nil, &NeededError{name, names(going)}
	}
	going = append(going, active[i])
	var events []Event
	for _, a := range going {
		why := reason
		if a.Skill != active[i].Skill {
			why = fmt.Sprintf("needs %s, which was unloaded", name)
		}
		events = append(events, Event{Type: TypeUnloaded, Unloaded: &Unloaded{a.Skill, why}})
	}
	if err := s.append(ctx, events...); err != nil {
		return nil, fmt.Errorf("unload %s: %w", name, err)
	}
	return names(going), nil
}

// dependents are the active skills that need name, the outermost first.
func dependents(active []Active, name string) []Active {
	needed := map[string]bool{name: true}
	var out []Active
	for grew := true; grew; {
		grew = false
		for _, a := range active {
			if !needed[a.Skill.Name] && slices.ContainsFunc(a.Needs, func(n string) bool { return needed[n] }) {
				needed[a.Skill.Name], grew = true, true
				out = append([]Active{a}, out...)
			}
		}
	}
	return out
}

func names(active []Active) []string {
	var out []string
	for _, a := range active {
		out = append(out, a.Skill.Name)
	}
	return out
}

// Refresh compares every skill in force with what it is now and appends
// [TypeUpdated] for each that changed since it was last looked at. A skill
// that is gone is left as it is: its text is in the conversation already.
func (s *Session) Refresh(ctx context.Context) ([]Updated, error) {
	var updated []Updated
	for _, a := range s.Active() {
		now, err := s.skills.Digest(ctx, a.Skill)
		if err != nil || now == a.Current {
			continue
		}
		u := Updated{Skill: a.Skill, Old: a.Current, Digest: now}
		if err := s.Append(ctx, Event{Type: TypeUpdated, Updated: &u}); err != nil {
			return updated, err
		}
		updated = append(updated, u)
	}
	return updated, nil
}
