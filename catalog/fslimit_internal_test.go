package catalog

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// slowFS is a file system whose directories take a second to open.
type slowFS struct{ fs.FS }

func (s slowFS) Open(name string) (fs.File, error) {
	time.Sleep(time.Second)
	return s.FS.Open(name)
}

func TestListingOfAFileSystemIsLimited(t *testing.T) {
	skillFile := &fstest.MapFile{Data: []byte("---\nname: a\ndescription: d\n---\n")}
	many := fstest.MapFS{"a/SKILL.md": skillFile}
	for i := range 100 {
		many[fmt.Sprintf("b/%d", i)] = &fstest.MapFile{}
	}
	deep := fstest.MapFS{"a/SKILL.md": skillFile, strings.Repeat("d/", 40) + "SKILL.md": skillFile}
	for _, tt := range []struct {
		code   string
		fsys   fs.FS
		limits DirOptions
	}{
		{"entry-limit", many, DirOptions{MaxDepth: 32, MaxEntries: 50, MaxTime: time.Hour}},
		{"depth-limit", deep, DirOptions{MaxDepth: 32, MaxEntries: 1000, MaxTime: time.Hour}},
		{"time-limit", slowFS{many}, DirOptions{MaxDepth: 32, MaxEntries: 1000, MaxTime: 10 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := NewFS("fs", Project, tt.fsys).(*fsSource)
			if f.limits.MaxDepth == 0 || f.limits.MaxEntries == 0 || f.limits.MaxTime == 0 {
				t.Errorf("limits %+v, want all", f.limits)
			}
			f.limits = tt.limits
			start := time.Now()
			l, err := f.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Entries) != 1 || len(l.Problems) != 1 || l.Problems[0].Code != tt.code {
				t.Errorf("%d skills, want 1; problems %v, want %s", len(l.Entries), l.Problems, tt.code)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s: took %v", tt.code, took)
			}
		})
	}
}
