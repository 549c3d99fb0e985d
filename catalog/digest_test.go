package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

func digestOf(text string) string { return "sha256:" + skillfile.Hash([]byte(text)) }

// rewrite replaces the content of a file and keeps its size, time and identity.
func rewrite(t testing.TB, file, content string) {
	t.Helper()
	fi, err := os.Stat(file)
	must(t, err)
	if int(fi.Size()) != len(content) {
		t.Fatalf("the new content has %d bytes, want %d", len(content), fi.Size())
	}
	must(t, os.WriteFile(file, []byte(content), 0o644))
	must(t, os.Chtimes(file, fi.ModTime(), fi.ModTime()))
}

// A digest costs no read while the stamp of the file is unchanged.
func TestDigestReadsChangedFilesOnly(t *testing.T) {
	for name, file := range map[string]string{"regular file": "pdf/SKILL.md", "link": "pdf/text.md"} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{file: doc("pdf", "")}
			if name == "link" {
				files["pdf/SKILL.md"] = "-> text.md"
			}
			root := tree(t, files)
			age(t, root)
			c := open(t, dir(root))
			e := get(t, c.Snapshot(), "pdf")
			want := func(when, want string) {
				t.Helper()
				if got, err := c.Digest(t.Context(), e); err != nil || got != want {
					t.Errorf("%s: got %s, %v, want %s", when, got, err, want)
				}
			}
			first := digestOf(doc("pdf", ""))
			want("first call", first)
			at := filepath.Join(root, file)
			rewrite(t, at, strings.Replace(doc("pdf", ""), "things", "THINGS", 1))
			want("unchanged stamp", first)

			longer := doc("pdf", "") + "More.\n"
			must(t, os.WriteFile(at, []byte(longer), 0o644))
			want("just changed", digestOf(longer))
			again := strings.Replace(longer, "More", "Less", 1)
			rewrite(t, at, again) // the time of a recent change is not trusted
			want("changed again at once", digestOf(again))
			old := time.Now().Add(-time.Minute)
			must(t, os.Chtimes(at, old, old))
			want("another time", digestOf(again))
		})
	}
}

func TestDigestOfOtherSources(t *testing.T) {
	text, changed := doc("pdf", ""), doc("pdf", "version: 2\n")
	mem := fstest.MapFS{}
	packed := filepath.Join(t.TempDir(), "pdf.zip")
	for _, tt := range []struct {
		source catalog.Source
		put    func(text string)
	}{
		{catalog.NewFS("fs", catalog.User, mem), func(text string) { mem["pdf/SKILL.md"] = &fstest.MapFile{Data: []byte(text)} }},
		{catalog.NewArchive("zip", catalog.User, packed), func(text string) {
			must(t, os.WriteFile(packed, []byte(pack(t, map[string]string{"pdf/SKILL.md": text})), 0o644))
			age(t, packed)
		}},
	} {
		tt.put(text)
		c := open(t, tt.source)
		e := get(t, c.Snapshot(), "pdf")
		for _, want := range []string{text, text, changed} {
			tt.put(want)
			if got, err := c.Digest(t.Context(), e); err != nil || got != digestOf(want) {
				t.Errorf("%s: got %s, %v, want %s", tt.source.Origin(), got, err, digestOf(want))
			}
		}
	}
}

// countingSource counts how often skills are opened.
type countingSource struct {
	catalog.Source
	opened int
}

func (s *countingSource) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	s.opened++
	return s.Source.Open(ctx, e)
}

// versionedSource lists another entry after each change.
type versionedSource struct{ *countingSource }

func (versionedSource) ListsVersions() bool { return true }

func TestDigestOfVersionedEntryIsReadOnce(t *testing.T) {
	mem := fstest.MapFS{"pdf/SKILL.md": {Data: []byte(doc("pdf", ""))}}
	counting := &countingSource{Source: catalog.NewFS("fs", catalog.User, mem)}
	for _, tt := range []struct {
		source catalog.Source
		want   int
	}{{counting, 3}, {versionedSource{counting}, 1}} {
		counting.opened = 0
		c := open(t, tt.source)
		for range 3 {
			_, err := c.Digest(t.Context(), get(t, c.Snapshot(), "pdf"))
			must(t, err)
		}
		if counting.opened != tt.want {
			t.Errorf("%T: opened %d times, want %d", tt.source, counting.opened, tt.want)
		}
	}
	changed := doc("pdf", "version: 2\n")
	c := open(t, versionedSource{counting})
	_, err := c.Digest(t.Context(), get(t, c.Snapshot(), "pdf"))
	must(t, err)
	mem["pdf/SKILL.md"] = &fstest.MapFile{Data: []byte(changed)}
	must(t, c.Reload(t.Context()))
	if got, err := c.Digest(t.Context(), get(t, c.Snapshot(), "pdf")); err != nil || got != digestOf(changed) {
		t.Errorf("after the change: got %s, %v", got, err)
	}
}

func TestDigestOfMissingSkill(t *testing.T) {
	root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", "")})
	age(t, root)
	c := open(t, dir(root))
	e := get(t, c.Snapshot(), "pdf")
	_, err := c.Digest(t.Context(), e)
	must(t, err)
	must(t, os.Remove(filepath.Join(root, "pdf", "SKILL.md")))
	if got, err := c.Digest(t.Context(), e); err == nil {
		t.Errorf("got %s of a missing file", got)
	}
}

func BenchmarkDigest(b *testing.B) {
	root := tree(b, map[string]string{"pdf/SKILL.md": doc("pdf", "") + strings.Repeat("Text of a skill.\n", 900)})
	age(b, root)
	c := open(b, dir(root))
	e := get(b, c.Snapshot(), "pdf")
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Digest(b.Context(), e); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, src, err := c.Read(b.Context(), e); err != nil || skillfile.Hash(src) == "" {
				b.Fatal(err)
			}
		}
	})
}
