// Package remotetest has servers that skills are got from, for tests: Git
// repositories and published indexes, on loopback addresses. They work as real ones
// do, and can be told to misbehave. It is for tests alone.
package remotetest

import (
	"bytes"
	"fmt"
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

// A Git is a repository, and the server that git fetches it from. Its methods are
// safe for concurrent use; those that change the repository fail the test where git
// fails.
type Git struct {
	URL string // of the repository, by http
	Dir string // of the repository, bare, on this machine

	t      testing.TB
	git    string
	server *httptest.Server

	mu        sync.Mutex
	tokens    []string          // passwords that are taken; none needed where empty
	forbids   bool              // answers 403 to everybody
	redirects map[string]string // by path
	cut       int64             // bytes after which a response ends, 0 for none
	dumb      bool
	old       bool
	requests  []string
	commits   int
}

// NewGit makes an empty repository whose branch is main, and serves it until the
// test ends. Where there is no git the test is skipped.
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
		Stderr:     new(bytes.Buffer),
	}
	files := http.FileServer(http.Dir(root))
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, backend, files) }))
	t.Cleanup(g.server.Close)
	g.URL = g.server.URL + "/repo.git"
	return g
}

// Host is that of the server, with its port.
func (g *Git) Host() string { return strings.TrimPrefix(g.server.URL, "http://") }

// Path is the address of a path of the server.
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
		backend.ServeHTTP(&cutting{ResponseWriter: w, left: cut}, r)
	default:
		backend.ServeHTTP(w, r)
	}
}

// redirected is where a request is sent instead; mu is held.
func (g *Git) redirected(r *http.Request) string {
	for from, to := range g.redirects {
		if rest, ok := strings.CutPrefix(r.URL.RequestURI(), from); ok {
			return to + rest
		}
	}
	return ""
}

// cutting ends a connection after so many bytes.
type cutting struct {
	http.ResponseWriter
	left int64
}

func (c *cutting) Write(p []byte) (int, error) {
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

// Private has the server take none but these tokens, as the password of any user;
// without tokens everybody is welcome again.
func (g *Git) Private(tokens ...string) { g.change(func() { g.tokens = tokens }) }

// Forbid has the server answer 403 to everybody, or no longer.
func (g *Git) Forbid(on bool) { g.change(func() { g.forbids = on }) }

// Redirect sends requests whose path begins with from to another address, with the
// rest of the path after it.
func (g *Git) Redirect(from, to string) { g.change(func() { g.redirects[from] = to }) }

// Cut has the server end the connection after so many bytes of what a client
// fetches; 0 is never.
func (g *Git) Cut(after int64) { g.change(func() { g.cut = after }) }

// Dumb has the server give the files of the repository as any file server does,
// without speaking git.
func (g *Git) Dumb() {
	g.run("", "--git-dir="+g.Dir, "update-server-info")
	g.change(func() { g.dumb = true })
}

// Old has the server speak version 0 of git's protocol alone, which gives no commit
// by its name.
func (g *Git) Old() { g.change(func() { g.old = true }) }

// Requests are those that came, as "GET /repo.git/info/refs?service=…".
func (g *Git) Requests() (out []string) {
	g.change(func() { out = slices.Clone(g.requests) })
	return out
}

// Change is one commit.
type Change struct {
	Branch     string            // default main
	Files      map[string]string // content by path, plain
	Programs   map[string]string // content by path, executable
	Links      map[string]string // target by path
	Submodules map[string]string // commit by path
	Remove     []string          // files and directories, before the others are put
	// Anew begins a branch without the commits and files that it had, as a forced
	// push does.
	Anew bool
}

// Commit puts files by their paths on branch main, beside those that it has, and
// returns the commit.
func (g *Git) Commit(files map[string]string) string { return g.Push(Change{Files: files}) }

// Push makes a commit and returns its name.
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

// Tag gives a commit a name, which is taken from another where that has it.
func (g *Git) Tag(name, commit string) { g.Ref("refs/tags/"+name, commit) }

// Annotate gives a commit a name by a tag with a message, which is an object itself.
func (g *Git) Annotate(name, commit string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "-c", "user.name=A Test", "-c", "user.email=test@example.com", "tag", "--force", "--annotate", "--message", name, name, commit)
}

// Ref makes a ref by its full name, or moves it.
func (g *Git) Ref(name, commit string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "update-ref", name, commit)
}

// Delete removes a ref by its full name.
func (g *Git) Delete(name string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "update-ref", "-d", name)
}

// Head has HEAD name a branch, which need not be there.
func (g *Git) Head(branch string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "symbolic-ref", "HEAD", "refs/heads/"+branch)
}

// Config sets a value in the configuration of the repository.
func (g *Git) Config(name, value string) {
	g.t.Helper()
	g.run("", "--git-dir="+g.Dir, "config", name, value)
}

// resolve is the commit that a ref names, "" where there is none.
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

// command is git without anybody's configuration.
func (g *Git) command(in string, args ...string) *exec.Cmd {
	cmd := exec.Command(g.git, args...)
	cmd.Stdin = strings.NewReader(in)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + filepath.Dir(g.Dir)}
	return cmd
}
