package install

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/remote"
)

func TestParseChoice(t *testing.T) {
	offer := &remote.Collection{Location: remote.Location{Kind: remote.Git}, Skills: []remote.Skill{
		{Name: "notes", Dir: "notes"}, {Name: "pdf", Dir: "a/pdf"}, {Name: "pdf", Dir: "b/pdf"}, {Name: "7", Dir: "seven"}, {Name: "Sum it", Dir: "sums"}}}
	for _, tt := range []struct{ line, want, wrong string }{
		{"1\n", "notes", ""},
		{"2-3 1\r\n", "a/pdf b/pdf notes", ""},
		{"1,1, 1", "notes", ""},
		{"b/pdf sums", "b/pdf sums", ""},
		{"pdf", "a/pdf b/pdf", ""}, // the caller chooses among two of a name
		{"7", "seven", ""},         // a name before a number
		{"all", "notes a/pdf b/pdf seven sums", ""},
		{"\n", "", ""},
		{"none", "", ""},
		{"0", "", "0"},
		{"6", "", "6"},
		{"3-2", "", "3-2"},
		{"1-99999999999999999999", "", "1-99999999999999999999"},
		{"1-", "", "1-"},
		{"-1", "", "-1"},
		{"1 pfd", "", "pfd"},
	} {
		chosen, wrong := ParseChoice(tt.line, offer)
		var dirs []string
		for _, s := range chosen {
			dirs = append(dirs, s.Dir)
		}
		if got := strings.Join(dirs, " "); got != tt.want || wrong != tt.wrong {
			t.Errorf("ParseChoice(%q) = %q, unknown %q; want %q, unknown %q", tt.line, got, wrong, tt.want, tt.wrong)
		}
	}
}

func TestFindNewerTag(t *testing.T) {
	for _, tt := range []struct{ have, tags, want string }{
		{"v1.0.0", "v1.0.0 v1.2.0 v1.10.0", "v1.10.0"},
		{"v1.10.0", "v1.9.0 v1.2", ""},
		{"v1.0.0", "v2.0.0-rc.1", ""}, // a pre-release is offered only to a pre-release
		{"v2.0.0-rc.1", "v2.0.0-rc.2 v1.0.0", "v2.0.0-rc.2"},
		{"pdf-v1.0.0", "v2.0.0 pdf-v1.1.0", "pdf-v1.1.0"},
		{"stable", "v1.0.0", ""},
		{"v1.0.0", "v99999999999999999999.0.0 vx release", ""},
	} {
		tags := map[string]string{}
		for tag := range strings.FieldsSeq(tt.tags) {
			tags[tag] = "commit"
		}
		if got := findNewerTag(tt.have, tags); got != tt.want {
			t.Errorf("findNewerTag(%s, %s) = %q, want %q", tt.have, tt.tags, got, tt.want)
		}
	}
}
