package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/remote/remotetest"
	"github.com/loadout-dev/loadout/skill"
)

func skillDoc(name string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + " things.\n---\n\n# " + name + "\n"
}

// shelf is two skills, one of one file and one of several.
func shelf() fstest.MapFS {
	return fstest.MapFS{
		"memo/SKILL.md":      {Data: []byte(skillDoc("memo"))},
		"pdf/SKILL.md":       {Data: []byte(skillDoc("pdf"))},
		"pdf/scripts/run.sh": {Data: []byte("#!/bin/sh\n")},
		"pdf/a b#%.txt":      {Data: []byte("x")},
	}
}

// newClient returns a client without credentials of the machine, whose download
// directory must be empty at the end.
func newClient(t *testing.T, o remote.Options) *remote.Client {
	t.Helper()
	if o.Credential == nil {
		o.Credential = func(context.Context, string) (*remote.Credential, error) { return nil, nil }
	}
	o.TempDir = t.TempDir()
	t.Cleanup(func() {
		left, err := os.ReadDir(o.TempDir)
		if err != nil || len(left) > 0 {
			t.Errorf("%d files were left, %v", len(left), err)
		}
	})
	return remote.New(&o)
}

func indexAt(url string) remote.Location { return remote.Location{Kind: remote.Index, URL: url} }

func namesOf(o *remote.Collection) []string {
	var out []string
	for _, s := range o.Skills {
		out = append(out, s.Name)
	}
	return out
}

func TestIndexForms(t *testing.T) {
	for _, older := range []bool{false, true} {
		t.Run(fmt.Sprintf("older %t", older), func(t *testing.T) {
			x := remotetest.NewIndex(t, shelf())
			if older {
				x.Older()
			}
			o, err := newClient(t, remote.Options{}).Open(t.Context(), indexAt(x.URL))
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			if diff := cmp.Diff([]string{"memo", "pdf"}, namesOf(o)); diff != "" || len(o.Problems) > 0 {
				t.Fatalf("%v\n%s", o.Problems, diff)
			}
			for _, p := range x.Requests() {
				if !strings.HasSuffix(p, "/index.json") {
					t.Errorf("a look asked for %s", p)
				}
			}
			for _, s := range o.Skills {
				if s.Description != "Does "+s.Name+" things." || older == strings.HasPrefix(s.Digest, "sha256:") {
					t.Errorf("%+v", s)
				}
				b, err := o.OpenSkill(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := skill.ReadManifest(b.FS)
				if err != nil {
					t.Fatal(err)
				}
				sub, _ := fs.Sub(shelf(), s.Name)
				want, _, _ := skill.ReadManifest(sub)
				if got.Digest() != want.Digest() || b.Folder != s.Name {
					t.Errorf("%s in %q: %s", s.Name, b.Folder, cmp.Diff(want, got))
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// An index is found by its site, a path of it, its directory, and by itself.
func TestIndexAddresses(t *testing.T) {
	x := remotetest.NewIndex(t, shelf())
	older := remotetest.NewIndex(t, shelf())
	older.Older()
	for _, tt := range []struct {
		url  string
		want []string
	}{
		{x.URL, []string{"memo", "pdf"}},
		{x.URL + "/", []string{"memo", "pdf"}},
		{x.URL + "/docs/intro/", []string{"memo", "pdf"}},
		{x.URL + "/.well-known/agent-skills", []string{"memo", "pdf"}},
		{x.URL + "/.well-known/agent-skills/index.json", []string{"memo", "pdf"}},
		{x.URL + "/.well-known/agent-skills/pdf", []string{"pdf"}},
		{older.URL, []string{"memo", "pdf"}},
		{older.URL + "/.well-known/skills/", []string{"memo", "pdf"}},
		{older.URL + "/.well-known/skills/pdf/SKILL.md", []string{"pdf"}},
		{older.URL + "/.well-known/skills/none", nil},
		{older.URL + "/.well-known/agent-skills/", nil},
	} {
		o, err := newClient(t, remote.Options{}).Open(t.Context(), indexAt(tt.url))
		if tt.want == nil {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", tt.url, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
		} else if diff := cmp.Diff(tt.want, namesOf(o)); diff != "" {
			t.Errorf("%s: %s", tt.url, diff)
		}
	}
}

// A site that answers everything with a page publishes nothing.
func TestHTMLPageIsNotAnIndex(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<!doctype html><p>Welcome") }))
	defer s.Close()
	_, err := newClient(t, remote.Options{}).Open(t.Context(), indexAt(s.URL))
	if notFound, ok := errors.AsType[*remote.NotFoundError](err); !ok || !strings.Contains(notFound.Hint, "page") {
		t.Errorf("%v", err)
	}
}

func TestIndexWithWrongDigests(t *testing.T) {
	x := remotetest.NewIndex(t, shelf())
	x.Lie("memo")
	x.Lie("pdf")
	o, err := newClient(t, remote.Options{}).Open(t.Context(), indexAt(x.URL))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range o.Skills {
		_, err := o.OpenSkill(t.Context(), s)
		lie, ok := errors.AsType[*remote.DigestError](err)
		if !ok || lie.Name != s.Name || lie.Want != s.Digest || lie.Got == s.Digest {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// One bad entry is a problem that names it, and the others stay.
func TestBadIndexEntries(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	entry := func(change func(remotetest.IndexEntry)) remotetest.IndexEntry {
		e := remotetest.IndexEntry{"name": "x", "type": "skill-md", "description": "d", "url": "/x/SKILL.md", "digest": digest}
		change(e)
		return e
	}
	set := func(k string, v any) remotetest.IndexEntry { return entry(func(e remotetest.IndexEntry) { e[k] = v }) }
	without := func(k string) remotetest.IndexEntry {
		return entry(func(e remotetest.IndexEntry) { delete(e, k) })
	}
	for _, tt := range []struct {
		what, code, message string
		older               bool
		entry               remotetest.IndexEntry
	}{
		{"a name with a path", "bad-name", "lower-case", false, set("name", "../x")},
		{"a name that is a path", "bad-name", "lower-case", false, set("name", "/etc")},
		{"a name in capitals", "bad-name", "lower-case", false, set("name", "PDF")},
		{"a name with colours", "bad-name", "lower-case", false, set("name", "\x1b[31mx")},
		{"no name", "bad-name", "lower-case", false, without("name")},
		{"a name that is a number", "bad-entry", "name", false, set("name", 7)},
		{"a name twice", "duplicate-name", "duplicate of an earlier entry", false, set("name", "pdf")},
		{"an unknown type", "bad-entry", `"exe"`, false, set("type", "exe")},
		{"no type", "bad-entry", "type", false, without("type")},
		{"no digest", "bad-entry", "digest is missing", false, without("digest")},
		{"a short digest", "bad-entry", "64 hex", false, set("digest", "sha256:00")},
		{"another digest", "bad-entry", "64 hex", false, set("digest", "md5:"+strings.Repeat("0", 64))},
		{"no url", "bad-entry", "url is missing", false, without("url")},
		{"a url of a file", "bad-entry", "https", false, set("url", "file:///etc/passwd")},
		{"a url of a script", "bad-entry", "https", false, set("url", "javascript:alert(1)")},
		{"a url that cannot be read", "bad-entry", "url is invalid", false, set("url", "https://exa mple.com/%zz")},
		{"a url with a password", "bad-entry", "password", false, set("url", "https://u:p@example.com/x")},
		{"a url that anybody can change", "bad-entry", "https", false, set("url", "http://example.com/x")},
		{"a url without a host", "bad-entry", "no host", false, set("url", "https:///x")},
		{"a url that is long", "bad-entry", "too long", false, set("url", "/"+strings.Repeat("x", 5000))},
		{"no files", "bad-entry", "list of files is missing", true, remotetest.IndexEntry{"name": "x", "description": "d"}},
		{"files without SKILL.md", "bad-entry", "SKILL.md", true, remotetest.IndexEntry{"name": "x", "files": []string{"a"}}},
		{"a file outside", "bad-entry", "..", true, remotetest.IndexEntry{"name": "x", "files": []string{"SKILL.md", "../pdf/SKILL.md"}}},
		{"a file at the root", "bad-entry", "absolute", true, remotetest.IndexEntry{"name": "x", "files": []string{"SKILL.md", "/etc/passwd"}}},
		{"files that collide", "bad-entry", "collides", true, remotetest.IndexEntry{"name": "x", "files": []string{"SKILL.md", "a", "A"}}},
		{"too many files", "bad-entry", "more than 512", true, remotetest.IndexEntry{"name": "x", "files": append([]string{"SKILL.md"}, make([]string, 600)...)}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			x := remotetest.NewIndex(t, shelf())
			if tt.older {
				x.Older()
			}
			x.Add(tt.entry)
			o, err := newClient(t, remote.Options{}).Open(t.Context(), indexAt(x.URL))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"memo", "pdf"}, namesOf(o)); diff != "" {
				t.Error(diff)
			}
			if len(o.Problems) != 1 || tt.what != "too many files" && (o.Problems[0].Code != tt.code || !strings.Contains(o.Problems[0].Message, tt.message)) {
				t.Errorf("problems %v", o.Problems)
			}
			for _, p := range o.Problems {
				if strings.ContainsRune(p.String(), 0x1b) {
					t.Errorf("%q", p.String())
				}
			}
		})
	}
}

func TestInvalidIndexDocuments(t *testing.T) {
	for document, want := range map[string]string{
		"":                "JSON",
		"{":               "JSON",
		"[]":              "JSON",
		"{}":              `required list "skills" is missing`,
		`{"skills":null}`: `required list "skills" is missing`,
		`{"skills":{}}`:   "JSON",
		`{"$schema":"https://schemas.agentskills.io/discovery/9.0.0/schema.json","skills":[]}`: "0.2.0",
		`{"skills":` + strings.Repeat("[", 20_000):                                             "JSON",
		`{"skills":[]}` + strings.Repeat(" ", 4<<20):                                           "exceeds the limit of 4194304 bytes",
	} {
		x := remotetest.NewIndex(t, shelf())
		x.Document([]byte(document))
		_, err := newClient(t, remote.Options{}).Open(t.Context(), indexAt(x.URL))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", document, err, want)
		}
	}
}

func TestIndexWithTooManyEntries(t *testing.T) {
	x := remotetest.NewIndex(t, shelf())
	o, err := newClient(t, remote.Options{Limits: remote.Limits{Skills: 1}}).Open(t.Context(), indexAt(x.URL))
	if err != nil || len(o.Skills) != 1 || len(o.Problems) != 1 || o.Problems[0].Code != "too-many-skills" {
		t.Errorf("%v, %v", o, err)
	}
}

func TestIndexWithWrongSkillName(t *testing.T) {
	files := shelf()
	files["memo/SKILL.md"] = &fstest.MapFile{Data: []byte(skillDoc("pdf"))}
	files["plain/SKILL.md"] = &fstest.MapFile{Data: []byte("---\ndescription: It has no name.\n---\n")}
	files["inner/x/SKILL.md"] = &fstest.MapFile{Data: []byte(skillDoc("inner"))}
	files["inner/SKILL.md"] = &fstest.MapFile{Data: []byte("no frontmatter")}
	x := remotetest.NewIndex(t, files)
	o, err := newClient(t, remote.Options{}).Open(t.Context(), indexAt(x.URL))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memo": `name mismatch: memo in the index, "pdf" in SKILL.md`, "plain": "", "inner": "inner"} {
		b, err := o.OpenSkill(t.Context(), remote.Skill{Dir: name})
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if err := b.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if _, refused := errors.AsType[*skill.RefusedError](err); !refused || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := o.OpenSkill(t.Context(), remote.Skill{Dir: "none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestMissingArtifacts(t *testing.T) {
	for what, tt := range map[string]struct {
		make func(*remotetest.Index)
		is   func(error) bool
	}{
		"cut off": {func(x *remotetest.Index) { x.Cut(20) }, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"endless": {func(x *remotetest.Index) { x.Endless() }, func(err error) bool {
			_, ok := errors.AsType[*remote.TooLargeError](err)
			return ok
		}},
		"a loop": {func(x *remotetest.Index) {
			for _, p := range []string{"pdf.tar.gz", "memo/SKILL.md", "pdf/SKILL.md"} {
				for _, dir := range []string{"/.well-known/agent-skills/", "/.well-known/skills/"} {
					x.Redirect(dir+p, dir+p)
				}
			}
		}, func(err error) bool { return strings.Contains(err.Error(), "redirects") }},
		"private": {func(x *remotetest.Index) {
			for _, p := range []string{"pdf.tar.gz", "memo/SKILL.md", "pdf/SKILL.md"} {
				for _, dir := range []string{"/.well-known/agent-skills/", "/.well-known/skills/"} {
					x.Redirect(dir+p, "http://10.0.0.1/x")
				}
			}
		}, func(err error) bool { return err != nil }},
	} {
		for _, older := range []bool{false, true} {
			x := remotetest.NewIndex(t, shelf())
			if older {
				x.Older()
			}
			tt.make(x)
			o, err := newClient(t, remote.Options{Limits: remote.Limits{Download: 12 << 20}}).Open(t.Context(), indexAt(x.URL))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range o.Skills {
				if _, err := o.OpenSkill(t.Context(), s); err == nil || !tt.is(err) {
					t.Errorf("%s, older %t: %s: %v", what, older, s.Name, err)
				}
			}
		}
	}
}

func TestPrivateIndex(t *testing.T) {
	x := remotetest.NewIndex(t, shelf())
	x.Private("s3cret")
	client := func(password string) *remote.Client {
		return newClient(t, remote.Options{Credential: func(_ context.Context, host string) (*remote.Credential, error) {
			if host != x.Host() {
				t.Errorf("asked for %s", host)
			}
			if password == "" {
				return nil, nil
			}
			return &remote.Credential{Password: password}, nil
		}})
	}
	o, err := client("s3cret").Open(t.Context(), indexAt(x.URL))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range o.Skills {
		b, err := o.OpenSkill(t.Context(), s)
		if err != nil {
			t.Error(err)
		} else if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	for password, shown := range map[string]bool{"": false, "wr0ng": true} {
		_, err := client(password).Open(t.Context(), indexAt(x.URL))
		denied, ok := errors.AsType[*remote.DeniedError](err)
		if !ok || denied.CredentialSent != shown || denied.Host != x.Host() || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("%q: %v", password, err)
		}
	}
}

func TestLegacyIndexFilesHaveTotalLimit(t *testing.T) {
	files := fstest.MapFS{"pdf/SKILL.md": {Data: []byte(skillDoc("pdf"))}}
	for i := range 5 {
		files[fmt.Sprintf("pdf/%d", i)] = &fstest.MapFile{Data: make([]byte, 1000)}
	}
	x := remotetest.NewIndex(t, files)
	x.Older()
	c := newClient(t, remote.Options{Limits: remote.Limits{Skill: skill.Limits{UnpackedBytes: 3000}}})
	o, err := c.Open(t.Context(), indexAt(x.URL))
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.OpenSkill(t.Context(), o.Skills[0])
	if _, ok := errors.AsType[*remote.TooLargeError](err); !ok {
		t.Errorf("%v", err)
	}
	if asked := x.Requests(); slices.Contains(asked, "/.well-known/skills/pdf/4") {
		t.Errorf("went on: %v", asked)
	}
}
