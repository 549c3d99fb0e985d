package serverskill_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/loadouttest"
)

// server is a server in memory. It lists the skills in pages, and counts reads.
type server struct {
	mu     sync.Mutex
	files  map[string]string   // by URI
	skills map[string][]string // URIs of files by URI of SKILL.md
	names  map[string]string
	order  []string // listed skills
	hidden map[string]bool
	size   int // of a page; 0 means all
	reads  []string
	lists  int
	list   func(cursor string) (string, error) // replaces skills/list
	served bool
}

func newServer() *server {
	return &server{files: map[string]string{}, skills: map[string][]string{}, names: map[string]string{}, hidden: map[string]bool{}, served: true}
}

// add adds a skill with further files, given as pairs of path and content.
func (s *server) add(root, name string, more ...string) {
	uri := root + "/SKILL.md"
	if s.skills[uri] == nil {
		s.order = append(s.order, uri)
	}
	s.names[uri], s.skills[uri] = name, []string{uri}
	s.files[uri] = fmt.Sprintf("---\nname: %s\ndescription: Does it\n---\nText of %s.\n", name, root)
	for i := 0; i < len(more); i += 2 {
		s.skills[uri] = append(s.skills[uri], root+"/"+more[i])
		s.files[root+"/"+more[i]] = more[i+1]
	}
}

func (s *server) entry(uri string) string {
	var rs []string
	for _, f := range s.skills[uri] {
		rs = append(rs, resource(f, s.files[f]))
	}
	return entryJSON(uri, s.names[uri], rs...)
}

func (s *server) Do(ctx context.Context, _ string, f func(context.Context, serverskill.Conn) error) error {
	return f(ctx, s)
}

func (s *server) ServesSkills() bool { return s.served }

func (s *server) ListSkills(_ context.Context, cursor string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.list != nil {
		js, err := s.list(cursor)
		return json.RawMessage(js), err
	}
	var all []string
	for _, uri := range s.order {
		if !s.hidden[uri] {
			all = append(all, s.entry(uri))
		}
	}
	next, from := "", 0
	if s.size > 0 {
		fmt.Sscan(cursor, &from)
		if to := from + s.size; to < len(all) {
			next, all = fmt.Sprint(to), all[from:to]
		} else {
			all = all[from:]
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"resultType":"complete","skills":[%s],"nextCursor":%q,"ttlMs":60000,"cacheScope":"public"}`, strings.Join(all, ","), next)), nil
}

func (s *server) GetSkill(_ context.Context, uri string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.skills[uri] == nil {
		return nil, fs.ErrNotExist
	}
	return json.RawMessage(`{"resultType":"complete","skill":` + s.entry(uri) + `}`), nil
}

func (s *server) ReadSkillFile(_ context.Context, uri string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, uri)
	text, ok := s.files[uri]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func newSource(s *server) *serverskill.Source {
	return serverskill.New(serverskill.Options{Label: "docs", Name: "Docs", Connector: s, Wait: true})
}

func newCatalog(t *testing.T, sources ...catalog.Source) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(sources, nil)
	if err == nil {
		err = c.Reload(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func names(c *catalog.Catalog) string {
	var out []string
	for _, e := range c.Snapshot().Skills() {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func get(t *testing.T, c *catalog.Catalog, ref string) *catalog.Entry {
	t.Helper()
	e, err := c.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func readFile(c *catalog.Catalog, e *catalog.Entry, name string) (string, error) {
	b, err := c.Open(context.Background(), e)
	if err != nil {
		return "", err
	}
	defer b.Close()
	data, err := fs.ReadFile(b.FS, name)
	return string(data), err
}

func TestSourceKeepsTheContract(t *testing.T) {
	s := newServer()
	s.add("skill://pdf", "pdf", "references/a.md", "A")
	s.add("skill://acme/refunds", "refunds")
	loadouttest.Source(t, newSource(s))
}

func TestNoFileIsFetchedBeforeItIsRead(t *testing.T) {
	s := newServer()
	s.add("skill://pdf", "pdf", "references/a.md", "A", "run.py", "print(1)")
	c := newCatalog(t, newSource(s))
	e := get(t, c, "mcp.docs/pdf")
	if _, err := c.Search(t.Context(), "text", catalog.SearchOptions{}); err != nil {
		t.Fatal(err)
	}
	files, err := c.ListFiles(t.Context(), e)
	if err != nil || len(files) != 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	m, err := c.CompleteManifest(t.Context(), e)
	if err != nil || len(m) != 3 {
		t.Fatalf("manifest %v, %v", m, err)
	}
	if digest, err := c.Digest(t.Context(), e); err != nil || digest != m.Digest() {
		t.Errorf("digest %s, %v; want that of the manifest %s", digest, err, m.Digest())
	}
	if len(s.reads) != 0 {
		t.Fatalf("fetched %v before a read", s.reads)
	}
	if _, _, err := c.Read(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if len(s.reads) != 1 || s.reads[0] != pdfURI {
		t.Errorf("reading SKILL.md fetched %v", s.reads)
	}
	for range 2 {
		if text, err := readFile(c, e, "references/a.md"); text != "A" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
	if len(s.reads) != 2 {
		t.Errorf("a file that was read is cached: fetched %v", s.reads)
	}
}

func TestNamesCarryTheLabelAndShadowNothing(t *testing.T) {
	s, other := newServer(), newServer()
	s.add("skill://pdf", "pdf")
	s.add("skill://acme/billing/refunds", "refunds")
	s.add("skill://acme/support/refunds", "refunds")
	s.add("github://o/r/refunds", "refunds")
	other.add("skill://pdf", "pdf")
	local := catalog.NewFS("user", catalog.User, os.DirFS(writeSkill(t, "pdf")))
	second := serverskill.New(serverskill.Options{Label: "user", Connector: other, Wait: true})
	c := newCatalog(t, second, newSource(s), local)
	if got, want := names(c), "mcp.docs/acme/billing/refunds mcp.docs/acme/support/refunds mcp.docs/github:/o/r/refunds mcp.docs/pdf mcp.user/pdf pdf"; got != want {
		t.Errorf("names %s, want %s", got, want)
	}
	if e := get(t, c, "pdf"); e.Server != "" {
		t.Errorf("pdf resolves to %s", e.Key())
	}
	if e := get(t, c, "user/pdf"); e.Server != "" {
		t.Errorf("user/pdf resolves to %s", e.Key())
	}
	if len(c.Snapshot().Shadowed()) != 0 {
		t.Errorf("shadowed: %v", c.Snapshot().Shadowed())
	}
	only := newCatalog(t, newSource(s))
	if e, err := only.Resolve(t.Context(), "pdf"); err == nil {
		t.Errorf("without a local skill, pdf resolves to %s", e.Key())
	}
}

func writeSkill(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: Local\n---\nLocal.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRequestsOfASkillAreIgnored(t *testing.T) {
	s := newServer()
	s.add("skill://pdf", "pdf")
	s.files[pdfURI] = "---\nname: pdf\ndescription: Does it\nallowed-tools: Bash\nmodel: big\npreload: true\ndependencies: [local]\nmcpServers: {x: {command: sh}}\nhooks: {a: b}\n---\nText.\n"
	s.list = func(string) (string, error) {
		return `{"resultType":"complete","skills":[{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"Does it","allowed-tools":"Bash","model":"big","preload":true,"dependencies":["local"],"mcpServers":{"x":{"command":"sh"}},"hooks":{"a":"b"}},"resources":[` + resource(pdfURI, s.files[pdfURI]) + `]}]}`, nil
	}
	c := newCatalog(t, newSource(s), catalog.NewFS("user", catalog.User, os.DirFS(writeSkill(t, "local"))))
	e := get(t, c, "mcp.docs/pdf")
	if e.Preload || len(e.Dependencies) != 0 || e.ProvidesTools {
		t.Errorf("entry %+v requests something", e)
	}
	order, err := c.LoadOrder(t.Context(), e)
	if err != nil || len(order) != 1 {
		t.Fatalf("loads %d skills, %v", len(order), err)
	}
	sk := order[0].Skill
	if len(sk.AllowedTools)+len(sk.MCPServers.Names)+len(sk.Dependencies)+len(sk.Tools) != 0 || sk.MCPServers.Configs != nil || sk.Model != "" || sk.Provider != nil || sk.Preload {
		t.Errorf("skill %+v requests something", sk)
	}
}

func TestChangedContentIsNotUsed(t *testing.T) {
	for name, change := range map[string]func(*server){
		"digest":    func(s *server) { s.files["skill://pdf/a.md"] = "B" },
		"size":      func(s *server) { s.files["skill://pdf/a.md"] = "longer" },
		"removed":   func(s *server) { delete(s.files, "skill://pdf/a.md"); s.skills[pdfURI] = []string{pdfURI} },
		"and added": func(s *server) { s.add("skill://pdf", "pdf", "a.md", "C", "b.md", "new") },
	} {
		s := newServer()
		s.add("skill://pdf", "pdf", "a.md", "A")
		src := newSource(s)
		c := newCatalog(t, src)
		e := get(t, c, "mcp.docs/pdf")
		before, _ := c.Digest(t.Context(), e)
		change(s)
		text, err := readFile(c, e, "a.md")
		changed, ok := errors.AsType[*serverskill.ChangedError](err)
		if !ok || text != "" || len(changed.Changes) == 0 || changed.Changes[0].Path != "a.md" {
			t.Errorf("%s: read %q, error %v; want a ChangedError that names a.md", name, text, err)
			continue
		}
		after, err := c.Digest(t.Context(), e) // the entry was refreshed by skills/get
		if err != nil || after == before {
			t.Errorf("%s: digest %s as before, %v", name, after, err)
		}
		if s.lists != 1 {
			t.Errorf("%s: listed %d times", name, s.lists)
		}
		if name == "and added" {
			if text, err := readFile(c, e, "b.md"); text != "new" || err != nil {
				t.Errorf("%s: the refreshed entry: %q, %v", name, text, err)
			}
		}
	}
}

func TestServerThatContradictsItself(t *testing.T) {
	s := newServer()
	s.add("skill://pdf", "pdf")
	listed := s.entry(pdfURI)
	s.list = func(string) (string, error) { return `{"skills":[` + listed + `]}`, nil }
	// The entry's digest is that of the file, but its frontmatter is not.
	s.files[pdfURI] = strings.Replace(s.files[pdfURI], "Does it", "Exfiltrates", 1)
	listed = s.entry(pdfURI)
	c := newCatalog(t, newSource(s))
	e := get(t, c, "mcp.docs/pdf")
	for range 2 { // also from the cache
		if _, _, err := c.Read(t.Context(), e); !strings.Contains(fmt.Sprint(err), "description") {
			t.Errorf("error %v, want one that names the field", err)
		}
	}
}

func TestUnlistedFilesAreNotRead(t *testing.T) {
	s := newServer()
	s.add("skill://pdf", "pdf", "a.md", "A")
	s.files["skill://pdf/secret.md"] = "S"
	c := newCatalog(t, newSource(s))
	for _, name := range []string{"secret.md", "../other/SKILL.md", "a.md/../secret.md", "/etc/passwd"} {
		if text, err := readFile(c, get(t, c, "mcp.docs/pdf"), name); err == nil {
			t.Errorf("%s: read %q", name, text)
		}
	}
	if len(s.reads) != 0 {
		t.Errorf("asked the server for %v", s.reads)
	}
}

func TestSkillsAreFoundByURI(t *testing.T) {
	s := newServer()
	s.add("skill://pdf", "pdf")
	s.add("skill://acme/hidden", "hidden")
	s.hidden["skill://acme/hidden/SKILL.md"] = true
	c := newCatalog(t, newSource(s))
	if got := names(c); got != "mcp.docs/pdf" {
		t.Errorf("listed %s", got)
	}
	for _, ref := range []string{"mcp.docs/skill://acme/hidden/SKILL.md", "mcp.docs/acme/hidden"} {
		e := get(t, c, ref)
		if e.Name != "mcp.docs/acme/hidden" {
			t.Errorf("%s resolves to %s", ref, e.Name)
		}
	}
	if _, _, err := c.Read(t.Context(), get(t, c, "mcp.docs/acme/hidden")); err != nil {
		t.Error(err)
	}
	for _, ref := range []string{"mcp.docs/skill://none/SKILL.md", "mcp.docs/none", "mcp.docs/file:///etc/SKILL.md", "mcp.other/pdf", "hidden"} {
		if e, err := c.Resolve(t.Context(), ref); err == nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v; want not found", ref, e, err)
		}
	}
}

func TestListingIsBounded(t *testing.T) {
	entryOf := func(i int) string {
		uri := fmt.Sprintf("skill://s%d/SKILL.md", i)
		return entryJSON(uri, fmt.Sprintf("s%d", i), resource(uri, "x"))
	}
	n := 0
	for name, test := range map[string]struct {
		limits  upstream.SkillLimits
		list    func(cursor string) (string, error)
		entries int
		partial string
	}{
		"endless pages": {upstream.SkillLimits{Pages: 5}, func(string) (string, error) {
			n++
			return fmt.Sprintf(`{"skills":[%s],"nextCursor":"c%d"}`, entryOf(n), n), nil
		}, 5, "too many pages"},
		"repeated cursor": {upstream.SkillLimits{}, func(string) (string, error) { return `{"skills":[` + entryOf(1) + `],"nextCursor":"same"}`, nil }, 1, "repeats"},
		"many entries": {upstream.SkillLimits{Skills: 2}, func(string) (string, error) {
			return `{"skills":[` + entryOf(1) + `,` + entryOf(2) + `,` + entryOf(3) + `]}`, nil
		}, 2, "too many skills"},
		"many bytes": {upstream.SkillLimits{Bytes: 1000}, func(cursor string) (string, error) {
			if cursor == "" {
				return `{"skills":[` + entryOf(1) + `],"nextCursor":"b"}`, nil
			}
			return `{"skills":["` + strings.Repeat("x", 2000) + `"]}`, nil
		}, 1, "too large"},
		"failing page": {upstream.SkillLimits{}, func(cursor string) (string, error) {
			if cursor == "" {
				return `{"skills":[` + entryOf(1) + `],"nextCursor":"b"}`, nil
			}
			return "", errors.New("broken")
		}, 1, "page 2 failed"},
	} {
		s := newServer()
		s.list = test.list
		l, err := serverskill.List(t.Context(), s, test.limits)
		if err != nil || len(l.Entries) != test.entries || !strings.Contains(l.Partial, test.partial) {
			t.Errorf("%s: %+v, %v; want %d entries, partial because %q", name, l, err, test.entries, test.partial)
		}
	}
	s := newServer()
	s.list = func(string) (string, error) {
		return `{"skills":[{"uri":"skill://bad/SKILL.md"},` + entryOf(1) + `,` + entryOf(1) + `]}`, nil
	}
	c := newCatalog(t, newSource(s))
	if names(c) != "mcp.docs/s1" || len(c.Snapshot().Problems()) != 2 {
		t.Errorf("skills %s, problems %v; want the valid one, and a problem for each other", names(c), c.Snapshot().Problems())
	}
	s.served = false
	if _, err := serverskill.List(t.Context(), s, upstream.SkillLimits{}); !errors.Is(err, serverskill.ErrNotServed) || s.lists != 1 {
		t.Errorf("a server without the extension: %v, asked %d times", err, s.lists-1)
	}
}

func TestAllPagesAreListed(t *testing.T) {
	s := newServer()
	for i := range 25 {
		s.add(fmt.Sprintf("skill://s%d", i), fmt.Sprintf("s%d", i))
	}
	s.size = 10
	if c := newCatalog(t, newSource(s)); len(c.Snapshot().Skills()) != 25 || s.lists != 3 {
		t.Errorf("%d skills in %d pages", len(c.Snapshot().Skills()), s.lists)
	}
}

func TestDynamicSkillsAreNotOffered(t *testing.T) {
	s := newServer()
	s.list = func(string) (string, error) {
		return `{"skills":[{"uri":"skill://now/SKILL.md","frontmatter":{"name":"now","description":"d"},"resources":"dynamic"}]}`, nil
	}
	c := newCatalog(t, newSource(s))
	if names(c) != "" || len(c.Snapshot().Problems()) != 1 || !strings.Contains(c.Snapshot().Problems()[0].Message, "cannot be verified") {
		t.Errorf("skills %q, problems %v", names(c), c.Snapshot().Problems())
	}
}

func TestCacheIsHashedAtEachAccess(t *testing.T) {
	s := newServer()
	s.add("skill://pdf", "pdf", "a.md", "A")
	dir := filepath.Join(t.TempDir(), "docs")
	open := func() *catalog.Catalog {
		return newCatalog(t, serverskill.New(serverskill.Options{Label: "docs", Connector: s, Wait: true, Cache: &serverskill.Cache{Dir: dir}}))
	}
	c := open()
	if text, err := readFile(c, get(t, c, "mcp.docs/pdf"), "a.md"); text != "A" || err != nil {
		t.Fatal(text, err)
	}
	stored, err := filepath.Glob(filepath.Join(dir, "files", "*"))
	if err != nil || len(stored) != 1 || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(filepath.Base(stored[0])) {
		t.Fatalf("stored %v, %v; want one file, named by its hash", stored, err)
	}
	c = open() // another process
	e := get(t, c, "mcp.docs/pdf")
	if text, err := readFile(c, e, "a.md"); text != "A" || err != nil || len(s.reads) != 1 || s.lists != 1 || e.Server != "docs" {
		t.Errorf("after a restart: %q, %v; %d reads, %d lists, server %q", text, err, len(s.reads), s.lists, e.Server)
	}
	if err := os.WriteFile(stored[0], []byte("E"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = open()
	if text, err := readFile(c, get(t, c, "mcp.docs/pdf"), "a.md"); text != "A" || err != nil || len(s.reads) != 2 {
		t.Errorf("a changed file in the cache: %q, %v; %d reads", text, err, len(s.reads))
	}
	listing := filepath.Join(dir, "listing.json")
	data, err := os.ReadFile(listing)
	if err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(`"at":"[^"]*"`)
	if err := os.WriteFile(listing, at.ReplaceAll(data, []byte(`"at":"2026-01-01T00:00:00Z"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.add("skill://added", "added")
	if got := names(open()); got != "mcp.docs/added mcp.docs/pdf" || s.lists != 2 {
		t.Errorf("with an old listing: %s, %d lists", got, s.lists)
	}
	s.list = func(string) (string, error) { return "", errors.New("unreachable") }
	if err := os.WriteFile(listing, at.ReplaceAll(data, []byte(`"at":"2026-01-01T00:00:00Z"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := names(open()); got != "mcp.docs/pdf" || s.lists != 3 {
		t.Errorf("with an old listing and no server: %s, %d lists", got, s.lists)
	}
	if err := serverskill.RemoveCaches(filepath.Dir(dir), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cache of a removed server: %v", err)
	}
}

// A page that fails does not remove the skills that are not listed again.
func TestPartialListingRemovesNothing(t *testing.T) {
	s, dir := newServer(), filepath.Join(t.TempDir(), "docs")
	for _, name := range []string{"first", "gone", "second"} {
		s.add("skill://"+name, name)
	}
	open := func() string {
		return names(newCatalog(t, serverskill.New(serverskill.Options{Label: "docs", Connector: s, Wait: true, Cache: &serverskill.Cache{Dir: dir}})))
	}
	if got, want := open(), "mcp.docs/first mcp.docs/gone mcp.docs/second"; got != want {
		t.Fatalf("skills %s, want %s", got, want)
	}
	first := s.entry("skill://first/SKILL.md")
	s.list = func(cursor string) (string, error) {
		if cursor == "" {
			return `{"skills":[` + first + `],"nextCursor":"2"}`, nil
		}
		return "", errors.New("overloaded")
	}
	makeOld(t, filepath.Join(dir, "listing.json"), time.Hour)
	if got, want := open(), "mcp.docs/first mcp.docs/gone mcp.docs/second"; got != want {
		t.Errorf("after a partial listing: %s, want %s", got, want)
	}
	s.list = func(string) (string, error) { return `{"skills":[` + first + `]}`, nil }
	makeOld(t, filepath.Join(dir, "listing.json"), time.Hour)
	if got := open(); got != "mcp.docs/first" {
		t.Errorf("after a complete listing: %s, want the first skill", got)
	}
}

// A listing that the limits allow is stored, whatever characters it has.
func TestListingIsStoredWithoutGrowing(t *testing.T) {
	s, dir := newServer(), filepath.Join(t.TempDir(), "docs")
	text := strings.Repeat("<", 50_000)
	var all []string
	for i := range 260 {
		uri := fmt.Sprintf("skill://s%d/SKILL.md", i)
		all = append(all, fmt.Sprintf(`{"uri":%q,"frontmatter":{"name":"s%d","description":"d","x":%q},"resources":[%s]}`, uri, i, text, resource(uri, "x")))
	}
	s.list = func(string) (string, error) { return `{"skills":[` + strings.Join(all, ",") + `]}`, nil }
	for range 2 {
		l, err := serverskill.New(serverskill.Options{Label: "docs", Connector: s, Wait: true, Cache: &serverskill.Cache{Dir: dir}}).List(t.Context())
		if err != nil || len(l.Entries) != 260 {
			t.Fatalf("%d skills, %v", len(l.Entries), err)
		}
	}
	if s.lists != 1 {
		t.Errorf("listed %d times, want once, as the listing is stored", s.lists)
	}
}

// silent is a server that accepts connections, and never answers.
type silent struct{ dials int }

func (s *silent) Do(ctx context.Context, _ string, _ func(context.Context, serverskill.Conn) error) error {
	s.dials++
	<-ctx.Done()
	return context.Cause(ctx)
}

// A server that does not answer delays one command, for a short time, and not each
// of them. What it listed before is used.
func TestSilentServerDelaysOneCommand(t *testing.T) {
	serverskill.SetWaits(t, 20*time.Millisecond, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, stored := range map[string]bool{"first": false, "stored": true} {
		dir, down := filepath.Join(t.TempDir(), "docs"), &silent{}
		list := func(c serverskill.Connector) (catalog.Listing, error) {
			return serverskill.New(serverskill.Options{Label: "docs", Connector: c, Wait: true, Cache: &serverskill.Cache{Dir: dir}}).List(ctx)
		}
		want := 0
		if stored {
			s := newServer()
			s.add("skill://pdf", "pdf")
			if l, err := list(s); err != nil || len(l.Entries) != 1 {
				t.Fatal(l, err)
			}
			makeOld(t, filepath.Join(dir, "listing.json"), time.Hour)
			want = 1
		}
		for i := range 3 { // processes
			l, err := list(down)
			if ctx.Err() != nil || len(l.Entries) != want || (err != nil) != (!stored && i == 0) || down.dials != 1 {
				t.Errorf("%s: command %d: %d skills, %v after %d connections; want %d after one", name, i, len(l.Entries), err, down.dials, want)
			}
			if !stored && i > 0 && (len(l.Problems) != 1 || !strings.Contains(l.Problems[0].Message, "no answer within 20ms")) {
				t.Errorf("%s: problems %v, want the reason", name, l.Problems)
			}
		}
		makeOld(t, filepath.Join(dir, "failure.json"), time.Hour)
		s := newServer()
		s.add("skill://added", "added")
		if l, err := list(s); err != nil || len(l.Entries) != 1 || l.Entries[0].Name != "mcp.docs/added" {
			t.Errorf("%s: the server answers again: %v, %v", name, l, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "failure.json")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the failure is still stored: %v", name, err)
		}
	}
}

// makeOld changes the time in a file of the cache.
func makeOld(t *testing.T, file string, age time.Duration) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		at := regexp.MustCompile(`"at":"[^"]*"`)
		err = os.WriteFile(file, at.ReplaceAll(data, []byte(`"at":"`+time.Now().Add(-age).UTC().Format(time.RFC3339)+`"`)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestNestedSkillsAreFiles(t *testing.T) {
	s := newServer()
	nested := "---\nname: inner\ndescription: Another\nallowed-tools: Bash\n---\nInner.\n"
	s.add("skill://pdf/inner", "inner")
	s.add("skill://pdf", "pdf", "inner/SKILL.md", nested)
	s.hidden["skill://pdf/inner/SKILL.md"] = true
	c := newCatalog(t, newSource(s))
	if got := names(c); got != "mcp.docs/pdf" {
		t.Errorf("listed %s", got)
	}
	outer := get(t, c, "mcp.docs/pdf")
	if text, err := readFile(c, outer, "inner/SKILL.md"); text != nested || err != nil {
		t.Errorf("a nested SKILL.md is a file: %q, %v", text, err)
	}
	inner := get(t, c, "mcp.docs/pdf/inner") // its own entry, with its own name for approvals
	before, _ := c.Digest(t.Context(), outer)
	if digest, err := c.Digest(t.Context(), inner); err != nil || digest == before || inner.Key() == outer.Key() {
		t.Errorf("digest of the nested skill %s, %v", digest, err)
	}
}

func TestEqualNamesAreShown(t *testing.T) {
	s, other := newServer(), newServer()
	s.add("skill://pdf", "pdf")
	other.add("skill://pdf", "pdf")
	other.add("skill://single", "single")
	c := newCatalog(t, newSource(s), serverskill.New(serverskill.Options{Label: "two", Connector: other, Wait: true}), catalog.NewFS("user", catalog.User, os.DirFS(writeSkill(t, "pdf"))))
	var problems []string
	for _, p := range c.Snapshot().Problems() {
		problems = append(problems, p.Message)
	}
	if got, want := strings.Join(problems, "; "), "mcp.docs/pdf has the name of user/pdf; mcp.two/pdf has the name of user/pdf"; got != want {
		t.Errorf("problems %s, want %s", got, want)
	}
	var explained []string
	for _, candidate := range c.Snapshot().Explain("pdf") {
		explained = append(explained, fmt.Sprint(candidate.Name, " ", candidate.Chosen))
	}
	if got, want := strings.Join(explained, "; "), "pdf true; mcp.docs/pdf false; mcp.two/pdf false"; got != want {
		t.Errorf("explained as %s, want %s", got, want)
	}
	_, err := c.Snapshot().Get("singel")
	if !strings.Contains(fmt.Sprint(err), "mcp.two/single") {
		t.Errorf("error %v, want a suggestion", err)
	}
}

// A server that no longer declares the extension is asked neither for skills nor for
// files, even if its listing is stored.
func TestServerWithoutTheExtensionIsAskedNothing(t *testing.T) {
	s := newServer()
	s.add("skill://pdf", "pdf", "a.md", "A")
	s.add("skill://hidden", "hidden")
	s.hidden["skill://hidden/SKILL.md"] = true
	src := newSource(s)
	c := newCatalog(t, src)
	e := get(t, c, "mcp.docs/pdf")
	s.served = false
	if text, err := readFile(c, e, "a.md"); !errors.Is(err, serverskill.ErrNotServed) || len(s.reads) != 0 {
		t.Errorf("read %q, %v after %v", text, err, s.reads)
	}
	if err := src.Find(t.Context(), "hidden"); !errors.Is(err, serverskill.ErrNotServed) {
		t.Errorf("find: %v", err)
	}
	if _, err := serverskill.Get(t.Context(), s, pdfURI); !errors.Is(err, serverskill.ErrNotServed) {
		t.Errorf("get: %v", err)
	}
}

// A changed skill is not added to the listing if the server does not list it. Memory
// use is bounded even if a model names many URIs.
func TestFoundSkillsAreNotListed(t *testing.T) {
	s, dir := newServer(), filepath.Join(t.TempDir(), "docs")
	s.add("skill://pdf", "pdf")
	for i := range 1100 {
		s.add(fmt.Sprintf("skill://h%d", i), fmt.Sprintf("h%d", i), "a.md", "A")
		s.hidden[fmt.Sprintf("skill://h%d/SKILL.md", i)] = true
	}
	open := func() *serverskill.Source {
		return serverskill.New(serverskill.Options{Label: "docs", Connector: s, Wait: true, Cache: &serverskill.Cache{Dir: dir}})
	}
	src := open()
	c := newCatalog(t, src)
	s.files["skill://h1/a.md"] = "B"
	e := get(t, c, "mcp.docs/h1")
	s.files["skill://h1/a.md"] = "C"
	if _, err := readFile(c, e, "a.md"); !errors.As(err, new(*serverskill.ChangedError)) {
		t.Fatalf("read of a changed file: %v", err)
	}
	if text, err := readFile(c, e, "a.md"); text != "C" || err != nil {
		t.Errorf("read of the new version: %q, %v", text, err)
	}
	if got := names(newCatalog(t, open())); got != "mcp.docs/pdf" {
		t.Errorf("another process lists %s", got)
	}
	for i := range 1100 {
		if err := src.Find(t.Context(), fmt.Sprintf("h%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := src.List(t.Context())
	if err != nil || len(l.Entries) != 1001 {
		t.Errorf("%d skills are known, %v; want the listed one and 1,000", len(l.Entries), err)
	}
}

// The number of files in a cache is bounded, too, and temporary files that a crash
// left are removed.
func TestCacheFilesAreBounded(t *testing.T) {
	s, dir := newServer(), filepath.Join(t.TempDir(), "docs")
	s.add("skill://pdf", "pdf", "a.md", "A")
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		if err := os.WriteFile(filepath.Join(files, fmt.Sprintf("%064x", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".left", ".new"} {
		if err := os.WriteFile(filepath.Join(files, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	day := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(filepath.Join(files, ".left"), day, day); err != nil {
		t.Fatal(err)
	}
	c := newCatalog(t, serverskill.New(serverskill.Options{Label: "docs", Connector: s, Wait: true, Cache: &serverskill.Cache{Dir: dir}}))
	if text, err := readFile(c, get(t, c, "mcp.docs/pdf"), "a.md"); text != "A" || err != nil {
		t.Fatal(text, err)
	}
	all, err := os.ReadDir(files)
	if err != nil || len(all) > 12_000 {
		t.Errorf("%d files in the cache, %v; want half of the limit", len(all), err)
	}
	if _, err := os.Stat(filepath.Join(files, ".left")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file that a crash left: %v", err)
	}
	if _, err := os.Stat(filepath.Join(files, ".new")); err != nil {
		t.Errorf("the file that another process writes: %v", err)
	}
}

// A server with many skills that cannot be used causes a bounded number of problems.
func TestUnusableSkillsAreSummarized(t *testing.T) {
	s := newServer()
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprintf(`{"uri":"skill://%s/s%d/SKILL.md","frontmatter":{"name":"s%d","description":"d"},"resources":"dynamic"}`, strings.Repeat("x", 700), i, i))
	}
	s.list = func(string) (string, error) { return `{"skills":[` + strings.Join(all, ",") + `]}`, nil }
	problems := newCatalog(t, newSource(s)).Snapshot().Problems()
	if n := len(problems); n != 41 || !strings.Contains(problems[n-1].Message, "460 more") {
		t.Errorf("%d problems, the last %v; want 40 and a summary", n, problems[n-1].Message)
	}
	for _, p := range problems {
		if len(p.Message) > 400 {
			t.Errorf("problem of %d bytes: %.100s", len(p.Message), p.Message)
		}
	}
}
