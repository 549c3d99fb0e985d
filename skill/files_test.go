package skill_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/skill"
)

// Files from elsewhere are held to the rules that archives are held to.
func TestCheckFiles(t *testing.T) {
	for _, tt := range []struct {
		what  string
		files skill.Manifest
		want  []string
	}{
		{"plain files", skill.Manifest{{Path: "SKILL.md", Size: 10}, {Path: "a/b.txt", Size: 5}, {Path: "a/é"}}, nil},
		{"none", nil, nil},
		{"names", skill.Manifest{{Path: "/a"}, {Path: "../b"}, {Path: `c\d`}, {Path: "e//f"}, {Path: "con"}, {Path: "\xff"}, {Path: strings.Repeat("g", 300)}},
			[]string{"absolute-path", "path-escape", "backslash", "path-unclean", "name-reserved", "name-encoding", "path-too-long"}},
		{"names that Windows cannot store", skill.Manifest{{Path: "a?"}, {Path: "b/c*"}, {Path: `d"`}, {Path: "e|f"}, {Path: "g. "}, {Path: "h./i"}, {Path: "conin$.txt"}},
			[]string{"name-character", "name-character", "name-character", "name-character", "name-end", "name-end", "name-reserved"}},
		{"devices by their other numbers", skill.Manifest{{Path: "lpt¹.txt"}, {Path: "com10"}, {Path: "com0"}}, []string{"name-reserved"}},
		{"collisions", skill.Manifest{{Path: "a"}, {Path: "A"}, {Path: "b"}, {Path: "b/c"}, {Path: "d"}, {Path: "d"}}, []string{"collision", "collision", "collision"}},
		{"a large file", skill.Manifest{{Path: "a", Size: 101}, {Path: "b"}}, []string{"file-too-large"}},
		{"many bytes", skill.Manifest{{Path: "a", Size: 90}, {Path: "b", Size: 90}, {Path: "c", Size: 90}}, []string{"archive-unpacked-too-large"}},
		{"many files", skill.Manifest{{Path: "a"}, {Path: "b"}, {Path: "c"}, {Path: "d"}, {Path: "e"}, {Path: "f"}, {Path: "g"}, {Path: "h"}}, []string{"too-many-entries"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var got []string
			for _, r := range (skill.Limits{Entries: 7, FileBytes: 100, UnpackedBytes: 150}).Check(tt.files) {
				got = append(got, r.Code)
				if strings.Contains(r.Message, "archive") {
					t.Errorf("%s", r)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
