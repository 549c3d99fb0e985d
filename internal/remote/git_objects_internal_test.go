package remote

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/skill"
)

// counted counts written bytes.
type counted struct {
	io.WriteCloser
	lines int
}

func (c *counted) Write(p []byte) (int, error) {
	c.lines += strings.Count(string(p), "\n")
	return c.WriteCloser.Write(p)
}

// A skill that is hashed, parsed and scanned is got from git once.
func TestSkillObjectsAreReadOnce(t *testing.T) {
	files := map[string]string{"pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files.\n---\nRead.\n"}
	for i := range 20 {
		files[fmt.Sprintf("pdf/notes/%02d.md", i)] = fmt.Sprintf("Note %d.\n", i)
	}
	repo := remotetest.NewGit(t)
	repo.Commit(files)
	c := New(&Options{TempDir: t.TempDir()})
	l := Location{Kind: Git, URL: "file://" + filepath.ToSlash(repo.Dir)}
	program, err := c.gitProgram()
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.newGit(t.Context(), program, l)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := g.collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer offer.Close()
	asked := &counted{WriteCloser: g.objects.in}
	g.objects.in = asked
	b, err := offer.OpenSkill(t.Context(), offer.Skills[0])
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 2 {
		if m, _, err := skill.ReadManifest(b); err != nil || len(m) != len(files) {
			t.Fatalf("hashed %d files: %v", len(m), err)
		}
	}
	if _, err := scan.Skill(t.Context(), b, "pdf"); err != nil {
		t.Fatal(err)
	}
	if most := len(files); asked.lines > most {
		t.Errorf("git was asked for %d objects, of %d", asked.lines, most)
	}
	for range 2 { // a while passes
		g.objects.stopIdle()
	}
	g.objects.cache = objectCache{}
	if g.objects.cmd != nil {
		t.Error("git runs while nothing is read")
	}
	if _, err := b.Open("notes/01.md"); err != nil {
		t.Errorf("after a while: %v", err)
	}
	if err := offer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open("SKILL.md"); err == nil {
		t.Error("a file could be opened after the offer was closed")
	}
}

// Only the last objects are kept, within the limit.
func TestLastObjects(t *testing.T) {
	zeros := make([]byte, maxCache)
	r := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{1, 64, 10_000, maxCache} {
		var l objectCache
		for i := range 50_000 {
			id, content := fmt.Sprint(i), zeros[:r.IntN(most)]
			l.add(id, content)
			l.add(id, content)
			if _, messages := l.content[id]; messages != (len(content)+cacheOverhead <= maxCache/2) {
				t.Fatalf("object %d of %d bytes: stored:  %v", i, len(content), messages)
			}
		}
		bytes := 0
		for _, c := range l.content {
			bytes += len(c) + cacheOverhead
		}
		if bytes != l.bytes || bytes > maxCache || len(l.content) != len(l.names) {
			t.Errorf("up to %d bytes each: %d objects by %d names have %d bytes, counted as %d", most, len(l.content), len(l.names), bytes, l.bytes)
		}
		if bytes < maxCache/2 {
			t.Errorf("up to %d bytes each: only %d are stored", most, bytes)
		}
	}
}
