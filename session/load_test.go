package session_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Check the four outcomes of a load.
func TestW11LoadOutcomes(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "# PDF\nUse pypdf.\n")
	sh.put("empty", "\n\n").Problems = []string{"it has no instructions"}
	l := &session.MemoryLog{}
	s := open(t, l, sh)

	t.Run("unavailable name: failed, with the available ones", func(t *testing.T) {
		r := load(t, s, "pfd")
		if r.State != session.StateFailed || r.Skill != nil || len(r.Problems) != 1 {
			t.Errorf("got %+v, want failed with one problem", r)
		}
		if want := `skill "pfd" not found`; !strings.Contains(r.Text, want) || !strings.HasSuffix(r.Text, "Available skills: pdf, empty") {
			t.Errorf("text %q says neither %q nor which there are", r.Text, want)
		}
	})
	t.Run("without instructions: degraded", func(t *testing.T) {
		r := load(t, s, "empty")
		if r.State != session.StateDegraded || !slices.Equal(r.Problems, []string{"it has no instructions"}) {
			t.Errorf("got %s %q, want degraded with the problem", r.State, r.Problems)
		}
		if !strings.Contains(r.Text, "no instructions") {
			t.Errorf("text %q does not say that instructions are missing", r.Text)
		}
	})
	t.Run("the first load: loaded, with the instructions", func(t *testing.T) {
		r := load(t, s, "pdf")
		if r.State != session.StateLoaded || !strings.Contains(r.Text, "# PDF\nUse pypdf.\n") {
			t.Errorf("got %s %q", r.State, r.Text)
		}
	})
	t.Run("a repeat: already, in one line", func(t *testing.T) {
		r := load(t, s, "pdf")
		if r.State != session.StateAlreadyLoaded || strings.Contains(r.Text, "pypdf") || strings.Count(r.Text, "\n") > 0 {
			t.Errorf("got %s %q, want already without the instructions", r.State, r.Text)
		}
		if r.Skill == nil || r.Skill.ID.Name != "pdf" {
			t.Errorf("the result does not say of which skill: %+v", r)
		}
	})
	if got, want := kinds(events(t, l)), []string{"loaded empty", "loaded pdf"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q: only loads that came to something are recorded", got, want)
	}
}

func TestFailedLoadWithoutSkillsIsReported(t *testing.T) {
	if r := load(t, open(t, &session.MemoryLog{}, &shelf{}), "pdf"); !strings.HasSuffix(r.Text, ". There are no skills.") {
		t.Errorf("text %q", r.Text)
	}
}

func TestFailedLoadNamesAtMost20Skills(t *testing.T) {
	sh := &shelf{}
	for i := range 25 {
		sh.put(fmt.Sprintf("skill-%02d", i), "x")
	}
	r := load(t, open(t, &session.MemoryLog{}, sh), "none")
	if !strings.Contains(r.Text, "skill-19 and 5 more") || strings.Contains(r.Text, "skill-20") {
		t.Errorf("text %q does not end after twenty names", r.Text)
	}
}

func TestDependenciesAreLoadedFirstAndNamed(t *testing.T) {
	sh := &shelf{}
	sh.put("base", "# Base\n")
	sh.put("csv", "# CSV\n", "base")
	sh.put("report", "# Report\n", "csv")
	l := &session.MemoryLog{}
	s := open(t, l, sh)
	r := load(t, s, "report")
	if r.State != session.StateLoaded || !slices.Equal(r.Dependencies, []string{"base", "csv"}) {
		t.Errorf("got %s, provided %q; want loaded, base and csv", r.State, r.Dependencies)
	}
	if i, j, k := strings.Index(r.Text, "# Base"), strings.Index(r.Text, "# CSV"), strings.Index(r.Text, "# Report"); i < 0 || j < i || k < j {
		t.Errorf("bodies are not in the order of need:\n%s", r.Text)
	}
	es := events(t, l)
	if got, want := kinds(es), []string{"loaded base", "loaded csv", "loaded report"}; !slices.Equal(got, want) {
		t.Fatalf("events %q, want %q", got, want)
	}
	for i, want := range []string{"report", "report", ""} {
		if es[i].Loaded.RequiredBy != want {
			t.Errorf("event %d says that it was loaded for %q, want %q", i+1, es[i].Loaded.RequiredBy, want)
		}
	}
	if r := load(t, s, "csv"); r.State != session.StateAlreadyLoaded {
		t.Errorf("a skill that another provided is %s when it is asked for, want already", r.State)
	}
}

func TestDependencyProblemDegradesLoad(t *testing.T) {
	sh := &shelf{}
	sh.put("csv", "# CSV\n").Problems = []string{"its files cannot be listed"}
	sh.put("report", "# Report\n", "csv")
	r := load(t, open(t, &session.MemoryLog{}, sh), "report")
	if r.State != session.StateDegraded || len(r.Problems) != 1 {
		t.Errorf("got %s with %q", r.State, r.Problems)
	}
}

func TestFailedLoadChangesNothing(t *testing.T) {
	sh := &shelf{}
	sh.put("report", "# Report\n", "missing")
	l := &session.MemoryLog{}
	s := open(t, l, sh)
	if r := load(t, s, "report"); r.State != session.StateFailed {
		t.Errorf("got %s, want failed", r.State)
	}
	if es := events(t, l); len(es) != 0 {
		t.Errorf("a failed load left %q", kinds(es))
	}
}

func TestChangedSkillIsReloaded(t *testing.T) {
	sh := &shelf{}
	sh.put("csv", "# CSV\n")
	sh.put("report", "# Report\n", "csv")
	s := open(t, &session.MemoryLog{}, sh)
	load(t, s, "report")

	sh.put("report", "# Report, second edition\n", "csv")
	r := load(t, s, "report")
	if r.State != session.StateLoaded || !strings.Contains(r.Text, "second edition") || len(r.Dependencies) != 0 {
		t.Errorf("got %s, provided %q: %q", r.State, r.Dependencies, r.Text)
	}
	sh.put("csv", "# CSV, second edition\n")
	r = load(t, s, "report")
	if r.State != session.StateLoaded || !slices.Equal(r.Dependencies, []string{"csv"}) || !strings.Contains(r.Text, "CSV, second edition") {
		t.Errorf("a changed dependency: got %s, provided %q: %q", r.State, r.Dependencies, r.Text)
	}
	if strings.Contains(r.Text, "# Report") || !strings.Contains(r.Text, "report is already loaded") {
		t.Errorf("what did not change is given again: %q", r.Text)
	}
}

// Instructions that are still in the conversation are not sent again.
func TestRevertedSkillIsAlreadyLoaded(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "one")
	s := open(t, &session.MemoryLog{}, sh)
	load(t, s, "pdf")
	sh.put("pdf", "two")
	if _, err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	sh.put("pdf", "one")
	if r := load(t, s, "pdf"); r.State != session.StateAlreadyLoaded {
		t.Errorf("got %s, want already", r.State)
	}
}

func TestRefreshRecordsChangeOnce(t *testing.T) {
	sh := &shelf{}
	old := sh.put("pdf", "one")
	sh.put("csv", "same")
	l := &session.MemoryLog{}
	s := open(t, l, sh)
	load(t, s, "pdf")
	load(t, s, "csv")
	now := sh.put("pdf", "two")

	var mu sync.Mutex
	var all []session.SkillUpdate
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := s.Refresh(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, got...)
		})
	}
	wg.Wait()
	want := []session.SkillUpdate{{Skill: old.ID, Old: old.Digest, Digest: now.Digest}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("eight refreshes at once (-want +got):\n%s", diff)
	}
	if got, want := kinds(events(t, l)), []string{"loaded pdf", "loaded csv", "updated pdf"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	a := s.Active()[0]
	if a.Digest != old.Digest || a.Current != now.Digest {
		t.Errorf("active says digest %s and current %s", a.Digest, a.Current)
	}
}

func TestRefreshKeepsMissingSkill(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "one")
	s := open(t, &session.MemoryLog{}, sh)
	load(t, s, "pdf")
	delete(sh.skills, "pdf")
	got, err := s.Refresh(t.Context())
	if err != nil || len(got) != 0 || len(s.Active()) != 1 {
		t.Errorf("got %v, %v, active %q", got, err, activeNames(s))
	}
}

func TestParallelLoadsAreShared(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "# PDF\n")
	release := sh.holdFetches()
	defer release()
	l := &session.MemoryLog{}
	s := open(t, l, sh)
	const callers = 16
	results := make(chan *session.LoadResult, callers)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			r, err := s.Load(t.Context(), "pdf", nil)
			if err != nil {
				t.Error(err)
				return
			}
			results <- r
		})
	}
	<-sh.began
	session.WaitForCallers(s, "pdf", callers)
	release()
	wg.Wait()
	close(results)
	got := map[session.LoadState]int{}
	bodies := 0
	for r := range results {
		got[r.State]++
		bodies += strings.Count(r.Text, "# PDF")
	}
	if sh.fetches != 1 {
		t.Errorf("%d fetches, want 1", sh.fetches)
	}
	if got[session.StateLoaded] != 1 || got[session.StateAlreadyLoaded] != callers-1 || bodies != 1 {
		t.Errorf("outcomes %v with %d bodies; want the body to be given once", got, bodies)
	}
	if es := events(t, l); len(es) != 1 {
		t.Errorf("events %q, want one load", kinds(es))
	}
}

// Each caller of a load that fails gets the failure with its reason.
func TestParallelFailuresAreAllReported(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "# PDF\n")
	release := sh.holdFetches()
	defer release()
	s := open(t, &session.MemoryLog{}, sh)
	results := make(chan *session.LoadResult, 3)
	var wg sync.WaitGroup
	for range cap(results) {
		wg.Go(func() {
			r, err := s.Load(t.Context(), "pfd", nil)
			if err != nil {
				t.Error(err)
			}
			results <- r
		})
	}
	<-sh.began
	session.WaitForCallers(s, "pfd", cap(results))
	release()
	wg.Wait()
	close(results)
	for r := range results {
		if r == nil || r.State != session.StateFailed || !strings.Contains(r.Text, `skill "pfd" not found`) {
			t.Errorf("got %+v", r)
		}
	}
}

func TestCancelledWaiterDoesNotEndLoad(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "# PDF\n")
	release := sh.holdFetches()
	defer release()
	s := open(t, &session.MemoryLog{}, sh)

	impatient, giveUp := context.WithCancelCause(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := s.Load(impatient, "pdf", nil)
		first <- err
	}()
	<-sh.began
	second := make(chan *session.LoadResult, 1)
	go func() {
		r, err := s.Load(t.Context(), "pdf", nil)
		if err != nil {
			t.Error(err)
		}
		second <- r
	}()
	session.WaitForCallers(s, "pdf", 2)
	errGone := errors.New("no longer interested")
	giveUp(errGone)
	if err := <-first; !errors.Is(err, errGone) {
		t.Errorf("who gave up got %v, want the cause", err)
	}
	release()
	if r := <-second; r == nil || r.State != session.StateLoaded || !strings.Contains(r.Text, "# PDF") {
		t.Errorf("who waited on got %+v, want the body", r)
	}
}

// A skill counts as loaded only if a caller got the result.
func TestAbandonedLoadLeavesNothing(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "# PDF\n")
	release := sh.holdFetches()
	defer release()
	l := &session.MemoryLog{}
	s := open(t, l, sh)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Load(ctx, "pdf", nil)
		done <- err
	}()
	<-sh.began
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-sh.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the fetch ended with %v; it should have been told to stop", err)
	}
	release()
	if r := load(t, s, "pdf"); r.State != session.StateLoaded || !strings.Contains(r.Text, "# PDF") {
		t.Errorf("the next load is %s %q, want the body", r.State, r.Text)
	}
	if es := events(t, l); len(es) != 1 {
		t.Errorf("events %q, want one load", kinds(es))
	}
}

// late is a log whose reader is cancelled during a write.
type late struct {
	session.MemoryLog
	giveUp context.CancelFunc
}

func (l *late) Append(ctx context.Context, events ...*session.Event) error {
	l.giveUp()
	return l.MemoryLog.Append(ctx, events...)
}

func TestLoggedLoadIsReported(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "# PDF\n")
	ctx, cancel := context.WithCancel(t.Context())
	l := &late{giveUp: cancel}
	r, err := open(t, l, sh).Load(ctx, "pdf", nil)
	if err != nil || r.State != session.StateLoaded || !strings.Contains(r.Text, "# PDF") {
		t.Errorf("got %+v, %v", r, err)
	}
	if es := events(t, l); len(es) != 1 {
		t.Errorf("events %q", kinds(es))
	}
}

func TestCancelledCallerStartsNoLoad(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(t, &session.MemoryLog{}, sh).Load(ctx, "pdf", nil); !errors.Is(err, context.Canceled) || sh.fetches != 0 {
		t.Errorf("got %v after %d fetches", err, sh.fetches)
	}
}

// full is a log without space.
type full struct{ session.MemoryLog }

var errFull = errors.New("no space left on device")

func (*full) Append(context.Context, ...*session.Event) error { return errFull }

func TestFailedAppendIsAnErrorAndChangesNothing(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "# PDF\n")
	s := open(t, &full{}, sh)
	if _, err := s.Load(t.Context(), "pdf", nil); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "load pdf") {
		t.Errorf("got %v", err)
	}
	if err := s.AddMessage(t.Context(), llm.User, "hello"); !errors.Is(err, errFull) || s.Turn() != 0 {
		t.Errorf("got %v, turn %d", err, s.Turn())
	}
	if len(s.Active()) != 0 {
		t.Errorf("%q counts as loaded, and the log has nothing of it", activeNames(s))
	}
}

// A notice is the program's own text: a model must not read it as the user's.
func TestAddMessageRefusesOtherRoles(t *testing.T) {
	log := &session.MemoryLog{}
	s := open(t, log, &shelf{})
	for _, role := range []llm.Role{llm.Notice, llm.Role("tool"), ""} {
		if err := s.AddMessage(t.Context(), role, "hello"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("invalid role %q", role)) {
			t.Errorf("role %q: %v", role, err)
		}
	}
	if n := len(s.Events(0)); n != 0 {
		t.Errorf("%d events", n)
	}
	for _, role := range []llm.Role{llm.User, llm.Assistant} {
		if err := s.AddMessage(t.Context(), role, "hello"); err != nil {
			t.Error(err)
		}
	}
}

func TestUnload(t *testing.T) {
	setup := func(t *testing.T) (*session.Session, session.Log) {
		sh := &shelf{}
		sh.put("base", "b")
		sh.put("csv", "c", "base")
		sh.put("report", "r", "csv", "base")
		sh.put("pdf", "p")
		l := &session.MemoryLog{}
		s := open(t, l, sh)
		load(t, s, "report")
		load(t, s, "pdf")
		return s, l
	}
	t.Run("unused dependency is unloaded", func(t *testing.T) {
		s, l := setup(t)
		got, err := s.Unload(t.Context(), "report", "done", false)
		if err != nil || !slices.Equal(got, []string{"report"}) {
			t.Errorf("got %q, %v", got, err)
		}
		es := events(t, l)
		if u := es[len(es)-1].Unloaded; u == nil || u.Reason != "done" {
			t.Errorf("the last event is %+v, want the unload with its reason", es[len(es)-1])
		}
	})
	t.Run("needed by others: refused with their names", func(t *testing.T) {
		s, l := setup(t)
		before := len(events(t, l))
		_, err := s.Unload(t.Context(), "base", "done", false)
		var needed *session.NeededByOthersError
		if !errors.As(err, &needed) || !slices.Equal(needed.By, []string{"report", "csv"}) {
			t.Errorf("got %v, want a NeededError that names report and csv", err)
		}
		if want := "skill base is needed by report, csv; unload them too, or all at once"; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		if len(events(t, l)) != before {
			t.Error("a refused unload left an event")
		}
	})
	t.Run("or cascades, dependents first", func(t *testing.T) {
		s, l := setup(t)
		got, err := s.Unload(t.Context(), "base", "done", true)
		if err != nil || !slices.Equal(got, []string{"report", "csv", "base"}) {
			t.Errorf("got %q, %v", got, err)
		}
		if got := activeNames(s); !slices.Equal(got, []string{"pdf"}) {
			t.Errorf("%q are left, want pdf", got)
		}
		es := events(t, l)
		if u := es[len(es)-3].Unloaded; !strings.Contains(u.Reason, "needs base") {
			t.Errorf("report went because %q", u.Reason)
		}
	})
	t.Run("by its key", func(t *testing.T) {
		s, _ := setup(t)
		if _, err := s.Unload(t.Context(), "test/pdf", "done", false); err != nil {
			t.Error(err)
		}
	})
	t.Run("not loaded is an error", func(t *testing.T) {
		s, _ := setup(t)
		if _, err := s.Unload(t.Context(), "other", "", false); !errors.Is(err, session.ErrNotLoaded) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("and can be loaded again with its body", func(t *testing.T) {
		s, _ := setup(t)
		s.Unload(t.Context(), "pdf", "done", false)
		if r := load(t, s, "pdf"); r.State != session.StateLoaded {
			t.Errorf("got %s", r.State)
		}
	})
}

func TestUserMessagesCountTurns(t *testing.T) {
	sh := &shelf{}
	sh.put("pdf", "p")
	s := open(t, &session.MemoryLog{}, sh)
	s.AddMessage(t.Context(), llm.User, "one")
	s.AddMessage(t.Context(), llm.Assistant, "answer")
	s.AddMessage(t.Context(), llm.User, "two")
	load(t, s, "pdf")
	s.AddMessage(t.Context(), llm.User, "three")
	if s.Turn() != 3 || s.Active()[0].Turn != 2 {
		t.Errorf("turn %d, loaded in turn %d; want 3 and 2", s.Turn(), s.Active()[0].Turn)
	}
}

// The caller owns the state that a session returns.
func TestStateIsACopy(t *testing.T) {
	sh := &shelf{}
	sh.put("base", "b")
	sh.put("pdf", "p", "base")
	s := open(t, &session.MemoryLog{}, sh)
	load(t, s, "pdf")
	st := s.State()
	st.Apply(session.Event{Seq: 99, Unloaded: &session.SkillUnload{Skill: session.ID{Name: "pdf", Origin: "test", Dir: "pdf"}}})
	s.Active()[1].Needs[0] = "spoilt"
	if got := s.Active(); len(got) != 2 || got[1].Needs[0] != "base" {
		t.Errorf("the session changed: %+v", got)
	}
}

// No operation of a session changes earlier events, and reading the log yields
// the same state.
func TestEventsAreAppendOnly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sh := &shelf{}
		names := []string{"a", "b", "c", "d"}
		sh.put("a", "a0")
		sh.put("b", "b0", "a")
		sh.put("c", "c0", "b", "a")
		sh.put("d", "d0")
		l := &session.MemoryLog{}
		s := open(t, l, sh)
		name := rapid.SampledFrom(names)
		var before []session.Event
		edits := 0
		check := func(*rapid.T) {
			after := events(t, l)
			if len(after) < len(before) {
				rt.Fatalf("the log shrank from %d to %d events", len(before), len(after))
			}
			if len(before) > 0 && !reflect.DeepEqual(before, after[:len(before)]) {
				rt.Fatalf("earlier events changed:\n%s", cmp.Diff(before, after[:len(before)]))
			}
			for i, e := range after {
				if e.Seq != int64(i)+1 {
					rt.Fatalf("event %d has the number %d", i+1, e.Seq)
				}
			}
			before = after
			again := open(t, l, sh)
			st, want := again.State(), s.State()
			if !reflect.DeepEqual(st, want) {
				rt.Fatalf("reading the log gives another state:\n%s", cmp.Diff(want.Active(), st.Active()))
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": check,
			"load": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				r := load(t, s, n)
				if r.State == session.StateFailed {
					rt.Fatalf("loading %s failed: %s", n, r.Text)
				}
				if again := load(t, s, n); again.State != session.StateAlreadyLoaded {
					rt.Fatalf("loading %s twice gives %s", n, again.State)
				}
			},
			"unload": func(rt *rapid.T) {
				s.Unload(t.Context(), name.Draw(rt, "name"), "test", rapid.Bool().Draw(rt, "cascade"))
				for _, a := range s.Active() {
					for _, need := range a.Needs {
						if !slices.Contains(activeNames(s), need) {
							rt.Fatalf("%s is in force and %s, which it needs, is not", a.Skill.Name, need)
						}
					}
				}
			},
			"edit": func(rt *rapid.T) {
				edits++
				n := name.Draw(rt, "name")
				sh.put(n, fmt.Sprint(n, edits), sh.skills[n].Needs...)
			},
			"refresh": func(rt *rapid.T) {
				if _, err := s.Refresh(t.Context()); err != nil {
					rt.Fatal(err)
				}
				if again, _ := s.Refresh(t.Context()); len(again) != 0 {
					rt.Fatalf("a second refresh finds %v", again)
				}
			},
			"say": func(rt *rapid.T) {
				s.AddMessage(t.Context(), rapid.SampledFrom([]llm.Role{llm.User, llm.Assistant}).Draw(rt, "role"), "text")
			},
		})
	})
}
