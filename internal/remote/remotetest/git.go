// Package remotetest provides skill sources for tests: Git repositories and
// published indexes on loopback addresses. They can be made to misbehave.
package remotetest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Git is a repository and a server for it. Its methods are safe for
// concurrent use. Methods that change the repository fail the test if git
// fails.
type Git struct {
	URL string // HTTP address of the repository
	Dir string // bare repository on this machine

	t      testing.TB
	git    string
	server *httptest.Server

	mu        sync.Mutex
	tokens    []string          // accepted passwords; empty accepts everybody
	forbids   bool              // whether all requests are answered with 403
	redirects map[string]string // by path
	cut       int64             // bytes after which a response ends; 0 means no limit
	dumb      bool
	old       bool
	requests  []string
	commits   int
}

// NewGit creates an empty repository with the branch main and serves it until
// the test ends. The test is skipped if git is missing.
func NewGit(t testing.TB) *Git {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git on this machine")
	}
	root := t.TempDir()
	g := &Git{Dir: filepath.Join(root, "repo.git"), t: t, git: program, redirects: map[string]string{}}
	g.run("", "init", "--quiet", "--bare", "--template=", "--initial-branch=main", g.Dir)
	backend := &cgi.Handler{
		Path:       program,
		Args:       []string{"http-backend"},
		Env:        []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull},
		InheritEnv: []string{"PATH"},
		Stderr:     io.Discard,
	}
	files := http.FileServer(http.Dir(root))
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, backend, files) }))
	t.Cleanup(g.server.Close)
	g.URL = g.server.URL + "/repo.git"
	return g
}

// Host returns the host and port of the server.
func (g *Git) Host() string { return strings.TrimPrefix(g.server.URL, "http://") }

// Path returns the URL of a path on the server.
func (g *Git) Path(p string) string { return g.server.URL + p }

func (g *Git) serve(w http.ResponseWriter, r *http.Request, backend, files http.Handler) {
	g.mu.Lock()
	g.requests = append(g.requests, r.Method+" "+r.URL.RequestURI())
	_, password, _ := r.BasicAuth()
	welcome := len(g.tokens) == 0 || slices.Contains(g.tokens, password)
	forbids, cut, dumb, to := g.forbids, g.cut, g.dumb, g.redirected(r)
	if g.old {
		r.Header.Del("Git-Protocol")
	}
	g.mu.Unlock()
	switch {
	case to != "":
		http.Redirect(w, r, to, http.StatusMovedPermanently)
	case forbids:
		http.Error(w, "forbidden", http.StatusForbidden)
	case !welcome:
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "who is there?", http.StatusUnauthorized)
	case dumb:
		files.ServeHTTP(w, r)
	case cut > 0 && r.Method == http.MethodPost:
		backend.ServeHTTP(&cutWriter{ResponseWriter: w, left: cut}, r)
	default:
		backend.ServeHTTP(w, r)
	}
}

// redirected returns the redirect target of a request. The caller must hold mu.
func (g *Git) redirected(r *http.Request) string {
	for from, to := range g.redirects {
		if rest, ok := strings.CutPrefix(r.URL.RequestURI(), from); ok {
			return to + rest
		}
	}
	return ""
}

// cutWriter is a response writer that closes the connection after a number of
// bytes.
type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if int64(len(p)) <= c.left {
		c.left -= int64(len(p))
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	if f, ok := c.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

func (g *Git) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// Private makes the server require one of these tokens as the password, with
// any user name. Without tokens, it makes the server public again.
func (g *Git) Private(tokens ...string) { g.change(func() { g.tokens = tokens }) }

// Forbid makes the server answer all requests with status 403. If on is false,
// the server answers normally again.
func (g *Git) Forbid(on bool) { g.change(func() { g.forbids = on }) }

// Redirect redirects requests whose path starts with prefix to the address
// target, followed by the rest of the path.
func (g *Git) Redirect(prefix, target string) { g.change(func() { g.redirects[prefix] = target }) }

// Cut makes the server close a connection after this many bytes of a fetch. 0
// means never.
func (g *Git) Cut(after int64) { g.change(func() { g.cut = after }) }

// Dumb makes the server serve the repository as plain files, without Git's
// protocol.
func (g *Git) Dumb() {
	g.run("", "--git-dir="+g.Dir, "update-server-info")
	g.change(func() { g.dumb = true })
}

// Old limits the server to version 0 of Git's protocol, which cannot fetch a commit by
// its hash.
func (g *Git) Old() { g.change(func() { g.old = true }) }

// Requests returns all requests so far, such as "GET
// /repo.git/info/refs?service=…".
func (g *Git) Requests() (out []string) {
	g.change(func() { out = slices.Clone(g.requests) })
	return out
}

// Change describes a commit to create.
type Change struct {
	Branch     string            // default main
	Files      map[string]string // content of regular files by path
	Programs   map[string]string // content of executable files by path
	Links      map[string]string // target by path
	Submodules map[string]string // commit by path
	Remove     []string          // files and directories to remove first
	// Anew starts the branch without its previous commits and files, like a forced push.
	Anew bool
}

// Commit adds files to branch main and returns the commit. files maps paths to
// contents.
func (g *Git) Commit(files map[string]string) string { return g.Push(Change{Files: files}) }

// Push creates a commit and returns its hash.
func (g *Git) Push(c Change) string {
	g.t.Helper()
	branch := c.Branch
	if branch == "" {
		branch = "main"
	}
	ref := "refs/heads/" + branch
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commits++
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit %s\ncommitter A Test <test@example.com> %d +0000\ndata 6\ncommit\n", ref, 1_700_000_000+g.commits)
	if !c.Anew {
		if parent := g.resolve(ref); parent != "" {
			fmt.Fprintf(&in, "from %s\n", parent)
		}
	}
	for _, p := range c.Remove {
		fmt.Fprintf(&in, "D %s\n", p)
	}
	put := func(mode string, files map[string]string) {
		for _, p := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, p, len(files[p]), files[p])
		}
	}
	put("100644", c.Files)
	put("100755", c.Programs)
	put("120000", c.Links)
	for _, p := range slices.Sorted(maps.Keys(c.Submodules)) {
		fmt.Fprintf(&in, "M 160000 %s %s\n", c.Submodules[p], p)
	}
	fmt.Fprint(&in, "\n")
	g.run(in.String(), "--git-dir="+g.Dir, "fast-import", "--quiet", "--force")
	return g.resolve(ref)
}

// Tag creates or moves a lightweight tag.
func (g *Git) Tag(name, commit string) { g.Ref("refs/tags/"+name, commit) }

// Annotate creates or moves an annotated tag.
func (g *Git) Annotate(name, commit string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "-c", "user.name=A Test", "-c", "user.email=test@example.com", "tag", "--force", "--annotate", "--message", name, name, commit)
}

// Ref creates or moves a ref, given its full name.
func (g *Git) Ref(name, commit string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "update-ref", name, commit)
}

// Delete removes a ref, given its full name.
func (g *Git) Delete(name string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "update-ref", "-d", name)
}

// Head makes HEAD point to a branch, which need not exist.
func (g *Git) Head(branch string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "symbolic-ref", "HEAD", "refs/heads/"+branch)
}

// Config sets a value in the repository's configuration.
func (g *Git) Config(name, value string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "config", name, value)
}

// resolve returns the commit of a ref, or "".
func (g *Git) resolve(ref string) string {
	out, err := g.command("", "--git-dir="+g.Dir, "rev-parse", "--verify", "--quiet", ref).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (g *Git) run(in string, args ...string) {
	g.t.Helper()
	if out, err := g.command(in, args...).CombinedOutput(); err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// command returns a git command that reads no user or system configuration.
func (g *Git) command(in string, args ...string) *exec.Cmd {
	cmd := exec.Command(g.git, args...)
	cmd.Stdin = strings.NewReader(in)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + filepath.Dir(g.Dir)}
	return cmd
}
