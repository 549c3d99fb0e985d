package migrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// parseExport reads the conversations in a JSON file that contains one or more
// API responses of a system.
func (r *reader) parseExport(p string, data []byte) {
	var v any
	switch {
	case !bytes.Contains(data, []byte(`"role"`)) && !bytes.Contains(data, []byte(`"title"`)):
		return
	case hasManyValues(data):
		r.plan.addLost(File, path.Base(p), p, "too many JSON values (limit %d)", maxValues)
		return
	case json.Unmarshal(data, &v) != nil:
		if bytes.Contains(data, []byte(`"role"`)) {
			r.plan.addLost(File, path.Base(p), p, "invalid JSON; no conversations were read")
		}
		return
	}
	if n := r.findConversations(p, "", v, 0); n > 0 {
		r.plan.addLost(File, path.Base(p), p, "not read: %s nested over %d levels", pluralize(n, "value"), maxNesting)
	}
}

// maxNesting is the maximum nesting of responses, and of lists in them.
const maxNesting = 8

// maxValues is the maximum number of JSON values in a file with responses. Each of
// them takes two bytes in the file, but hundreds in memory.
const maxValues = 500_000

// hasManyValues reports whether a JSON text has more than maxValues values.
func hasManyValues(data []byte) bool {
	n := 0
	text, escaped := false, false
	for _, c := range data {
		switch {
		case escaped:
			escaped = false
		case text:
			escaped, text = c == '\\', c != '"'
		case c == '"':
			text = true
		case c == ',' || c == '[' || c == '{':
			n++
		}
	}
	return n > maxValues
}

// findConversations adds the conversations in a decoded response. It returns the
// number of lists and maps that are nested too deeply.
func (r *reader) findConversations(p, title string, v any, depth int) (tooDeep int) {
	switch v := v.(type) {
	case []any:
		if depth == maxNesting {
			return 1
		}
		if isMessage(v) {
			r.addMessages(p, title, v)
			return 0
		}
		for _, one := range v {
			tooDeep += r.findConversations(p, title, one, depth+1)
		}
	case map[string]any:
		if depth == maxNesting {
			return 1
		}
		for _, key := range []string{"title", "task_title"} {
			if s, ok := v[key].(string); ok && s != "" {
				title = clip(untrusted.New(s).ForModel())
				r.addTitle(v["id"], title)
			}
		}
		for _, key := range []string{"subtasks", "items", "messages", "data"} {
			tooDeep += r.findConversations(p, title, v[key], depth+1)
		}
	}
	return tooDeep
}

// isMessage reports whether a list contains messages.
func isMessage(list []any) bool {
	if len(list) == 0 {
		return false
	}
	m, _ := list[0].(map[string]any)
	return roleOf(m) != ""
}

// addTitle records the title of the conversation with the given ID.
func (r *reader) addTitle(id any, title string) {
	if id != nil && len(r.titles) < maxConversations {
		r.titles[fmt.Sprint(id)] = title
	}
}

// addMessages adds the messages of a list to their conversations. A
// conversation whose messages have IDs may be split into pages in several
// files.
func (r *reader) addMessages(p, title string, list []any) {
	for _, one := range list {
		m, _ := one.(map[string]any)
		id := ""
		for _, key := range []string{"session_id", "task_id"} {
			if m[key] != nil {
				id = fmt.Sprint(m[key])
			}
		}
		key := "id " + id
		if id == "" || m["id"] == nil {
			key = "file " + p + " " + id
		}
		c := r.exports[key]
		if c == nil && len(r.exports) == maxConversations {
			r.plan.addLost(File, path.Base(p), p, "too many conversations (limit %d)", maxConversations)
			return
		}
		if c == nil {
			c = &exported{seen: map[string]bool{}, PastConversation: PastConversation{Title: title, From: p, source: id}}
			r.exports[key] = c
			r.order = append(r.order, key)
		}
		if n := fmt.Sprint(m["id"]); m["id"] == nil || !c.seen[n] {
			if len(c.seen) < maxMessages {
				c.seen[n] = true
			}
			c.addTurn(m)
		}
	}
}

// addExports adds the conversations of all files to the plan.
func (r *reader) addExports() {
	for _, key := range r.order {
		c := r.exports[key]
		c.Title = cmp.Or(c.Title, r.titles[c.source])
		r.addConversation(c.conversation())
	}
}

// exported is a conversation with counts of the items that cannot be migrated.
type exported struct {
	PastConversation
	seen map[string]bool // IDs of the messages

	calls, others, parts, references, further, truncated int

	// The following fields are for conversations of Loadout.
	images    map[string]llm.Image // by the SHA-256 hash of the content, without names; those over the limits have no Data
	imageName string               // name of the first image
	kept      int                  // images with Data
	lost      int                  // images over the limits
	branched  int                  // messages on other branches that are not migrated
	lines     int                  // lines over the limit
}

// conversation returns the exported conversation. It sorts the messages by time
// if each of them has one.
func (e *exported) conversation() *PastConversation {
	if !e.isBranched() && !slices.ContainsFunc(e.Messages, func(m PastMessage) bool { return m.Time.IsZero() }) {
		slices.SortStableFunc(e.Messages, func(a, b PastMessage) int { return a.Time.Compare(b.Time) })
	}
	for _, lost := range []struct {
		n          int
		noun, more string
	}{{e.calls, "tool call", ""}, {e.others, "message", " of tools or of the system"}, {e.parts, "attachment", ""}, {e.references, "reference", " to documents"}, {e.further, "message", " over the limit"},
		{e.lost, "image", " over the limits"}, {e.branched, "message", " on other branches"}, {e.lines, "event", " over the limit"}} {
		if lost.n > 0 {
			e.Lost = append(e.Lost, pluralize(lost.n, lost.noun)+lost.more)
		}
	}
	if e.truncated > 0 {
		e.Lost = append(e.Lost, fmt.Sprintf("the end of %s over %d bytes", pluralize(e.truncated, "message"), maxText))
	}
	return &e.PastConversation
}

// addTurn adds a message in the format of the export. A message may contain a
// chain of further messages.
func (e *exported) addTurn(m map[string]any) {
	result, _ := m["result"].(map[string]any)
	if chain, _ := result["messages_chain"].([]any); len(chain) > 0 && roleOf(m) == llm.Assistant {
		first, further := len(e.Messages), e.further
		for _, one := range chain {
			if part, ok := one.(map[string]any); ok {
				e.addOneMessage(part, m["created_at"])
			}
		}
		said := slices.ContainsFunc(e.Messages[first:], func(m PastMessage) bool { return m.Role == llm.Assistant && m.Text != "" })
		if !said && e.further == further {
			e.addOneMessage(map[string]any{"role": m["role"], "content": result["value"]}, m["created_at"])
		}
		for i := len(e.Messages) - 1; i >= first; i-- { // the last message of the turn has the skills of the turn
			if e.Messages[i].Role == llm.Assistant {
				e.Messages[i].LoadedSkills = skillNames(result["loaded_skills"])
				break
			}
		}
		return
	}
	e.addOneMessage(m, m["created_at"])
}

// addOneMessage adds a single message from the user or from a model. It only counts
// other messages.
func (e *exported) addOneMessage(m map[string]any, at any) {
	role := roleOf(m)
	if role != llm.User && role != llm.Assistant {
		e.others++
		return
	}
	if e.full {
		e.further++
		return
	}
	result, _ := m["result"].(map[string]any)
	past := PastMessage{PastMessage: session.PastMessage{Role: role}, Time: timeOf(at)}
	for _, content := range []any{m["content"], m["prompt"], result["value"]} {
		if past.Text == "" && (role == llm.Assistant || content != nil) {
			past.Text = e.clean(withoutThinking(role, e.textOf(content)))
		}
	}
	if role == llm.Assistant {
		past.Calls, past.calls = e.callsOf(m)
		for _, from := range []any{result["loaded_skills"], m["loaded_skills"]} {
			if s := skillNames(from); s != nil {
				past.LoadedSkills = s
			}
		}
	}
	for _, key := range []string{"attachments", "images"} {
		list, _ := m[key].([]any)
		e.parts += len(list)
	}
	references, _ := m["knowledge_references"].([]any)
	e.references += len(references)
	if (past.Text != "" || past.LoadedSkills != nil || len(past.Calls) > 0) && !e.add(past) {
		e.further++
	}
}

// clean is like cleanText, and counts the texts that it truncates.
func (e *exported) clean(s string) string {
	text, truncated := cleanText(s)
	if truncated {
		e.truncated++
	}
	return text
}

// roleOf returns the role of a message, or "" if m is not a message.
func roleOf(m map[string]any) llm.Role {
	s, _ := m["role"].(string)
	switch s = strings.ToLower(s); s {
	case "human":
		return llm.User
	case "ai":
		return llm.Assistant
	}
	return llm.Role(s)
}

// textOf returns the text of content: a string, or a list of parts.
func (e *exported) textOf(content any) string {
	switch c := content.(type) {
	case string:
		return c
	case []any:
		var b strings.Builder
		for _, one := range c {
			part, _ := one.(map[string]any)
			text, ok := part["text"].(string)
			if !ok {
				e.parts++
				continue
			}
			b.WriteString(text + "\n")
		}
		return b.String()
	}
	return ""
}

// callsOf returns the tool calls of a message: those that load a skill, by which
// the skills are restored if the export does not list them, and all for the ID. It
// returns an empty call if none loads a skill, because a message with calls is an
// answer. It only counts calls over the limit.
func (e *exported) callsOf(m map[string]any) (loads []session.PastCall, all allCalls) {
	calls, _ := m["tool_calls"].([]any)
	steps, _ := m["agent_steps"].([]any)
	for _, one := range steps {
		step, _ := one.(map[string]any)
		more, _ := step["tool_calls"].([]any)
		calls = append(calls, more...)
	}
	e.calls += len(calls)
	var list []session.PastCall
	for _, one := range calls[:min(len(calls), maxCalls)] {
		call, _ := one.(map[string]any)
		if f, ok := call["function"].(map[string]any); ok {
			call = f
		}
		name, _ := call["name"].(string)
		args, _ := call["arguments"].(string)
		if object, ok := call["args"].(map[string]any); ok {
			text, _ := json.Marshal(object)
			args = string(text)
		}
		if name == "" {
			all.size += unnamedCallBytes
		}
		result, _ := call["result"].(map[string]any)
		ok, known := result["success"].(bool)
		past := session.PastCall{Name: name, Arguments: args, Error: known && !ok}
		list = append(list, past)
		if skill := toolname.LoadedSkill(name, args); skill != "" && len(skill) <= maxName {
			past.Arguments = loadArguments(skill)
			loads = append(loads, past)
		}
	}
	if list == nil {
		return nil, allCalls{}
	}
	if loads == nil {
		loads = []session.PastCall{{}}
	}
	all.text, _ = json.Marshal(list)
	all.size += len(all.text)
	return loads, all
}

// withoutThinking returns the text of a message without the thinking that some
// models write before their answer.
func withoutThinking(role llm.Role, text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "<think>")
	if _, answer, ended := strings.Cut(rest, "</think>"); ok && ended && role == llm.Assistant {
		return answer
	}
	return text
}

// skillNames returns the names in a list, or nil if v is not a list. It omits
// names over maxName bytes.
func skillNames(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	out := []string{}
	for _, one := range list[:min(len(list), maxCalls)] {
		if s, ok := one.(string); ok {
			out = appendName(out, s)
		}
	}
	return out
}

// timeOf parses a time, with or without a zone. It returns the zero time if v is
// not a time that [validTime] accepts.
func timeOf(v any) time.Time {
	s, _ := v.(string)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return validTime(t)
		}
	}
	return time.Time{}
}

// validTime returns t in UTC, or the zero time if t is before 1970 or after 9999,
// which JSON cannot encode. It does not depend on the current time, because the
// order of the messages, and so the ID of the conversation, depends on t.
func validTime(t time.Time) time.Time {
	if t = t.UTC(); t.Unix() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
