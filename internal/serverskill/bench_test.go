package serverskill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/serverskill"
)

// pages returns the results of skills/list for n skills in pages of 100. Each
// entry has about 1 KB and three files.
func pages(n int) []string {
	var out []string
	for from := 0; from < n; from += 100 {
		var entries []string
		for i := from; i < min(n, from+100); i++ {
			root := fmt.Sprintf("skill://skill-%d", i)
			entries = append(entries, fmt.Sprintf(`{"uri":"%s/SKILL.md","frontmatter":{"name":"skill-%d","description":%q,"metadata":{"version":"1.2"}},"resources":[%s,%s,%s]}`,
				root, i, strings.Repeat("Describes what it does. ", 15), resource(root+"/SKILL.md", "x"), resource(root+"/references/a.md", "y"), resource(root+"/scripts/b.py", "z")))
		}
		next := ""
		if from+100 < n {
			next = fmt.Sprint(from + 100)
		}
		out = append(out, fmt.Sprintf(`{"resultType":"complete","skills":[%s],"nextCursor":%q,"ttlMs":60000}`, strings.Join(entries, ","), next))
	}
	return out
}

func paged(all []string) *server {
	s := newServer()
	s.list = func(cursor string) (string, error) {
		n := 0
		fmt.Sscan(cursor, &n)
		return all[n/100], nil
	}
	return s
}

// Listing 500 skills, compared with decoding the same JSON.
func BenchmarkListing(b *testing.B) {
	all := pages(500)
	b.Run("list", func(b *testing.B) {
		s := paged(all)
		for b.Loop() {
			l, err := serverskill.List(context.Background(), s, serverskill.Limits{})
			if err != nil || len(l.Entries) != 500 {
				b.Fatal(l, err)
			}
		}
		if len(s.reads) > 0 {
			b.Fatalf("%d files were read", len(s.reads))
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			for _, page := range all {
				var v any
				if err := json.Unmarshal([]byte(page), &v); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("catalog", func(b *testing.B) {
		for b.Loop() {
			c, err := catalog.New([]catalog.Source{newSource(paged(all))}, nil)
			if err == nil {
				err = c.Reload(context.Background())
			}
			if err != nil || len(c.Snapshot().Skills()) != 500 {
				b.Fatal(err)
			}
		}
	})
}

// Reading a file of 15 KB from the cache in memory and on disk.
func BenchmarkCachedRead(b *testing.B) {
	for name, dir := range map[string]string{"memory": "", "disk": filepath.Join(b.TempDir(), "docs")} {
		s := newServer()
		s.add("skill://pdf", "pdf", "a.md", strings.Repeat("0123456789abcde\n", 960))
		open := func() *catalog.Catalog {
			c, err := catalog.New([]catalog.Source{serverskill.New(serverskill.Options{Label: "docs", Connector: s, Wait: true, Cache: &serverskill.Cache{Dir: dir}})}, nil)
			if err == nil {
				err = c.Reload(context.Background())
			}
			if err != nil {
				b.Fatal(err)
			}
			return c
		}
		c := open()
		e := c.Snapshot().Skills()[0]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if text, err := readFile(c, e, "a.md"); err != nil || len(text) != 15360 {
					b.Fatal(len(text), err)
				}
			}
		})
	}
}
