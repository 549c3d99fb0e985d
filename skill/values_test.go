package skill_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

func TestSplitToolsReadsAllSpellings(t *testing.T) {
	for in, want := range map[string][]string{
		"":                              nil,
		" , ,\t":                        nil,
		"Read":                          {"Read"},
		"Read Write":                    {"Read", "Write"},
		"Read,Write":                    {"Read", "Write"},
		"Read, Write,\n Edit":           {"Read", "Write", "Edit"},
		"Bash(git:*) Read":              {"Bash(git:*)", "Read"},
		"Bash(git add:*, git commit:*)": {"Bash(git add:*, git commit:*)"},
		"Bash(a (b, c) d), Read":        {"Bash(a (b, c) d)", "Read"},
		"Bash(a, b":                     {"Bash(a, b"},
		"a) b, c":                       {"a)", "b", "c"},
		"a)) (b c) d":                   {"a))", "(b c)", "d"},
		"Bash (git:*)":                  {"Bash", "(git:*)"},
		"mcp__a__b\u00a0mcp__c":         {"mcp__a__b", "mcp__c"},
	} {
		if diff := cmp.Diff(want, skill.SplitTools(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}
