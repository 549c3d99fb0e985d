package remotetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Directories for published indexes.
const (
	wellKnown      = "/.well-known/agent-skills/"
	olderWellKnown = "/.well-known/skills/"
)

// An Index is a site that publishes skills in an index. The index has the
// current format unless [Index.Older] is called. Its methods are safe for
// concurrent use.
type Index struct {
	URL string // HTTP address of the site

	server *httptest.Server

	mu       sync.Mutex
	site     site
	requests []string
}

// site holds an index's content and how to serve it.
type site struct {
	t         testing.TB
	files     fs.FS
	older     bool
	tokens    []string
	redirects map[string]string
	cut       int64
	endless   bool
	lies      map[string]bool // names whose artifacts do not match their digests
	extra     []IndexEntry    // additional entries
	document  []byte          // replaces the index, unless it is nil
}

// IndexEntry is an index entry with arbitrary fields, for tests of invalid
// entries.
type IndexEntry = map[string]any

// NewIndex starts a site that publishes the skills in files until the test
// ends. Each top-level directory with a SKILL.md is a skill.
func NewIndex(t testing.TB, files fs.FS) *Index {
	t.Helper()
	x := &Index{site: site{t: t, files: files, redirects: map[string]string{}, lies: map[string]bool{}}}
	x.server = httptest.NewServer(http.HandlerFunc(x.serve))
	t.Cleanup(x.server.Close)
	x.URL = x.server.URL
	return x
}

// Host returns the host and port of the server.
func (x *Index) Host() string { return strings.TrimPrefix(x.server.URL, "http://") }

func (x *Index) change(f func(*site)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f(&x.site)
}

// Publish replaces the published skills.
func (x *Index) Publish(files fs.FS) { x.change(func(s *site) { s.files = files }) }

// Older makes the site publish the older format: lists of files without digests.
func (x *Index) Older() { x.change(func(s *site) { s.older = true }) }

// Add appends an entry to the index unchanged.
func (x *Index) Add(e IndexEntry) { x.change(func(s *site) { s.extra = append(s.extra, e) }) }

// Document replaces the index with these bytes.
func (x *Index) Document(src []byte) { x.change(func(s *site) { s.document = src }) }

// Lie makes the artifact of a skill differ from its digest.
func (x *Index) Lie(name string) { x.change(func(s *site) { s.lies[name] = true }) }

// Private makes the server require one of these tokens, as the password with
// any user name or as a bearer token. Without tokens, it makes the server
// public again.
func (x *Index) Private(tokens ...string) { x.change(func(s *site) { s.tokens = tokens }) }

// Redirect redirects requests for a path to another address.
func (x *Index) Redirect(from, to string) { x.change(func(s *site) { s.redirects[from] = to }) }

// Cut makes the server close a connection after this many bytes of an artifact.
// 0 means never.
func (x *Index) Cut(after int64) { x.change(func(s *site) { s.cut = after }) }

// Endless makes artifacts continue with zeros until the client stops reading.
func (x *Index) Endless() { x.change(func(s *site) { s.endless = true }) }

// Requests returns the paths requested so far.
func (x *Index) Requests() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.requests)
}

func (x *Index) serve(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	x.requests = append(x.requests, r.URL.Path)
	now := x.site
	now.redirects, now.lies = maps.Clone(now.redirects), maps.Clone(now.lies)
	x.mu.Unlock()
	now.serve(w, r)
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	if to, ok := s.redirects[r.URL.Path]; ok {
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	if !s.welcome(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "who is there?", http.StatusUnauthorized)
		return
	}
	switch p := r.URL.Path; {
	case s.document != nil && path.Base(p) == "index.json":
		w.Write(s.document)
	case !s.older && p == wellKnown+"index.json":
		s.write(w, map[string]any{"$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json", "skills": s.entries()})
	case s.older && p == olderWellKnown+"index.json":
		s.write(w, map[string]any{"skills": s.entries()})
	case s.older && strings.HasPrefix(p, olderWellKnown):
		name := strings.TrimPrefix(p, olderWellKnown)
		src, err := fs.ReadFile(s.files, name)
		s.artifact(w, r, path.Dir(name), src, err)
	case !s.older && strings.HasPrefix(p, wellKnown):
		name, _, _ := strings.Cut(strings.TrimPrefix(p, wellKnown), "/")
		name = strings.TrimSuffix(name, ".tar.gz")
		src, _, err := s.pack(name)
		s.artifact(w, r, name, src, err)
	default:
		http.NotFound(w, r)
	}
}

func (s *site) welcome(r *http.Request) bool {
	if len(s.tokens) == 0 {
		return true
	}
	_, password, _ := r.BasicAuth()
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, t := range s.tokens {
		if t == password || t == bearer {
			return true
		}
	}
	return false
}

func (s *site) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.t.Errorf("write index: %v", err)
	}
}

// artifact serves a skill's artifact.
func (s *site) artifact(w http.ResponseWriter, r *http.Request, name string, src []byte, err error) {
	switch {
	case err != nil:
		http.NotFound(w, r)
	case s.endless:
		w.Write(src)
		zeros := make([]byte, 64<<10)
		for {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	case s.cut > 0 && s.cut < int64(len(src)):
		w.Header().Set("Content-Length", strconv.Itoa(len(src)))
		w.Write(src[:s.cut])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	case s.lies[name]:
		w.Write(append(bytes.Clone(src), " and more"...))
	default:
		w.Write(src)
	}
}

func (s *site) entries() []IndexEntry {
	dirs, err := fs.ReadDir(s.files, ".")
	if err != nil {
		s.t.Errorf("publish skills: %v", err)
	}
	out := []IndexEntry{}
	for _, d := range dirs {
		doc, err := fs.ReadFile(s.files, d.Name()+"/SKILL.md")
		if err != nil {
			continue
		}
		e := IndexEntry{"name": d.Name(), "description": description(doc)}
		if s.older {
			_, e["files"], err = s.pack(d.Name())
		} else {
			err = s.addArtifact(e, d.Name())
		}
		if err != nil {
			s.t.Errorf("publish %s: %v", d.Name(), err)
		}
		out = append(out, e)
	}
	return append(out, s.extra...)
}

// addArtifact adds the URL and digest of a skill's artifact to its entry.
func (s *site) addArtifact(e IndexEntry, name string) error {
	src, files, err := s.pack(name)
	sum := sha256.Sum256(src)
	e["digest"] = "sha256:" + hex.EncodeToString(sum[:])
	e["type"], e["url"] = "archive", name+".tar.gz"
	if len(files) == 1 {
		e["type"], e["url"] = "skill-md", wellKnown+name+"/SKILL.md"
	}
	return err
}

// description returns the description line of a SKILL.md.
func description(doc []byte) string {
	for line := range strings.Lines(string(doc)) {
		if d, ok := strings.CutPrefix(line, "description:"); ok {
			return strings.TrimSpace(d)
		}
	}
	return ""
}

// pack returns a skill's artifact and the paths of its files. The artifact is
// SKILL.md if there are no other files, and an archive otherwise.
func (s *site) pack(name string) ([]byte, []string, error) {
	sub, err := fs.Sub(s.files, name)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	var files []string
	var last []byte
	err = fs.WalkDir(sub, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if last, err = fs.ReadFile(sub, p); err != nil {
			return err
		}
		files = append(files, p)
		if err := tw.WriteHeader(&tar.Header{Name: p, Mode: 0o644, Size: int64(len(last))}); err != nil {
			return err
		}
		_, err = tw.Write(last)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if err := tw.Close(); err != nil {
		return nil, nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, nil, err
	}
	if len(files) == 1 {
		return last, files, nil
	}
	return b.Bytes(), files, nil
}
