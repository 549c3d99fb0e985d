package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// rack provides one tool per skill and records which are in use.
type rack struct {
	mu     sync.Mutex
	has    map[string]string // schema by skill name
	broken map[string]string // problem by skill name
	held   []string
	hook   func()
}

var _ session.Tools = (*rack)(nil)

func (r *rack) Connect(_ context.Context, skills []session.ID) (out []session.Tool, problems []string) {
	if r.hook != nil {
		r.hook()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range skills {
		if !slices.Contains(r.held, id.Name) {
			r.held = append(r.held, id.Name)
		}
		if p := r.broken[id.Name]; p != "" {
			problems = append(problems, p)
		} else if schema, ok := r.has[id.Name]; ok {
			out = append(out, session.Tool{Name: id.Name + "__do", Description: "Does\nit.", InputSchema: json.RawMessage(schema), Skill: id, NeedsApproval: true})
		}
	}
	return out, problems
}

func (r *rack) Release(skills []session.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range skills {
		r.held = slices.DeleteFunc(r.held, func(n string) bool { return n == id.Name })
	}
}

func (r *rack) holds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.held)
}

func withTools(t *testing.T, log session.Log, sh *shelf, r *rack) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), sh, &session.Options{Log: log, Tools: r})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// W20: a load lists the available tools and the problems of others. The log
// contains the text that the model gets.
func TestW20LoadReportsTools(t *testing.T) {
	sh, r := &shelf{}, &rack{has: map[string]string{"pdf": `{"type":"object"}`, "big": `{"title":"` + strings.Repeat("x", 9000) + `"}`}, broken: map[string]string{"web": "MCP server web is dead"}}
	for _, name := range []string{"pdf", "big", "web"} {
		sh.put(name, "Do it.\n")
	}
	for _, tt := range []struct {
		skill    string
		state    session.LoadState
		has, not string
		tools    []string
	}{
		{"pdf", session.StateLoaded, "- pdf__do: Does it. [needs approval]\n  arguments: {\"type\":\"object\"}\n", "Problems", []string{"pdf__do"}},
		{"big", session.StateLoaded, "- big__do: Does it. [needs approval]\nAsk for the arguments", "xxx", []string{"big__do"}},
		{"web", session.StateDegraded, "Problems:\n- MCP server web is dead\n", "Tools of this skill", nil},
	} {
		l := &session.MemoryLog{}
		s := withTools(t, l, sh, r)
		got := load(t, s, tt.skill)
		if got.State != tt.state || !strings.Contains(got.Text, tt.has) || strings.Contains(got.Text, tt.not) || len(got.Tools) != len(tt.tools) {
			t.Errorf("%s: %s with %d tools\n%s", tt.skill, got.State, len(got.Tools), got.Text)
		}
		kept := events(t, l)[0].Loaded
		if kept.Text != got.Text || !slices.Equal(kept.Tools, tt.tools) {
			t.Errorf("%s: the log has tools %v and the text\n%s\nwant\n%s", tt.skill, kept.Tools, kept.Text, got.Text)
		}
	}
}

// A repeated load still lists the tools and the current problems.
func TestRepeatedLoadReportsTools(t *testing.T) {
	sh, r := &shelf{}, &rack{has: map[string]string{"pdf": "{}"}, broken: map[string]string{}}
	sh.put("pdf", "Do it.\n")
	s := withTools(t, nil, sh, r)
	load(t, s, "pdf")
	if again := load(t, s, "pdf"); again.State != session.StateAlreadyLoaded || len(again.Tools) != 1 {
		t.Errorf("%+v", again)
	}
	r.broken["pdf"] = "it is dead"
	if again := load(t, s, "pdf"); again.State != session.StateAlreadyLoaded || len(again.Tools) != 0 || !slices.Equal(again.Problems, []string{"it is dead"}) {
		t.Errorf("%+v", again)
	}
}

// After the servers of a skill are approved, the next load lists the new tools
// once, even in a reopened conversation.
func TestLaterLoadNamesNewlyApprovedTools(t *testing.T) {
	sh, r := &shelf{}, &rack{has: map[string]string{}, broken: map[string]string{"pdf": "its MCP servers are not approved"}}
	sh.put("pdf", "Do it.\n")
	log := &session.MemoryLog{}
	s := withTools(t, log, sh, r)
	first, err := s.Load(t.Context(), "pdf", nil)
	if err != nil || first.State != session.StateDegraded {
		t.Fatalf("first load: %v, %v", first, err)
	}
	r.mu.Lock()
	r.has["pdf"], r.broken = `{"type":"object"}`, nil
	r.mu.Unlock()
	for i, want := range []bool{true, false} {
		got, err := s.Load(t.Context(), "pdf", nil)
		if err != nil || got.State != session.StateAlreadyLoaded || len(got.Tools) != 1 {
			t.Fatalf("load %d: %v, %v", i+2, got, err)
		}
		if named := strings.Contains(got.Text, "pdf__do"); named != want {
			t.Errorf("load %d: %q", i+2, got.Text)
		}
	}
	if a := s.Active(); len(a) != 1 || !slices.Equal(a[0].Tools, []string{"pdf__do"}) {
		t.Errorf("active: %v", a)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = withTools(t, log, sh, r)
	defer s.Close()
	if got, err := s.Load(t.Context(), "pdf", nil); err != nil || strings.Contains(got.Text, "pdf__do") {
		t.Errorf("after reopening: %q, %v", got.Text, err)
	}
}

func TestSecondCallerGetsProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh, r := &shelf{}, &rack{broken: map[string]string{"web": "it is dead"}}
		sh.put("web", "Do it.\n")
		s := withTools(t, nil, sh, r)
		go1 := make(chan struct{})
		r.hook = func() { <-go1 }
		results := make(chan *session.LoadResult, 2)
		for range 2 {
			go func() {
				res, err := s.Load(t.Context(), "web", nil)
				if err != nil {
					t.Error(err)
				}
				results <- res
			}()
		}
		synctest.Wait()
		close(go1)
		for range 2 {
			if res := <-results; !slices.Equal(res.Problems, []string{"it is dead"}) {
				t.Errorf("%s with problems %v", res.State, res.Problems)
			}
		}
	})
}

// The tools of a failed or abandoned load are released.
func TestFailedLoadReleasesTools(t *testing.T) {
	sh, r := &shelf{}, &rack{has: map[string]string{"pdf": "{}"}}
	sh.put("pdf", "Do it.\n")
	t.Run("no waiters", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := withTools(t, nil, sh, r)
			ctx, cancel := context.WithCancel(t.Context())
			waited := make(chan struct{})
			r.hook = func() { cancel(); <-waited }
			_, err := s.Load(ctx, "pdf", nil)
			close(waited)
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			synctest.Wait() // wait for the abandoned load
			r.hook = nil
			if got := r.holds(); len(got) > 0 {
				t.Errorf("held are %v", got)
			}
		})
	})
	t.Run("session closed meanwhile", func(t *testing.T) {
		r := &rack{has: map[string]string{"pdf": "{}"}}
		s := withTools(t, nil, sh, r)
		started, end := make(chan struct{}), make(chan struct{})
		r.hook = func() { close(started); <-end }
		failed := make(chan error, 1)
		go func() {
			_, err := s.Load(t.Context(), "pdf", nil)
			failed <- err
		}()
		<-started
		closed := make(chan struct{})
		go func() { s.Close(); close(closed) }()
		close(end)
		if err := <-failed; err != nil && !errors.Is(err, session.ErrClosed) { // no error: the load was faster
			t.Error(err)
		}
		<-closed
		if got := r.holds(); len(got) > 0 {
			t.Errorf("held are %v", got)
		}
		if _, err := s.Load(t.Context(), "pdf", nil); !errors.Is(err, session.ErrClosed) {
			t.Errorf("a load after that: %v", err)
		}
	})
	t.Run("the log cannot be written", func(t *testing.T) {
		s := withTools(t, &full{}, sh, r)
		if _, err := s.Load(t.Context(), "pdf", nil); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		if got := r.holds(); len(got) > 0 {
			t.Errorf("held are %v", got)
		}
	})
}

// "retention and restoration": a skill stays active for the turn of its last
// use and five more, and a dependency as long as the skill that needs it.
func TestRetentionCountsTurnsSinceLastUse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		turns int // turns that end before its next use; 0 means none
		want  string
	}{
		{"never used again: gone with the sixth message", 0, "111110"},
		{"a use counts from there", 3, "111111110"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sh := &shelf{}
			sh.put("base", "It.\n")
			pdf := sh.put("pdf", "Do it.\n", "base")
			s := withTools(t, nil, sh, &rack{})
			if err := s.AddMessage(t.Context(), llm.User, "do it"); err != nil {
				t.Fatal(err)
			}
			load(t, s, "pdf")
			var got strings.Builder
			for turn := range len(tt.want) {
				if tt.turns > 0 && turn == tt.turns {
					if err := s.RecordUse(t.Context(), pdf.ID); err != nil {
						t.Fatal(err)
					}
				}
				for _, role := range []llm.Role{llm.Assistant, llm.User} {
					if err := s.AddMessage(t.Context(), role, "…"); err != nil {
						t.Fatal(err)
					}
				}
				switch len(s.Active()) {
				case 2:
					got.WriteByte('1')
				case 0:
					got.WriteByte('0')
				default:
					got.WriteByte('?')
				}
			}
			if got.String() != tt.want {
				t.Errorf("active after each message %s, want %s", got.String(), tt.want)
			}
		})
	}
}

// A use is recorded once per turn, and only for active skills.
func TestUseIsReportedOncePerTurn(t *testing.T) {
	sh, l := &shelf{}, &session.MemoryLog{}
	pdf := sh.put("pdf", "Do it.\n")
	s := withTools(t, l, sh, &rack{})
	use := func() {
		if err := s.RecordUse(t.Context(), pdf.ID); err != nil {
			t.Fatal(err)
		}
	}
	use()
	load(t, s, "pdf")
	use()
	if err := s.AddMessage(t.Context(), llm.User, "again"); err != nil {
		t.Fatal(err)
	}
	use()
	use()
	var got []string
	for _, e := range events(t, l) {
		got = append(got, e.Type)
	}
	if want := []string{"skill_loaded", "message", "skill_used"}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}
