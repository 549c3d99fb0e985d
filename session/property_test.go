package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/session"
)

// library is a shelf with what there is to go wrong: skills that need others, long
// ones, one for people, one without instructions.
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
	anyKeep  = rapid.SampledFrom([]session.Keep{session.KeepUsed, session.KeepUsed, session.KeepPinned, session.KeepOnce})
)

// Whatever happens in a conversation, its log says the same when it is read again, the
// budget holds, what is needed is there, and each skill stays for its time.
func TestWhatIsInForceIsWhatTheLogSays(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		sh := library()
		var l session.Log = &session.Memory{}
		if rapid.Bool().Draw(rt, "in a file") {
			f, err := session.OpenFile(filepath.Join(dir, "log.jsonl"))
			if err != nil {
				rt.Fatal(err)
			}
			defer os.Remove(filepath.Join(dir, "log.jsonl"))
			defer f.Close()
			l = f
		}
		o := session.Options{
			Log:       l,
			Budget:    rapid.SampledFrom([]int{0, 100, 200, 400}).Draw(rt, "budget"),
			Retention: rapid.SampledFrom([]int{-1, 0, 1, 3}).Draw(rt, "retention"),
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
				for _, a := range s.Active() {
					if left, bounded := s.Left(a.Skill); left < 0 || bounded == (a.Keep == session.KeepPinned) && o.Retention >= 0 {
						rt.Fatalf("%s, kept %q, has %d turns left, bounded %t", a.Skill.Name, a.Keep, left, bounded)
					}
					for _, need := range a.Needs {
						if !slices.Contains(activeNames(s), need) {
							rt.Fatalf("%s is in force and %s, which it needs, is not", a.Skill.Name, need)
						}
					}
				}
			},
			"load": func(rt *rapid.T) {
				as := session.LoadOptions{Keep: anyKeep.Draw(rt, "keep"), ByModel: rapid.Bool().Draw(rt, "by model"), Direct: rapid.Bool().Draw(rt, "direct")}
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
					if a.Skill.Name == name && (a.Used != s.Turn() || as.Keep == session.KeepPinned && a.Keep != session.KeepPinned) {
						rt.Fatalf("%s was loaded as %q in turn %d: kept %q, used in turn %d", name, as.Keep, s.Turn(), a.Keep, a.Used)
					}
				}
				if !slices.Contains(activeNames(s), name) {
					rt.Fatalf("%s is %s, and not in force", name, r.State)
				}
			},
			"say": func(rt *rapid.T) {
				before := s.Active()
				ask(t, s, 1)
				checkTurn(rt, before, s, o.Retention)
			},
			"use": func(rt *rapid.T) {
				if m := sh.skills[anySkill.Draw(rt, "skill")]; m != nil {
					s.Use(t.Context(), m.ID)
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
				c := session.Compacted{Text: "So far."}
				active := s.Active()
				for i := range active { // a skill goes on with what it needs
					if i < 3 {
						c.Skills = append(c.Skills, active[i].Skill)
						for _, b := range active {
							if slices.Contains(active[i].Needs, b.Skill.Name) {
								c.Skills = append(c.Skills, b.Skill)
							}
						}
					}
				}
				if err := s.Append(t.Context(), session.Event{Type: session.TypeCompacted, Compacted: &c}); err != nil {
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

// checkBudget: beyond the budget is only what is pinned, just loaded, or needed.
func checkBudget(rt *rapid.T, s *session.Session, budget int, loaded string, state session.LoadState) {
	if budget == 0 || state == session.StateAlready {
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
		needed := slices.ContainsFunc(active, func(b session.Active) bool { return slices.Contains(b.Needs, a.Skill.Name) })
		if !needed && a.Keep != session.KeepPinned && !slices.Contains(with, a.Skill.Name) {
			may = append(may, a.Skill.Name)
		}
	}
	if total > budget && len(may) > 0 {
		rt.Fatalf("after loading %s %d tokens are in force with a budget of %d, and %q could go", loaded, total, budget, may)
	}
}

// checkTurn: with a new turn goes what was for one, and what was not used for as long
// as the retention, but for what others need; all else stays.
func checkTurn(rt *rapid.T, before []session.Active, s *session.Session, retention int) {
	if retention == 0 {
		retention = session.DefaultRetention
	}
	stays := map[string]bool{}
	for _, a := range before {
		unused := s.Turn() - 1 - a.Used
		stays[a.Skill.Name] = a.Keep == session.KeepPinned || a.Keep == session.KeepUsed && (retention < 0 || unused < retention) ||
			a.Keep == session.KeepOnce && a.Direct && a.Turn == s.Turn()-1 // loaded by hand for the turn to come
	}
	for range before { // as often as the longest chain of needs
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

// Of any history Restore makes what the rules of the table say, which are written down
// here a second time, turn by turn from the first.
func TestW12RestoreIsTheTable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		retention := rapid.IntRange(1, 6).Draw(rt, "retention")
		past := rapid.SliceOfN(rapid.Custom(anyPast), 0, 40).Draw(rt, "history")
		want := map[string]int{} // turns left after the last answer
		waiting := false
		for _, p := range past {
			switch p.Role {
			case session.RoleUser:
				waiting = true
			case session.RoleAssistant:
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
		s := restored(t, sh, past, &session.RestoreOptions{Retention: retention})
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

func anyPast(rt *rapid.T) session.Past {
	p := session.Past{Role: rapid.SampledFrom([]session.Role{session.RoleUser, session.RoleUser, session.RoleAssistant, session.RoleAssistant, "system", "tool"}).Draw(rt, "role"), Text: "text"}
	if p.Role == session.RoleAssistant {
		p.LoadedSkills = rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z", "unknown"}), 0, 2).Draw(rt, "loaded")
	}
	return p
}

// A program that notes what a session says with each answer, and makes the session
// anew from its own history for each message, has the same skills in force as one that
// keeps its log.
func TestRestoreOfWhatWasNotedIsTheSession(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sh := library()
		kept, err := session.Open(t.Context(), sh, nil)
		if err != nil {
			rt.Fatal(err)
		}
		var past []session.Past
		for range rapid.IntRange(1, 15).Draw(rt, "turns") {
			ask(t, kept, 1)
			anew := restored(t, sh, past, nil)
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
					if err := s.Use(t.Context(), m.ID); err != nil {
						rt.Fatal(err)
					}
				}
			}
			past = append(past, user("x"), session.Past{Role: session.RoleAssistant, Text: "so", LoadedSkills: anew.LoadedSkills()})
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
