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

	"github.com/loadout-dev/loadout/session"
)

// rack brings one tool for each skill that it has, and knows what is held.
type rack struct {
	mu     sync.Mutex
	has    map[string]string // schema by the name of the skill
	broken map[string]string // what is wrong, by the name of the skill
	held   []string
	hook   func()
}

var _ session.Tools = (*rack)(nil)

func (r *rack) Bring(_ context.Context, skills []session.ID) (out []session.Tool, problems []string) {
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
			out = append(out, session.Tool{Name: id.Name + "__do", Description: "Does\nit.", InputSchema: json.RawMessage(schema), Skill: id, NeedsPerson: true})
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

// W20: a load says which tools can be called, and why others cannot; what the model
// is told is what the log keeps.
func TestW20LoadTellsOfTools(t *testing.T) {
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
		{"pdf", session.StateLoaded, "- pdf__do: Does it. [a person is asked]\n  arguments: {\"type\":\"object\"}\n", "Not everything", []string{"pdf__do"}},
		{"big", session.StateLoaded, "- big__do: Does it. [a person is asked]\nAsk for the arguments", "xxx", []string{"big__do"}},
		{"web", session.StateDegraded, "Not everything of it works:\n- MCP server web is dead\n", "Tools of this skill", nil},
	} {
		l := &session.Memory{}
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

// A repeated load still says what the tools are, and what is wrong by now.
func TestRepeatedLoadHasTheTools(t *testing.T) {
	sh, r := &shelf{}, &rack{has: map[string]string{"pdf": "{}"}, broken: map[string]string{}}
	sh.put("pdf", "Do it.\n")
	s := withTools(t, nil, sh, r)
	load(t, s, "pdf")
	if again := load(t, s, "pdf"); again.State != session.StateAlready || len(again.Tools) != 1 {
		t.Errorf("%+v", again)
	}
	r.broken["pdf"] = "it is dead"
	if again := load(t, s, "pdf"); again.State != session.StateAlready || len(again.Tools) != 0 || !slices.Equal(again.Problems, []string{"it is dead"}) {
		t.Errorf("%+v", again)
	}
}

// Who waited for a load of another learns what is wrong with it, too.
func TestSecondCallerLearnsWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh, r := &shelf{}, &rack{broken: map[string]string{"web": "it is dead"}}
		sh.put("web", "Do it.\n")
		s := withTools(t, nil, sh, r)
		go1 := make(chan struct{})
		r.hook = func() { <-go1 }
		results := make(chan *session.Result, 2)
		for range 2 {
			go func() {
				res, err := s.Load(t.Context(), "web")
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

// What a load brought is taken back where it comes to nothing.
func TestFailedLoadTakesToolsBack(t *testing.T) {
	sh, r := &shelf{}, &rack{has: map[string]string{"pdf": "{}"}}
	sh.put("pdf", "Do it.\n")
	t.Run("nobody waits any more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := withTools(t, nil, sh, r)
			ctx, cancel := context.WithCancel(t.Context())
			waited := make(chan struct{})
			r.hook = func() { cancel(); <-waited }
			_, err := s.Load(ctx, "pdf")
			close(waited)
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			synctest.Wait() // for the load that was left
			r.hook = nil
			if got := r.holds(); len(got) > 0 {
				t.Errorf("held are %v", got)
			}
		})
	})
	t.Run("the session is closed meanwhile", func(t *testing.T) {
		r := &rack{has: map[string]string{"pdf": "{}"}}
		s := withTools(t, nil, sh, r)
		begun, end := make(chan struct{}), make(chan struct{})
		r.hook = func() { close(begun); <-end }
		failed := make(chan error, 1)
		go func() {
			_, err := s.Load(t.Context(), "pdf")
			failed <- err
		}()
		<-begun
		closed := make(chan struct{})
		go func() { s.Close(); close(closed) }()
		close(end)
		if err := <-failed; err != nil && !errors.Is(err, session.ErrClosed) { // none: the load was faster
			t.Error(err)
		}
		<-closed
		if got := r.holds(); len(got) > 0 {
			t.Errorf("held are %v", got)
		}
		if _, err := s.Load(t.Context(), "pdf"); !errors.Is(err, session.ErrClosed) {
			t.Errorf("a load after that: %v", err)
		}
	})
	t.Run("the log cannot be written", func(t *testing.T) {
		s := withTools(t, &full{}, sh, r)
		if _, err := s.Load(t.Context(), "pdf"); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		if got := r.holds(); len(got) > 0 {
			t.Errorf("held are %v", got)
		}
	})
}

// "retention and restoration": a skill stays in force for the turn of its last use
// and five more, and a skill that another needs as long as that.
func TestRetentionCountsTurnsSinceLastUse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		turns int // that end before it is used again; 0 is never
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
			if err := s.Say(t.Context(), session.RoleUser, "do it"); err != nil {
				t.Fatal(err)
			}
			load(t, s, "pdf")
			var got strings.Builder
			for turn := range len(tt.want) {
				if tt.turns > 0 && turn == tt.turns {
					if err := s.Use(t.Context(), pdf.ID); err != nil {
						t.Fatal(err)
					}
				}
				for _, role := range []session.Role{session.RoleAssistant, session.RoleUser} {
					if err := s.Say(t.Context(), role, "…"); err != nil {
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
				t.Errorf("in force after each message %s, want %s", got.String(), tt.want)
			}
		})
	}
}

// A use is told once a turn, and of a skill in force only.
func TestUseIsToldOnceATurn(t *testing.T) {
	sh, l := &shelf{}, &session.Memory{}
	pdf := sh.put("pdf", "Do it.\n")
	s := withTools(t, l, sh, &rack{})
	use := func() {
		if err := s.Use(t.Context(), pdf.ID); err != nil {
			t.Fatal(err)
		}
	}
	use()
	load(t, s, "pdf")
	use()
	if err := s.Say(t.Context(), session.RoleUser, "again"); err != nil {
		t.Fatal(err)
	}
	use()
	use()
	var got []session.Type
	for _, e := range events(t, l) {
		got = append(got, e.Type)
	}
	if want := []session.Type{session.TypeLoaded, session.TypeMessage, session.TypeUsed}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}
