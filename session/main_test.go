package session_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a set of skills in memory. It counts fetches and can block them.
type shelf struct {
	mu      sync.Mutex
	skills  map[string]*session.Skill
	order   []string
	fetches int
	hold    chan struct{} // if not nil, a fetch waits until it is closed
	began   chan struct{} // receives when a fetch begins to wait
	ended   chan error    // receives the result of the wait
}

var _ session.Skills = (*shelf)(nil)

// put adds or replaces a skill with dependencies.
func (s *shelf) put(name, body string, needs ...string) *session.Skill {
	m := &session.Skill{
		ID:           session.ID{Name: name, Origin: "test", Dir: name},
		Title:        name,
		Digest:       "sha256:" + skillfile.Hash([]byte(body)),
		Instructions: body,
		Tokens:       tokencount.Estimate(body),
		Needs:        needs,
		Files:        []skill.File{{Path: skill.FileName}},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.skills == nil {
		s.skills = map[string]*session.Skill{}
	}
	if s.skills[name] == nil {
		s.order = append(s.order, name)
	}
	s.skills[name] = m
	return m
}

// holdFetches blocks fetches until release is called.
func (s *shelf) holdFetches() (release func()) {
	s.hold, s.began, s.ended = make(chan struct{}), make(chan struct{}, 16), make(chan error, 16)
	return sync.OnceFunc(func() { close(s.hold) })
}

func (s *shelf) Fetch(ctx context.Context, ref string) ([]*session.Skill, error) {
	if s.hold != nil {
		s.began <- struct{}{}
		select {
		case <-s.hold:
			s.ended <- nil
		case <-ctx.Done():
			s.ended <- ctx.Err()
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetches++
	var out []*session.Skill
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		m := s.skills[name]
		if m == nil {
			return fmt.Errorf("skill %q not found: %w", name, fs.ErrNotExist)
		}
		if done[name] {
			return nil
		}
		done[name] = true
		for _, n := range m.Needs {
			if err := add(n); err != nil {
				return err
			}
		}
		fresh := *m
		out = append(out, &fresh)
		return nil
	}
	if err := add(strings.TrimPrefix(ref, "test/")); err != nil {
		return nil, err
	}
	return out, nil
}

func (s *shelf) Digest(_ context.Context, id session.ID) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.skills[id.Name]; m != nil {
		return m.Digest, nil
	}
	return "", errors.New("gone")
}

func (s *shelf) Names() []string { return s.order }

func open(t *testing.T, log session.Log, skills session.Skills) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), skills, &session.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t *testing.T, s *session.Session, ref string) *session.LoadResult {
	t.Helper()
	r, err := s.Load(t.Context(), ref, nil)
	if err != nil {
		t.Fatalf("load %s: %v", ref, err)
	}
	return r
}

func events(t *testing.T, l session.Log) []session.Event {
	t.Helper()
	es, err := l.Read(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

// kinds returns the types of events, each with its skill.
func kinds(es []session.Event) []string {
	var out []string
	for _, e := range es {
		switch {
		case e.Loaded != nil:
			out = append(out, "loaded "+e.Loaded.Skill.Name)
		case e.Unloaded != nil:
			out = append(out, "unloaded "+e.Unloaded.Skill.Name)
		case e.Updated != nil:
			out = append(out, "updated "+e.Updated.Skill.Name)
		default:
			out = append(out, e.Type)
		}
	}
	return out
}

func activeNames(s *session.Session) []string {
	var out []string
	for _, a := range s.Active() {
		out = append(out, a.Skill.Name)
	}
	return out
}
