package vendors

import "strings"

// contextWindows are the context windows in tokens of the vendors' models, by the
// start of the name that a model reports. The first match counts. Most include the
// answer; that of gpt-5 is given without it.
var contextWindows = []struct {
	start  string
	tokens int
}{
	{"anthropic:claude-instant", 100_000},
	{"anthropic:claude-2.0", 100_000},
	{"anthropic:claude-", 200_000},
	{"openai:gpt-5-chat", 128_000},
	{"openai:gpt-5", 272_000},
	{"openai:gpt-4.1", 1_047_576},
	{"openai:gpt-4.5", 128_000},
	{"openai:gpt-4o", 128_000},
	{"openai:chatgpt-4o", 128_000},
	{"openai:gpt-4-turbo", 128_000},
	{"openai:gpt-4-1106", 128_000},
	{"openai:gpt-4-0125", 128_000},
	{"openai:gpt-4-32k", 32_768},
	{"openai:gpt-4", 8_192},
	{"openai:gpt-3.5-turbo", 16_385},
	{"openai:o1-mini", 128_000},
	{"openai:o1-preview", 128_000},
	{"openai:o1", 200_000},
	{"openai:o3", 200_000},
	{"openai:o4-mini", 200_000},
}

// ContextWindow returns the context window in tokens of a model at its vendor's own
// server, or 0 if it is unknown. name is the name that the model reports; see
// [llm.Model]. Other servers limit the same models differently.
func ContextWindow(name string) int {
	for _, w := range contextWindows {
		if rest, ok := strings.CutPrefix(name, w.start); ok && (strings.HasSuffix(w.start, "-") || rest == "" || strings.IndexByte("-.:", rest[0]) >= 0) {
			return w.tokens
		}
	}
	return 0
}
