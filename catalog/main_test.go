package catalog_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// allScopes lists the scopes, highest first.
var allScopes = []catalog.Scope{catalog.Project, catalog.User, catalog.Group, catalog.Public, catalog.Bundled}

// doc is a SKILL.md with the given further frontmatter.
func doc(name, more string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + " things.\n" + more + "---\n\n# " + name + "\n"
}

// tree makes files below a new directory. A name that ends in a slash is a
// directory; a content that begins with "-> " is a link.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, files)
	return root
}

func write(t testing.TB, root string, files map[string]string) {
	t.Helper()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p, content := filepath.Join(root, filepath.FromSlash(name)), files[name]
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		target, link := strings.CutPrefix(content, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(p, 0o755))
		case link:
			must(t, os.Symlink(filepath.FromSlash(target), p))
		default:
			must(t, os.WriteFile(p, []byte(content), 0o644))
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// age sets the times of everything below root back, so that a scan trusts them. A
// recently written file could change again within one clock tick.
func age(t testing.TB, root string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	must(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chtimes(p, old, old)
	}))
}

// pack returns a ZIP archive of files.
func pack(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}) {
		f, err := w.Create(name)
		must(t, err)
		_, err = f.Write([]byte(files[name]))
		must(t, err)
	}
	must(t, w.Close())
	return b.String()
}

// dir is the source of a directory tree in scope project, labelled "dir".
func dir(root string) catalog.Watcher {
	return catalog.NewDir("dir", catalog.Project, root, nil).(catalog.Watcher)
}

// open returns a catalog that has read the sources.
func open(t testing.TB, sources ...catalog.Source) *catalog.Catalog {
	t.Helper()
	return filtered(t, catalog.Filter{}, sources...)
}

func filtered(t testing.TB, f catalog.Filter, sources ...catalog.Source) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(sources, &catalog.Options{Filter: f})
	must(t, err)
	must(t, c.Reload(t.Context()))
	return c
}

// scan reads one directory tree.
func scan(t testing.TB, root string) *catalog.Snapshot {
	t.Helper()
	return open(t, dir(root)).Snapshot()
}

// dirs returns the sorted directories of all skills in a snapshot.
func dirs(s *catalog.Snapshot) []string {
	out := []string{}
	for e := range s.All() {
		out = append(out, e.Dir)
	}
	slices.Sort(out)
	return out
}

func names(entries []*catalog.Entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

func keys(entries []*catalog.Entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Key())
	}
	return out
}

// codes are "path code" of the problems, paths relative to root.
func codes(root string, problems []catalog.Problem) []string {
	out := []string{}
	for _, p := range problems {
		rel, err := filepath.Rel(root, p.Path)
		if err != nil {
			rel = p.Path
		}
		out = append(out, filepath.ToSlash(rel)+" "+p.Code)
	}
	slices.Sort(out)
	return out
}

func get(t testing.TB, s *catalog.Snapshot, ref string) *catalog.Entry {
	t.Helper()
	e, err := s.Get(ref)
	must(t, err)
	return e
}

// memory is a source that a test fills, for whatever order, timing and faults
// the test needs.
type memory struct {
	origin  string
	scope   catalog.Scope
	entries []*catalog.Entry
	list    func(context.Context) (catalog.Listing, error) // where entries are not enough
	files   fs.FS
}

func (m *memory) Origin() string       { return m.origin }
func (m *memory) Scope() catalog.Scope { return m.scope }

func (m *memory) List(ctx context.Context) (catalog.Listing, error) {
	if m.list != nil {
		return m.list(ctx)
	}
	return catalog.Listing{Entries: slices.Clone(m.entries)}, nil
}

func (m *memory) Open(_ context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	if m.files == nil {
		return m.bundle(e)
	}
	sub, err := fs.Sub(m.files, e.Dir)
	if err != nil {
		return nil, err
	}
	return skill.NewBundle(sub, path.Base(e.Dir), nil), nil
}

// bundle makes the SKILL.md that an entry of add stands for.
func (m *memory) bundle(e *catalog.Entry) (*skill.Bundle, error) {
	if !slices.Contains(m.entries, e) {
		return nil, fmt.Errorf("%s: %w", e.Dir, fs.ErrNotExist)
	}
	needs, err := json.Marshal(e.Dependencies)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("---\nname: %s\ndescription: Does it.\ndependencies: %s\n---\nDo it.\n", e.Name, needs)
	return skill.NewBundle(fstest.MapFS{"SKILL.md": {Data: []byte(text)}}, path.Base(e.Dir), nil), nil
}

// entries makes skills of a source: "name", or "name@version" with the
// skills it needs.
func (m *memory) add(ref string, needs ...string) *memory {
	name, version, _ := strings.Cut(ref, "@")
	m.entries = append(m.entries, &catalog.Entry{Name: name, Version: version, Description: "Does " + name + " things.", Dependencies: needs,
		UserInvocable: true, HasOwnName: true, Verbatim: true, Origin: m.origin, Scope: m.scope, Dir: name, Path: m.origin + ":" + name})
	return m
}

func source(origin string, scope catalog.Scope, refs ...string) *memory {
	m := &memory{origin: origin, scope: scope}
	for _, r := range refs {
		m.add(r)
	}
	return m
}
