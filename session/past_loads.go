package session

import (
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// pastLoad is a skill that was loaded in another program's conversation.
type pastLoad struct {
	name string
	ago  int // number of turns since the load
}

// lastLoads returns the skills loaded in the last turns of a history, latest
// first and without duplicates. A negative number means all turns. If text is
// set and the history has no other evidence, lastLoads parses the model's text.
func lastLoads(history []PastMessage, turns int, text bool) []pastLoad {
	text = text && !hasEvidence(history)
	var out []pastLoad
	seen := map[string]bool{}
	for ago, turn := range lastTurns(history, turns) {
		loaded := loadedInTurn(turn)
		if text {
			loaded = writtenLoads(turn)
		}
		for _, name := range slices.Backward(loaded) {
			if len(seen) == maxLookups {
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

// lastTurns returns the last turns of a history, latest first. Each starts with
// an answered user message.
func lastTurns(history []PastMessage, limit int) [][]PastMessage {
	var out [][]PastMessage
	end, answered := len(history), false
	for i := len(history) - 1; i >= 0 && len(out) != limit; i-- {
		switch p := &history[i]; {
		case p.isAnswer():
			answered = true
		case p.Role == llm.User && answered:
			out = append(out, history[i:end])
			end, answered = i, false
		}
	}
	if answered {
		out = append(out, history[:end])
	}
	return out
}

// isAnswer reports whether the message is a nonempty response of the model.
func (p *PastMessage) isAnswer() bool {
	return p.Role == llm.Assistant && (p.Text != "" || len(p.Calls) > 0 || len(p.LoadedSkills) > 0)
}

// loadedInTurn returns the names of the skills loaded in a turn: those recorded
// with the model's messages, or those in the load calls if nothing was
// recorded. It omits skills whose load calls all failed, even if they were
// recorded.
func loadedInTurn(turn []PastMessage) []string {
	var noted, called []string
	hasNote, worked := false, map[string]bool{} // worked is keyed by the name in the call
	for _, p := range turn {
		if p.Role != llm.Assistant {
			continue
		}
		hasNote = hasNote || p.LoadedSkills != nil
		noted = append(noted, lastEntries(p.LoadedSkills)...)
		for _, c := range lastEntries(p.Calls) {
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

// lastEntries returns up to maxLookups entries from the end of list.
func lastEntries[T any](list []T) []T { return list[max(0, len(list)-maxLookups):] }

// hasEvidence reports whether a history contains recorded skills or calls that
// load skills.
func hasEvidence(history []PastMessage) bool {
	for i := range history {
		p := &history[i]
		if p.Role == llm.Assistant && (p.LoadedSkills != nil || slices.ContainsFunc(p.Calls, func(c PastCall) bool { return c.skill() != "" })) {
			return true
		}
	}
	return false
}

// skill returns the name of the skill that the call loads, or "" for other
// calls.
func (c *PastCall) skill() string { return toolname.LoadedSkill(c.Name, c.Arguments) }

// loadSentence matches a line that an earlier system wrote to the model's
// messages.
var loadSentence = lazyregexp.New(`^Skill '([^']+)' (?:has been loaded|is already active(?: in this conversation turn)?)(?:[.…].*)?$`)

// writtenLoads returns the names of the skills that the model's text reports as
// loaded.
func writtenLoads(turn []PastMessage) []string {
	var out []string
	for _, p := range turn {
		if p.Role == llm.Assistant && len(p.Text) <= maxText && strings.Contains(p.Text, "Skill '") {
			out = append(out, reportedLoads(p.Text)...)
		}
	}
	return out
}

// reportedLoads returns the names of the skills in lines that report that a
// skill was loaded. It ignores lines in code and in quotations.
func reportedLoads(text string) []string {
	var out []string
	code := skilltext.CodeSpans(text)
	at, open, block := 0, 0, false // open is the state of openQuotes; block is set in a Markdown quotation
	for line := range strings.SplitAfterSeq(text, "\n") {
		plain := strings.TrimRight(line, " \t\r\n")
		block = plain != "" && (block || strings.HasPrefix(strings.TrimLeft(plain, " \t"), ">"))
		if m := loadSentence.FindStringSubmatch(plain); m != nil && open == 0 && !block && !code(at) {
			out = append(out, m[1])
		}
		open = openQuotes(open, line)
		at += len(line)
	}
	return out
}

// openQuotes returns the state of quotation marks after a line. open is the
// state before the line: bit 0 is set inside a straight quotation, and the
// higher bits count open quotations of other kinds.
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
