package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// library returns a shelf with skills for many cases: with dependencies, long,
// hidden, without instructions.
func library() *shelf {
	sh := &shelf{}
	sh.put("a", strings.Repeat("a ", 50))
	sh.put("b", strings.Repeat("b ", 100), "a")
	sh.put("c", strings.Repeat("c ", 150), "b", "a")
	sh.put("d", strings.Repeat("d ", 200))
	sh.put("e", strings.Repeat("e ", 300), "d")
	sh.put("people", "For people.").Hidden = true
	sh.put("empty", "")
	return sh
}

var (
	anySkill = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "people", "empty", "zzz"})
	anyKeep  = rapid.SampledFrom([]session.RetentionMode{session.RetainUsed, session.RetainUsed, session.RetainPinned, session.RetainOnce})
)

// For any sequence of operations, reading the log again yields the same state,
// the budget holds, dependencies are active and each skill stays for its
// retention.
func TestActiveSkillsFollowLog(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		sh := library()
		var l session.Log = &session.MemoryLog{}
		if rapid.Bool().Draw(rt, "in a file") {
			f, err := session.OpenFileLog(filepath.Join(dir, "log.jsonl"))
			if err != nil {
				rt.Fatal(err)
			}
			defer os.Remove(filepath.Join(dir, "log.jsonl"))
			defer f.Close()
			l = f
		}
		o := session.Options{
			Log:            l,
			Budget:         rapid.SampledFrom([]int{0, 100, 200, 400}).Draw(rt, "budget"),
			RetentionTurns: rapid.SampledFrom([]int{-1, 0, 1, 3}).Draw(rt, "retention"),
		}
		s, err := session.Open(t.Context(), sh, &o)
		if err != nil {
			rt.Fatal(err)
		}
		edits := 0
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				again, err := session.Open(t.Context(), sh, &o)
				if err != nil {
					rt.Fatal(err)
				}
				if got, want := again.State(), s.State(); !reflect.DeepEqual(got, want) {
					rt.Fatalf("read again the state is another (-now +again):\n%s", cmp.Diff(want.Active(), got.Active()))
				}
				checkContinued(rt, sh, o, s)
				for _, a := range s.Active() {
					if left, bounded := s.TurnsLeft(a.Skill); left < 0 || bounded == (a.Retention == session.RetainPinned) && o.RetentionTurns >= 0 {
						rt.Fatalf("%s, kept %q, has %d turns left, bounded %t", a.Skill.Name, a.Retention, left, bounded)
					}
					for _, need := range a.Needs {
						if !slices.Contains(activeNames(s), need) {
							rt.Fatalf("%s is in force and %s, which it needs, is not", a.Skill.Name, need)
						}
					}
				}
			},
			"load": func(rt *rapid.T) {
				as := session.LoadOptions{Retention: anyKeep.Draw(rt, "keep"), ByModel: rapid.Bool().Draw(rt, "by model"), Direct: rapid.Bool().Draw(rt, "direct")}
				name := anySkill.Draw(rt, "skill")
				was := s.State()
				r := loadAs(t, s, name, as)
				if r.State == session.StateFailed {
					if now := s.State(); !reflect.DeepEqual(now, was) {
						rt.Fatalf("a failed load of %s changed the state", name)
					}
					return
				}
				checkBudget(rt, s, o.Budget, name, r.State)
				for _, a := range s.Active() {
					if a.Skill.Name == name && (a.Used != s.Turn() || as.Retention == session.RetainPinned && a.Retention != session.RetainPinned) {
						rt.Fatalf("%s was loaded as %q in turn %d: kept %q, used in turn %d", name, as.Retention, s.Turn(), a.Retention, a.Used)
					}
				}
				if !slices.Contains(activeNames(s), name) {
					rt.Fatalf("%s is %s, and not in force", name, r.State)
				}
			},
			"say": func(rt *rapid.T) {
				before := s.Active()
				ask(t, s, 1)
				checkTurn(rt, before, s, o.RetentionTurns)
			},
			"use": func(rt *rapid.T) {
				if m := sh.skills[anySkill.Draw(rt, "skill")]; m != nil {
					s.RecordUse(t.Context(), m.ID)
				}
			},
			"unload": func(rt *rapid.T) {
				s.Unload(t.Context(), anySkill.Draw(rt, "skill"), "test", rapid.Bool().Draw(rt, "cascade"))
			},
			"edit": func(rt *rapid.T) {
				edits++
				name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "skill")
				sh.put(name, fmt.Sprint(sh.skills[name].Instructions, edits), sh.skills[name].Needs...)
			},
			"compact": func(rt *rapid.T) {
				c := session.Compaction{Text: "So far."}
				active := s.Active()
				for i := range active { // a skill stays together with its dependencies
					if i < 3 {
						c.Skills = append(c.Skills, active[i].Skill)
						for _, b := range active {
							if slices.Contains(active[i].Needs, b.Skill.Name) {
								c.Skills = append(c.Skills, b.Skill)
							}
						}
					}
				}
				if err := s.Append(t.Context(), session.Event{Compacted: &c}); err != nil {
					rt.Fatal(err)
				}
				for _, a := range s.Active() {
					if !slices.Contains(c.Skills, a.Skill) {
						rt.Fatalf("%s goes on after a compaction that does not have it", a.Skill.Name)
					}
				}
			},
		})
	})
}

// checkContinued checks that a session that continues from the state after any
// event, saved or not, equals s.
func checkContinued(rt *rapid.T, sh *shelf, o session.Options, s *session.Session) {
	all := s.Events(0)
	at := rapid.IntRange(0, len(all)).Draw(rt, "position")
	var base, saved session.State
	for _, e := range all[:at] {
		base.Apply(e)
	}
	before := encodeState(rt, base)
	if err := json.Unmarshal([]byte(before), &saved); err != nil {
		rt.Fatal(err)
	}
	for name, state := range map[string]session.State{"in memory": base, "saved": saved} {
		o.State = state
		again, err := session.Open(rt.Context(), sh, &o)
		if err != nil {
			rt.Fatal(err)
		}
		if got, want := encodeState(rt, again.State()), encodeState(rt, s.State()); got != want {
			rt.Fatalf("continued from event %d, state %s: got\n%s\nwant\n%s", at, name, got, want)
		}
		if got := again.Events(0); len(got) != len(all)-at || len(got) > 0 && got[0].Seq != int64(at)+1 {
			rt.Fatalf("continued from event %d of %d: %d events", at, len(all), len(got))
		}
	}
	if got := encodeState(rt, base); got != before {
		rt.Fatalf("state %d changed from\n%s\nto\n%s", at, before, got)
	}
}

func encodeState(rt *rapid.T, s session.State) string {
	data, err := json.Marshal(&s)
	if err != nil {
		rt.Fatal(err)
	}
	return string(data)
}

// checkBudget checks that only pinned skills, those just loaded and their
// dependencies exceed the budget.
func checkBudget(rt *rapid.T, s *session.Session, budget int, loaded string, state session.LoadState) {
	if budget == 0 || state == session.StateAlreadyLoaded {
		return
	}
	active := s.Active()
	total, may := 0, []string{}
	with := []string{loaded}
	for i := 0; i < len(with); i++ {
		for _, a := range active {
			if a.Skill.Name == with[i] {
				with = append(with, a.Needs...)
			}
		}
	}
	for _, a := range active {
		total += a.Tokens
		needed := slices.ContainsFunc(active, func(b session.ActiveSkill) bool { return slices.Contains(b.Needs, a.Skill.Name) })
		if !needed && a.Retention != session.RetainPinned && !slices.Contains(with, a.Skill.Name) {
			may = append(may, a.Skill.Name)
		}
	}
	if total > budget && len(may) > 0 {
		rt.Fatalf("after loading %s %d tokens are in force with a budget of %d, and %q could go", loaded, total, budget, may)
	}
}

// checkTurn checks that a new turn unloads the skills for one turn and those
// unused for the retention, except dependencies of others. All other skills
// stay.
func checkTurn(rt *rapid.T, before []session.ActiveSkill, s *session.Session, retention int) {
	if retention == 0 {
		retention = 5
	}
	stays := map[string]bool{}
	for _, a := range before {
		unused := s.Turn() - 1 - a.Used
		stays[a.Skill.Name] = a.Retention == session.RetainPinned || a.Retention == session.RetainUsed && (retention < 0 || unused < retention) ||
			a.Retention == session.RetainOnce && a.Direct && a.Turn == s.Turn()-1 // loaded by the user for the next turn
	}
	for range before { // as often as the longest chain of dependencies
		for _, a := range before {
			for _, need := range a.Needs {
				stays[need] = stays[need] || stays[a.Skill.Name]
			}
		}
	}
	var want []string
	for _, a := range before {
		if stays[a.Skill.Name] {
			want = append(want, a.Skill.Name)
		}
	}
	if got := activeNames(s); !slices.Equal(got, want) {
		rt.Fatalf("after the message in force %q, want %q", got, want)
	}
}

// For any history, Restore follows the rules of the table, which this test
// implements a second time, turn by turn.
func TestW12RestoreFollowsTable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		retention := rapid.IntRange(1, 6).Draw(rt, "retention")
		past := rapid.SliceOfN(rapid.Custom(anyPast), 0, 40).Draw(rt, "history")
		want := map[string]int{} // turns left after the last answer
		waiting := false
		for _, p := range past {
			switch p.Role {
			case llm.User:
				waiting = true
			case llm.Assistant:
				if waiting {
					for name := range want {
						want[name]--
					}
				}
				waiting = false
				for _, name := range p.LoadedSkills {
					want[name] = retention
				}
			}
		}
		var inForce []string
		for name, left := range want {
			if left > 0 && slices.Contains([]string{"x", "y", "z"}, name) {
				inForce = append(inForce, fmt.Sprint(name, " ", left))
			}
		}
		sh := &shelf{}
		for _, name := range []string{"x", "y", "z"} {
			sh.put(name, "Do "+name)
		}
		s := restored(t, sh, past, &session.Options{RetentionTurns: retention}, false)
		got := strings.FieldsFunc(lefts(s), func(r rune) bool { return r == ',' })
		for i := range got {
			got[i] = strings.TrimSpace(got[i])
		}
		slices.Sort(inForce)
		slices.Sort(got)
		if !slices.Equal(got, inForce) {
			rt.Fatalf("in force %q, want %q", got, inForce)
		}
	})
}

func anyPast(rt *rapid.T) session.PastMessage {
	p := session.PastMessage{Role: rapid.SampledFrom([]llm.Role{llm.User, llm.User, llm.Assistant, llm.Assistant, "system", "tool"}).Draw(rt, "role"), Text: "text"}
	if p.Role == llm.Assistant {
		p.LoadedSkills = rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z", "unknown"}), 0, 2).Draw(rt, "loaded")
	}
	return p
}

// A program that records the loaded skills with each answer and restores the
// session for each message has the same active skills as one with a log.
func TestRestoreFromNotesEqualsSession(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sh := library()
		kept, err := session.Open(t.Context(), sh, nil)
		if err != nil {
			rt.Fatal(err)
		}
		var past []session.PastMessage
		for range rapid.IntRange(1, 15).Draw(rt, "turns") {
			ask(t, kept, 1)
			anew := restored(t, sh, past, nil, false)
			if got, want := sorted(activeNames(anew)), sorted(activeNames(kept)); !slices.Equal(got, want) {
				rt.Fatalf("in force %q, want %q", got, want)
			}
			ask(t, anew, 1)
			for range rapid.IntRange(0, 3).Draw(rt, "loads") {
				name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "zzz"}).Draw(rt, "skill")
				for _, s := range []*session.Session{kept, anew} {
					load(t, s, name)
				}
			}
			if m := sh.skills[anySkill.Draw(rt, "used")]; m != nil {
				for _, s := range []*session.Session{kept, anew} {
					if err := s.RecordUse(t.Context(), m.ID); err != nil {
						rt.Fatal(err)
					}
				}
			}
			past = append(past, user("x"), session.PastMessage{Role: llm.Assistant, Text: "so", LoadedSkills: anew.LoadedSkills()})
			if got, want := sorted(anew.LoadedSkills()), sorted(kept.LoadedSkills()); !slices.Equal(got, want) {
				rt.Fatalf("noted %q, want %q", got, want)
			}
		}
	})
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
