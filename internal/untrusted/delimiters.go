package untrusted

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// promptElements lists the elements that clients and models use to structure
// prompts. Untrusted text for a model must not contain their start tags.
var promptElements = []string{
	"app-context", "application_skill_context", "assistant", "available_skills", "bash-input", "bash-stderr", "bash-stdout", "command-args", "command-message",
	"command-name", "developer", "end_of_turn", "environment_context", "function_calls", "function_results", "human", "instructions", "invoke", "local-command-stderr",
	"local-command-stdout", "s", "skill", "skills", "skills_instructions", "start_of_turn", "system", "system-reminder", "system_prompt", "system_reminder", "think", "thinking",
	"tool_call", "tool_calls", "tool_response", "tool_responses", "tool_result", "tool_results", "tool_use", "user_instructions",
}

// promptMarkers lists the words in square brackets that models use to structure
// prompts.
var promptMarkers = []string{"INST", "AVAILABLE_TOOLS", "SYSTEM_PROMPT", "TOOL_CALLS", "TOOL_CONTENT", "TOOL_RESULTS"}

// neutralize changes the delimiters in s that could end a part of a prompt or
// begin another: end tags, tags of promptElements, special tokens such as
// <|im_start|>, [INST] and others of promptMarkers, and a paragraph that begins
// with "Human:" or "Assistant:". In each delimiter, it replaces only one
// character, with one that looks like it.
func neutralize(s string) string {
	i := strings.IndexAny(s, "<[:")
	if i < 0 {
		return s
	}
	var b strings.Builder
	last := 0
	for ; i < len(s); i++ {
		with := ""
		switch {
		case s[i] == '<' && isDelimiter(s[i+1:]):
			with = "‹"
		case s[i] == '[' && isInstruction(s[i+1:]):
			with = "⟦"
		case s[i] == ':' && endsInTurn(s[:i]):
			with = "："
		default:
			continue
		}
		b.WriteString(s[last:i] + with)
		last = i + 1
	}
	if last == 0 {
		return s
	}
	return b.String() + s[last:]
}

// endsInTurn reports whether s ends in a blank line and the name of a speaker.
func endsInTurn(s string) bool {
	before, ok := strings.CutSuffix(s, "Human")
	if !ok {
		before, ok = strings.CutSuffix(s, "Assistant")
	}
	if !ok {
		return false
	}
	space := before[len(strings.TrimRightFunc(before, unicode.IsSpace)):]
	return strings.Count(space, "\n") > 1
}

// isDelimiter reports whether the text after a "<" completes a delimiter.
func isDelimiter(rest string) bool {
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	if rest == "" {
		return false
	}
	switch rest[0] {
	case '|':
		return true
	case '/':
		rest = strings.TrimLeftFunc(rest[1:], unicode.IsSpace)
		r, _ := utf8.DecodeRuneInString(rest)
		return rest != "" && isNameCharacter(r)
	case '<':
		return strings.HasPrefix(strings.ToUpper(rest[:min(len(rest), 5)]), "<SYS>") || strings.HasPrefix(strings.ToUpper(rest[:min(len(rest), 6)]), "</SYS>")
	case '!':
		return strings.HasPrefix(rest, "!--") || strings.HasPrefix(rest, "![CDATA[")
	}
	if strings.HasPrefix(rest, "｜") {
		return true
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return !isNameCharacter(r) })
	switch end {
	case 0:
		return false
	case -1:
		end = len(rest)
	}
	name := strings.ToLower(rest[:end])
	if (name == "function" || name == "parameter") && strings.HasPrefix(rest[end:], "=") {
		return true
	}
	_, local, _ := strings.Cut(name, ":")
	return slices.Contains(promptElements, name) || strings.HasPrefix(name, "antml:") || local != "" && slices.Contains(promptElements, local)
}

// isNameCharacter reports whether r can be part of the name of an element. Letters of all scripts
// can, but spaces and most punctuation cannot.
func isNameCharacter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == ':' || r == '.'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N)
}

// isInstruction reports whether the text after a "[" completes a delimiter.
func isInstruction(rest string) bool {
	word, _, ok := strings.Cut(rest[:min(len(rest), 20)], "]")
	return ok && slices.Contains(promptMarkers, strings.ToUpper(strings.TrimPrefix(word, "/")))
}
