package session_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func loadAs(t *testing.T, s *session.Session, ref string, o session.LoadOptions) *session.LoadResult {
	t.Helper()
	r, err := s.Load(t.Context(), ref, &o)
	if err != nil {
		t.Fatalf("load %s: %v", ref, err)
	}
	return r
}

// ask adds a message of the user, which begins a turn.
func ask(t *testing.T, s *session.Session, times int) {
	t.Helper()
	for range times {
		if err := s.AddMessage(t.Context(), llm.User, "next"); err != nil {
			t.Fatal(err)
		}
	}
}

func withOptions(t *testing.T, sh session.Skills, o session.Options) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), sh, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// lastReason returns the reason of the last unload.
func lastReason(s *session.Session) string {
	for _, e := range slices.Backward(s.Events(0)) {
		if e.Unloaded != nil {
			return e.Unloaded.Skill.Name + ": " + e.Unloaded.Reason
		}
	}
	return ""
}

func TestRetentionLimitsActivity(t *testing.T) {
	sh := pasts()
	t.Run("once: until the end of the turn", func(t *testing.T) {
		s := withOptions(t, sh, session.Options{})
		ask(t, s, 1)
		loadAs(t, s, "report", session.LoadOptions{Retention: session.RetainOnce})
		if got := lefts(s); got != "base 0, report 0" {
			t.Errorf("active skills: %q", got)
		}
		if err := s.AddMessage(t.Context(), llm.Assistant, "so"); err != nil || len(s.Active()) != 2 {
			t.Errorf("an answer ends no turn: %q, %v", lefts(s), err)
		}
		ask(t, s, 1)
		if got, why := lefts(s), lastReason(s); got != "" || why != "base: it was for one turn" {
			t.Errorf("active skills: %q; %s", got, why)
		}
	})
	t.Run("once, even without expiry by turns", func(t *testing.T) {
		s := withOptions(t, sh, session.Options{RetentionTurns: -1})
		loadAs(t, s, "a", session.LoadOptions{Retention: session.RetainOnce})
		load(t, s, "b")
		ask(t, s, 100)
		if got := lefts(s); got != "b for good" {
			t.Errorf("active skills: %q", got)
		}
	})
	t.Run("pinned: a hundred turns and more", func(t *testing.T) {
		s := withOptions(t, sh, session.Options{})
		loadAs(t, s, "report", session.LoadOptions{Retention: session.RetainPinned})
		load(t, s, "a")
		ask(t, s, 100)
		if got := lefts(s); got != "base for good, report for good" {
			t.Errorf("active skills: %q", got)
		}
		if _, err := s.Unload(t.Context(), "report", "enough", false); err != nil {
			t.Errorf("a pinned skill cannot be unloaded: %v", err)
		}
	})
	t.Run("dependencies of a pinned skill stay", func(t *testing.T) {
		s := withOptions(t, sh, session.Options{})
		load(t, s, "base")
		loadAs(t, s, "report", session.LoadOptions{Retention: session.RetainPinned})
		ask(t, s, 100)
		if got := lefts(s); got != "base for good, report for good" {
			t.Errorf("active skills: %q", got)
		}
	})
	t.Run("a retention of its own", func(t *testing.T) {
		s := withOptions(t, sh, session.Options{RetentionTurns: 2})
		load(t, s, "a")
		var got []string
		for range 4 {
			got = append(got, lefts(s))
			ask(t, s, 1)
		}
		if want := []string{"a 2", "a 1", "a 0", ""}; !slices.Equal(got, want) {
			t.Errorf("active skills: %q, want %q", got, want)
		}
		if why := lastReason(s); why != "a: not used for 2 turns" {
			t.Error(why)
		}
	})
	t.Run("inactive skill has no turns left", func(t *testing.T) {
		s := withOptions(t, sh, session.Options{})
		if left, bounded := s.TurnsLeft(session.ID{Name: "a", Origin: "test", Dir: "a"}); left != 0 || bounded {
			t.Errorf("%d turns, bounded %t", left, bounded)
		}
	})
}

// Loading an active skill can extend its retention but never shorten it.
func TestSecondLoadKeepsLongerRetention(t *testing.T) {
	const used, pinned, once = session.RetainUsed, session.RetainPinned, session.RetainOnce
	for _, tt := range []struct{ first, second, want session.RetentionMode }{
		{once, once, once},
		{once, used, used},
		{once, pinned, pinned},
		{used, once, used},
		{used, used, used},
		{used, pinned, pinned},
		{pinned, once, pinned},
		{pinned, used, pinned},
		{pinned, pinned, pinned},
	} {
		for _, edited := range []bool{false, true} {
			sh := pasts()
			l := &session.MemoryLog{}
			s := withOptions(t, sh, session.Options{Log: l})
			loadAs(t, s, "a", session.LoadOptions{Retention: tt.first})
			if edited {
				sh.put("a", "another edition")
			}
			loadAs(t, s, "a", session.LoadOptions{Retention: tt.second})
			if err := s.RecordUse(t.Context(), s.Active()[0].Skill); err != nil {
				t.Fatal(err)
			}
			if got := s.Active()[0].Retention; got != tt.want {
				t.Errorf("%q and then %q (edited: %t) is %q, want %q", tt.first, tt.second, edited, got, tt.want)
			}
			before := len(events(t, l))
			loadAs(t, s, "a", session.LoadOptions{Retention: tt.second})
			if after := len(events(t, l)); after != before {
				t.Errorf("%q and then %q twice: the third load adds %d events", tt.first, tt.second, after-before)
			}
		}
	}
}

// The user can also shorten the retention of a skill and its dependencies.
func TestUserSetsRetention(t *testing.T) {
	s := withOptions(t, pasts(), session.Options{})
	set := func(keep session.RetentionMode) string {
		t.Helper()
		loadAs(t, s, "report", session.LoadOptions{Retention: keep, Exact: true, Direct: true})
		return lefts(s)
	}
	ask(t, s, 1)
	load(t, s, "report")
	for _, tt := range []struct {
		keep session.RetentionMode
		want string
	}{
		{session.RetainPinned, "base for good, report for good"},
		{session.RetainUsed, "base 5, report 5"},
		{session.RetainPinned, "base for good, report for good"},
		{session.RetainOnce, "base 1, report 1"},
	} {
		if got := set(tt.keep); got != tt.want {
			t.Errorf("kept %q: %s, want %s", tt.keep, got, tt.want)
		}
	}
	ask(t, s, 1)
	if got := lefts(s); got != "base 0, report 0" {
		t.Errorf("in the turn that it is for: %q", got)
	}
	ask(t, s, 1)
	if got := lefts(s); got != "" {
		t.Errorf("after it: %q", got)
	}
}

// A skill that the user loads for one turn is active in the next turn.
func TestManualLoadForOneTurn(t *testing.T) {
	s := withOptions(t, pasts(), session.Options{})
	ask(t, s, 1)
	loadAs(t, s, "a", session.LoadOptions{Retention: session.RetainOnce, Direct: true})
	var got []string
	for range 3 {
		got = append(got, lefts(s))
		ask(t, s, 1)
	}
	if want := []string{"a 1", "a 0", ""}; !slices.Equal(got, want) {
		t.Errorf("active skills: %q, want %q", got, want)
	}
}

// The log records who loaded a skill.
func TestLoadedBy(t *testing.T) {
	s := withOptions(t, pasts(), session.Options{})
	loadAs(t, s, "report", session.LoadOptions{Direct: true, By: session.ByPreload, Why: "a default"})
	loadAs(t, s, "a", session.LoadOptions{ByModel: true})
	loadAs(t, s, "b", session.LoadOptions{Direct: true})
	var got []string
	for _, a := range s.Active() {
		got = append(got, strings.TrimSpace(a.Skill.Name+" "+string(a.By)+" "+a.RequiredBy+a.Why))
	}
	if want := []string{"base dependency report", "report preload a default", "a model", "b person"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A use in a later turn does not change the retention mode.
func TestUseDoesNotChangeRetention(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{})
	loadAs(t, s, "a", session.LoadOptions{Retention: session.RetainPinned})
	ask(t, s, 1)
	if err := s.RecordUse(t.Context(), sh.skills["a"].ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), session.Event{Used: &session.SkillUse{Skill: sh.skills["a"].ID}}); err != nil {
		t.Fatal(err)
	}
	if got := s.Active()[0]; got.Retention != session.RetainPinned || got.Used != 1 {
		t.Errorf("kept %q, used in turn %d", got.Retention, got.Used)
	}
}

func TestBudget(t *testing.T) {
	sh := &shelf{}
	for _, name := range []string{"a", "b", "c", "base", "other"} {
		sh.put(name, strings.Repeat("word ", 100))
	}
	sh.put("report", strings.Repeat("word ", 100), "base")
	sh.put("huge", strings.Repeat("word ", 1000))
	one := sh.skills["a"].Tokens
	steps := func(names ...string) func(*testing.T, *session.Session) {
		return func(t *testing.T, s *session.Session) {
			for _, name := range names {
				load(t, s, name)
				ask(t, s, 1)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		budget int
		do     func(*testing.T, *session.Session)
		want   []string
	}{
		{"within it all stay", 3 * one, steps("a", "b", "c"), []string{"a", "b", "c"}},
		{"beyond it the least recently used goes", 2 * one, steps("a", "b", "c"), []string{"b", "c"}},
		{"a use counts", 2 * one, steps("a", "b", "a", "c"), []string{"a", "c"}},
		{"in one turn the first that was loaded goes", 2 * one, func(t *testing.T, s *session.Session) {
			for _, name := range []string{"a", "b", "c"} {
				load(t, s, name)
			}
		}, []string{"b", "c"}},
		{"what is just loaded stays, however long", 2 * one, steps("a", "b", "huge"), []string{"huge"}},
		{"and goes with the next load", 2 * one, steps("huge", "a"), []string{"a"}},
		{"a pinned skill stays", 2 * one, func(t *testing.T, s *session.Session) {
			loadAs(t, s, "a", session.LoadOptions{Retention: session.RetainPinned})
			steps("b", "c")(t, s)
		}, []string{"a", "c"}},
		{"what a skill in force needs stays", 3 * one, func(t *testing.T, s *session.Session) {
			steps("report", "a")(t, s)
			if err := s.RecordUse(t.Context(), sh.skills["report"].ID); err != nil {
				t.Fatal(err)
			}
			steps("b")(t, s)
		}, []string{"base", "report", "b"}},
		{"and goes after it where it is needed no more", one, steps("report", "a"), []string{"a"}},
		{"what is loaded keeps what it needs, loaded in the same turn", 2 * one, func(t *testing.T, s *session.Session) {
			load(t, s, "base")
			load(t, s, "a")
			load(t, s, "report")
		}, []string{"base", "report"}},
		{"a longer edition counts in place of the old one", 2 * one, func(t *testing.T, s *session.Session) {
			steps("a", "other")(t, s)
			sh.put("other", strings.Repeat("word ", 150))
			steps("other")(t, s)
		}, []string{"other"}},
		{"none is none", 0, steps("a", "b", "c", "report"), []string{"a", "b", "c", "base", "report"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := withOptions(t, sh, session.Options{Budget: tt.budget})
			tt.do(t, s)
			if got := activeNames(s); !slices.Equal(got, tt.want) {
				t.Errorf("active skills: %q, want %q", got, tt.want)
			}
		})
	}
	s := withOptions(t, sh, session.Options{Budget: 1})
	steps("a", "b")(t, s)
	if why := lastReason(s); why != "a: the instructions in force are bounded to 1 tokens" {
		t.Error(why)
	}
}

// Skills that a budget or a compaction unloads release their tools.
func TestExpiryReleasesTools(t *testing.T) {
	sh, r := pasts(), &rack{has: map[string]string{"a": "{}", "b": "{}"}}
	s := withOptions(t, sh, session.Options{Tools: r, Budget: 1})
	load(t, s, "a")
	load(t, s, "b")
	if got := r.holds(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("beyond the budget held are the tools of %q", got)
	}
	s = withOptions(t, sh, session.Options{Tools: r})
	load(t, s, "a")
	load(t, s, "b")
	if err := s.Append(t.Context(), session.Event{Compacted: &session.Compaction{Text: "So far.", Skills: []session.ID{sh.skills["a"].ID}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.holds(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after a compaction held are the tools of %q", got)
	}
}

// A hidden skill can be loaded by the user and the program, but not by the
// model.
func TestModelCannotLoadHiddenSkills(t *testing.T) {
	sh := pasts()
	sh.put("chain", "Needs it.\n", "people")
	l := &session.MemoryLog{}
	s := withOptions(t, sh, session.Options{Log: l})
	r := loadAs(t, s, "people", session.LoadOptions{ByModel: true})
	if r.State != session.StateFailed || r.Skill != nil || !strings.Contains(r.Text, "only users can load skill people") {
		t.Errorf("for a model: %s %q", r.State, r.Text)
	}
	if n := len(events(t, l)); n != 0 {
		t.Errorf("the refused load left %d events", n)
	}
	if r := loadAs(t, s, "chain", session.LoadOptions{ByModel: true}); r.State != session.StateLoaded || !slices.Equal(r.Dependencies, []string{"people"}) {
		t.Errorf("as what another needs: %s, provided %q", r.State, r.Dependencies)
	}
	s = withOptions(t, sh, session.Options{})
	if r := loadAs(t, s, "people", session.LoadOptions{Direct: true}); r.State != session.StateLoaded || !strings.Contains(r.Text, "Do it.") {
		t.Errorf("for a user: %s %q", r.State, r.Text)
	}
}

// Each load fills the placeholders with its own arguments.
func TestLoadWithArguments(t *testing.T) {
	sh := pasts()
	m := sh.put("deploy", "Deploy $ARGUMENTS now.\n")
	m.Hidden, m.ArgumentHint = true, "[place]"
	sh.put("plain", "Do it.\n")
	l := &session.MemoryLog{}
	s := withOptions(t, sh, session.Options{Log: l})
	for _, location := range []string{"Bremen", "Kiel", "Kiel"} {
		r := loadAs(t, s, "deploy", session.LoadOptions{Direct: true, Arguments: location})
		if r.State != session.StateLoaded || !strings.Contains(r.Text, "Deploy "+location+" now.") {
			t.Errorf("%s: %s %q", location, r.State, r.Text)
		}
		last := events(t, l)[len(events(t, l))-1].Loaded
		if last == nil || !last.Direct || last.Text != r.Text || last.Digest != m.Digest {
			t.Errorf("%s: the log has %+v", location, last)
		}
	}
	if n := len(s.Active()); n != 1 {
		t.Errorf("%d skills are active", n)
	}
	if r := loadAs(t, s, "plain", session.LoadOptions{Arguments: "with care"}); !strings.Contains(r.Text, "Do it.\n\nArguments: with care\n") {
		t.Errorf("arguments without a place: %q", r.Text)
	}
	if m.Instructions != "Deploy $ARGUMENTS now.\n" {
		t.Error("the skill itself was changed")
	}
}

func TestLoadsWithDifferentOptionsAreSeparate(t *testing.T) {
	sh := pasts()
	release := sh.holdFetches()
	s := withOptions(t, sh, session.Options{})
	done := make(chan *session.LoadResult, 2)
	for _, location := range []string{"x", "y"} {
		go func() {
			r, _ := s.Load(t.Context(), "a", &session.LoadOptions{Arguments: location})
			done <- r
		}()
		<-sh.began
	}
	release()
	text := (<-done).Text + (<-done).Text
	if !strings.Contains(text, "Arguments: x") || !strings.Contains(text, "Arguments: y") {
		t.Errorf("got %q", text)
	}
}

// The time for a compaction does not grow with the number of active skills times that
// of the skills that it keeps: this would take ten minutes.
func TestCompactionOfManySkills(t *testing.T) {
	var state session.State
	for i := range int64(100_000) {
		state.Apply(session.Event{Seq: i + 1, Loaded: &session.SkillLoad{Skill: session.ID{Dir: strconv.FormatInt(i, 10)}}})
	}
	state.Apply(session.Event{Seq: 100_001, Compacted: &session.Compaction{Skills: append(make([]session.ID, 1_000_000), session.ID{Dir: "7"})}})
	if a := state.Active(); len(a) != 1 || a[0].Skill.Dir != "7" {
		t.Errorf("%d active skills", len(a))
	}
}

// A compaction unloads the skills that it does not include, and nothing else.
func TestCompactionKeepsActiveSkills(t *testing.T) {
	sh := pasts()
	l := &session.MemoryLog{}
	s := withOptions(t, sh, session.Options{Log: l})
	for _, name := range []string{"a", "b", "c"} {
		load(t, s, name)
		ask(t, s, 1)
	}
	before := s.Active()
	if err := s.Append(t.Context(), session.Event{Compacted: &session.Compaction{
		Text: "So far.", Skills: []session.ID{before[2].Skill, before[0].Skill, {Name: "z", Origin: "test", Dir: "z"}}}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]session.ActiveSkill{before[0], before[2]}, s.Active()); diff != "" || s.Turn() != 3 {
		t.Errorf("after turn %d (-want +got):\n%s", s.Turn(), diff)
	}
	if r := load(t, s, "a"); r.State != session.StateAlreadyLoaded {
		t.Errorf("what was carried on is %s", r.State)
	}
	if r := load(t, s, "b"); r.State != session.StateLoaded {
		t.Errorf("what was not is %s", r.State)
	}
	again := open(t, l, sh)
	if diff := cmp.Diff(s.Active(), again.Active()); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if err := s.Append(t.Context(), session.Event{Compacted: &session.Compaction{Text: "So far."}}); err != nil || len(s.Active()) != 0 {
		t.Errorf("a compaction that carries nothing on leaves %q, %v", lefts(s), err)
	}
}
