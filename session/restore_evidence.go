package session

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// pastLoad is a skill that was loaded in a history.
type pastLoad struct {
	name string
	ago  int // turns after it
}

// lastLoads are the skills that were loaded in the last turns of a history, the last
// first, each once. Less than no turns are all.
func lastLoads(history []Past, turns int, text bool) []pastLoad {
	text = text && !hasEvidence(history)
	var out []pastLoad
	seen := map[string]bool{}
	for ago, turn := range lastTurns(history, turns) {
		loaded := loadsOf(turn)
		if text {
			loaded = writtenLoads(turn)
		}
		for _, name := range slices.Backward(loaded) {
			if len(seen) == maxTried {
				return out
			}
			if name != "" && len(name) <= maxName && !seen[name] {
				seen[name] = true
				out = append(out, pastLoad{name, ago})
			}
		}
	}
	return out
}

// lastTurns are the last turns of a history, the last first. Each begins with the
// message of a person that was answered.
func lastTurns(history []Past, most int) [][]Past {
	var out [][]Past
	end, answered := len(history), false
	for i := len(history) - 1; i >= 0 && len(out) != most; i-- {
		switch p := &history[i]; {
		case p.answers():
			answered = true
		case p.Role == RoleUser && answered:
			out = append(out, history[i:end])
			end, answered = i, false
		}
	}
	if answered {
		out = append(out, history[:end])
	}
	return out
}

// answers reports that it is a message of the model that is not empty.
func (p *Past) answers() bool {
	return p.Role == RoleAssistant && (p.Text != "" || len(p.Calls) > 0 || len(p.LoadedSkills) > 0)
}

// loadsOf are the names of the skills that were loaded in a turn, as they were noted,
// else as they were called. What was called and failed each time was not loaded, even
// where it was noted.
func loadsOf(turn []Past) []string {
	var noted, called []string
	hasNote, worked := false, map[string]bool{} // by the name that was called
	for _, p := range turn {
		if p.Role != RoleAssistant {
			continue
		}
		hasNote = hasNote || p.LoadedSkills != nil
		noted = append(noted, newest(p.LoadedSkills)...)
		for _, c := range newest(p.Calls) {
			name := c.skill()
			if name == "" {
				continue
			}
			if !c.Error {
				called = append(called, name)
			}
			worked[name] = worked[name] || !c.Error
		}
	}
	if !hasNote {
		return called
	}
	return slices.DeleteFunc(noted, func(name string) bool {
		ok, known := worked[name]
		return known && !ok
	})
}

// newest is the end of a list, as much of it as can count.
func newest[T any](list []T) []T { return list[max(0, len(list)-maxTried):] }

// hasEvidence reports that a history says by notes or calls which skills were loaded.
func hasEvidence(history []Past) bool {
	for i := range history {
		p := &history[i]
		if p.Role == RoleAssistant && (p.LoadedSkills != nil || slices.ContainsFunc(p.Calls, func(c PastCall) bool { return c.skill() != "" })) {
			return true
		}
	}
	return false
}

// skill is the name of the skill that the call is to load, "" where it is to do
// something else.
func (c *PastCall) skill() string {
	switch c.Name {
	case "load_skill", "activate_skill", "read_skill":
	default:
		return ""
	}
	if len(c.Arguments) > maxObject {
		return ""
	}
	var in struct {
		SkillName string `json:"skill_name"`
		Name      string `json:"name"`
		Skill     string `json:"skill"`
		FilePath  string `json:"file_path"` // read_skill reads a file then
	}
	if json.Unmarshal([]byte(c.Arguments), &in) != nil || in.FilePath != "" {
		return ""
	}
	for _, name := range []string{in.SkillName, in.Name, in.Skill} {
		if name != "" {
			return name
		}
	}
	return ""
}

// loadSentence is what an earlier system wrote into its answers.
var loadSentence = pattern.New(`^Skill '([^']+)' (?:has been loaded|is already active(?: in this conversation turn)?)(?:[.…].*)?$`)

// writtenLoads are the names of the skills of which the model wrote in a turn that
// they were loaded.
func writtenLoads(turn []Past) []string {
	var out []string
	for _, p := range turn {
		if p.Role == RoleAssistant && len(p.Text) <= maxText && strings.Contains(p.Text, "Skill '") {
			out = append(out, sentences(p.Text)...)
		}
	}
	return out
}

// sentences are the names in the lines of a text that say that a skill was loaded,
// and are neither in code, nor in a quotation.
func sentences(text string) []string {
	var out []string
	code := codeSpans(text)
	at, open, block := 0, 0, false // open counts quotation marks that are not closed
	for line := range strings.SplitAfterSeq(text, "\n") {
		plain := strings.TrimRight(line, " \t\r\n")
		block = plain != "" && (block || strings.HasPrefix(strings.TrimLeft(plain, " \t"), ">"))
		if m := loadSentence().FindStringSubmatch(plain); m != nil && open == 0 && !block && !code(at) {
			out = append(out, m[1])
		}
		open = openQuotes(open, line)
		at += len(line)
	}
	return out
}

// openQuotes is how many quotation marks are open after a line: bit 0 is a straight
// one, the rest counts the others.
func openQuotes(open int, line string) int {
	straight, curly := open&1, open>>1
	for _, r := range line {
		switch r {
		case '"':
			straight ^= 1
		case '“', '«', '「':
			curly++
		case '”', '»', '」':
			curly = max(0, curly-1)
		}
	}
	return curly<<1 | straight
}
