package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/session"
)

// FuzzRestore checks that any history restores only known skills, each once and
// within the limit, and always with the same result.
func FuzzRestore(f *testing.F) {
	f.Add(`[{"role":"user","text":"x"},{"role":"assistant","text":"so","loaded_skills":["a",null,"report"]}]`)
	f.Add(`[{"role":"user"},{"role":"assistant","calls":[{"name":"load_skill","arguments":"{\"skill_name\":\"a\"}"},{"name":"read_skill","arguments":"{}","error":true}]}]`)
	f.Add(`[{"role":"user"},{"role":"system"},{"role":"assistant","text":"> x\n\nSkill 'a' has been loaded.\n"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var past []session.PastMessage
		if json.Unmarshal([]byte(text), &past) != nil {
			return // not a history
		}
		sh := pasts()
		for _, tt := range []struct {
			o    *session.Options
			text bool
		}{{nil, false}, {nil, true}, {&session.Options{RetentionTurns: -1, Budget: 10}, true}} {
			all, err := session.PastLoads(t.Context(), sh, past, tt.o, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[session.ID]bool{}
			for _, e := range all {
				m := sh.skills[e.Loaded.Skill.Name]
				if m == nil || m.Hidden || seen[m.ID] || e.Loaded.UnusedTurns < 0 {
					t.Fatalf("restored %+v", e.Loaded)
				}
				seen[m.ID] = true
			}
			again, _ := session.PastLoads(t.Context(), sh, past, tt.o, tt.text)
			if len(again) != len(all) {
				t.Fatalf("%d skills, and then %d", len(all), len(again))
			}
		}
	})
}

// A load sentence in a quotation or in code loads nothing.
func TestAQuotedSentenceLoadsNothing(t *testing.T) {
	const said = "Skill 'a' has been loaded."
	line := rapid.StringOf(rapid.SampledFrom([]rune("abc .'!->数")))
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 5).Draw(rt, "lines")
		lines = append(lines, said)
		lines = append(lines, rapid.SliceOfN(line, 0, 5).Draw(rt, "more")...)
		text := strings.Join(lines, "\n")
		for how, quoted := range map[string]string{
			"block":    "> " + strings.Join(lines, "\n> "),
			"fence":    "```\n" + text + "\n```",
			"straight": "\"" + text + "\"",
			"printed":  "It says: “" + text + "”",
			"indented": "    " + strings.Join(lines, "\n    "),
			"list":     "- " + strings.Join(lines, "\n- "),
		} {
			all, err := session.PastLoads(t.Context(), pasts(), history(user("x"), answer(quoted)), nil, true)
			if err != nil || len(all) != 0 {
				rt.Fatalf("%s: %d skills, %v:\n%s", how, len(all), err, quoted)
			}
		}
	})
}
