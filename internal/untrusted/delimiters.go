package untrusted

import (
	"slices"
	"strings"
)

// promptElements lists the elements that clients and models use to structure
// prompts. A listed text must not open one.
var promptElements = []string{
	"app-context", "application_skill_context", "assistant", "available_skills", "developer", "environment_context", "function_calls", "function_results",
	"human", "instructions", "invoke", "skill", "skills", "skills_instructions", "system", "system-reminder", "system_prompt", "system_reminder", "think", "thinking",
	"tool_call", "tool_response", "tool_result", "tool_use", "user_instructions",
}

// neutralize changes the delimiters in s that could end a part of a prompt or
// begin another: end tags, tags of promptElements, special tokens such as
// <|im_start|>, and [INST]. It replaces only their first character, with one
// that looks like it.
func neutralize(s string) string {
	i := strings.IndexAny(s, "<[")
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

// isDelimiter reports whether the text after a "<" completes a delimiter.
func isDelimiter(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	if rest == "" {
		return false
	}
	switch rest[0] {
	case '|':
		return true
	case '/':
		rest = strings.TrimLeft(rest[1:], " \t\r\n")
		return rest != "" && isNameByte(rest[0])
	case '<':
		return strings.HasPrefix(strings.ToUpper(rest[:min(len(rest), 5)]), "<SYS>") || strings.HasPrefix(strings.ToUpper(rest[:min(len(rest), 6)]), "</SYS>")
	case '!':
		return strings.HasPrefix(rest, "!--") || strings.HasPrefix(rest, "![CDATA[")
	}
	if strings.HasPrefix(rest, "｜") {
		return true
	}
	end := 0
	for end < len(rest) && isNameByte(rest[end]) {
		end++
	}
	if end == 0 {
		return false
	}
	name := strings.ToLower(rest[:end])
	_, local, _ := strings.Cut(name, ":")
	return slices.Contains(promptElements, name) || strings.HasPrefix(name, "antml:") || local != "" && slices.Contains(promptElements, local)
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == ':' || c == '.' || c >= 0x80
}

// isInstruction reports whether the text after a "[" completes a delimiter.
func isInstruction(rest string) bool {
	upper := strings.ToUpper(rest[:min(len(rest), 6)])
	return strings.HasPrefix(upper, "INST]") || strings.HasPrefix(upper, "/INST]")
}
