package upstream

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

var hashed = regexp.MustCompile(`_[0-9a-f]{8}$`)

func TestK20ToolNames(t *testing.T) {
	for _, tt := range []struct{ server, tool, want string }{
		{"github", "create_issue", "github__create_issue"},
		{"a", "b__c", "a__b__c"},
		{"a", "_b", "a___b"},
		{"pdf_weibo", "getUserInfo", "pdf_weibo__getUserInfo"},
		// Those that had to be changed end in a hash.
		{"a__b", "c", "a__b__c_#"},
		{"a_", "b", "a___b_#"},
		{"files.local", "read:file", "files_local__read_file_#"},
		{"a-server-with-a-very-long-name-indeed", "a_tool_with_a_very_long_name_too_which_is_cut", "a-server__a_tool_with_a_very_long_name__#"},
		{"", "", "___#"},
	} {
		got := ToolName(tt.server, tt.tool)
		if plain := hashed.ReplaceAllString(got, "_#"); got != tt.want && plain != tt.want {
			t.Errorf("ToolName(%q, %q) = %q, want %q", tt.server, tt.tool, got, tt.want)
		}
	}
}

// Names are what every client takes, and no two tools share one.
func TestToolNamesAreClean(t *testing.T) {
	form := regexp.MustCompile(`\A[A-Za-z0-9_-]{1,48}\z`)
	word := rapid.StringMatching(`[ab_\-.é ]{0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		s1, t1, s2, t2 := word.Draw(t, "server"), word.Draw(t, "tool"), word.Draw(t, "server2"), word.Draw(t, "tool2")
		a, b := ToolName(s1, t1), ToolName(s2, t2)
		if !form.MatchString(a) {
			t.Fatalf("ToolName(%q, %q) = %q", s1, t1, a)
		}
		if (a == b) != (s1 == s2 && t1 == t2) {
			t.Fatalf("ToolName(%q, %q) = %q = ToolName(%q, %q)", s1, t1, a, s2, t2)
		}
	})
}
