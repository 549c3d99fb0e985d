package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/remote/remotetest"
	"github.com/loadout-dev/loadout/skill"
)

// skillText is a SKILL.md with a name and a body.
func skillText(name, body string) string {
	return "---\nname: " + name + "\ndescription: Does what " + name + " does.\n---\n" + body + "\n"
}

// look lists a location with a new client, whose temporary directory must be empty after
// the offer is closed.
func look(t *testing.T, l remote.Location, o *remote.Options) (*remote.Collection, error) {
	t.Helper()
	c, check := client(t, o)
	offer, err := c.Open(t.Context(), l)
	if err != nil {
		check()
		return nil, err
	}
	t.Cleanup(func() {
		if err := offer.Close(); err != nil {
			t.Error(err)
		}
		check()
	})
	return offer, nil
}

func client(t *testing.T, o *remote.Options) (c *remote.Client, leftNothing func()) {
	opts := remote.Options{Credential: func(context.Context, string) (*remote.Credential, error) { return nil, nil }}
	if o != nil {
		if opts = *o; opts.Credential == nil {
			opts.Credential = func(context.Context, string) (*remote.Credential, error) { return nil, nil }
		}
	}
	opts.TempDir = t.TempDir()
	return remote.New(&opts), func() {
		t.Helper()
		if left, err := os.ReadDir(opts.TempDir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// read opens a skill of an offer and reads all of it.
func read(t *testing.T, o *remote.Collection, s remote.Skill) map[string]string {
	t.Helper()
	b, err := o.OpenSkill(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	out := map[string]string{}
	err = fs.WalkDir(b, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(b, p)
		out[p] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestB11GitRefs(t *testing.T) {
	g := remotetest.NewGit(t)
	put := func(branch, body string) string {
		return g.Push(remotetest.Change{Branch: branch, Files: map[string]string{"pdf/SKILL.md": skillText("pdf", body)}})
	}
	first := put("main", "one")
	second := put("main", "two")
	last := put("main", "three")
	side := put("feature/x", "side")
	both := put("both", "branch")
	g.Tag("v1", first)
	g.Annotate("v2", second)
	g.Tag("both", first)
	g.Tag("pkg@1.0.0", first)
	g.Ref("refs/pull/7/head", side)

	tests := []struct{ ref, name, commit, body string }{
		{"", "refs/heads/main", last, "three"},
		{"main", "refs/heads/main", last, "three"},
		{"refs/heads/main", "refs/heads/main", last, "three"},
		{"heads/main", "refs/heads/main", last, "three"},
		{"feature/x", "refs/heads/feature/x", side, "side"},
		{"v1", "refs/tags/v1", first, "one"},
		{"v2", "refs/tags/v2", second, "two"},
		{"pkg@1.0.0", "refs/tags/pkg@1.0.0", first, "one"},
		{"both", "refs/heads/both", both, "branch"},
		{"tags/both", "refs/tags/both", first, "one"},
		{"refs/pull/7/head", "refs/pull/7/head", side, "side"},
		{second, "", second, "two"},
		{first[:10], "", first, "one"},
	}
	servers := map[string]string{"http": g.URL, "file": "file://" + filepath.ToSlash(g.Dir)}
	for kind, url := range servers {
		for _, tt := range tests {
			t.Run(kind+" "+tt.ref, func(t *testing.T) {
				l := gitAt(url, "", tt.ref)
				o, err := look(t, l, nil)
				if err != nil {
					t.Fatal(err)
				}
				if want := (remote.Revision{Ref: tt.name, Commit: tt.commit}); !cmp.Equal(want, o.Revision) || o.Location != l {
					t.Errorf("got %+v of %+v, want %+v", o.Revision, o.Location, want)
				}
				if len(o.Skills) != 1 || o.Skills[0].Name != "pdf" || o.Skills[0].Dir != "pdf" {
					t.Fatalf("skills %+v", o.Skills)
				}
				want := map[string]string{"SKILL.md": skillText("pdf", tt.body)}
				if diff := cmp.Diff(want, read(t, o, o.Skills[0])); diff != "" {
					t.Errorf("want -, got +:\n%s", diff)
				}
				if problem := len(o.Problems) == 1 && o.Problems[0].Code == "ref-twice"; problem != (tt.ref == "both") {
					t.Errorf("problems %v", o.Problems)
				}
				c, _ := client(t, nil)
				rev, err := c.Latest(t.Context(), l)
				if err != nil || rev.Ref != tt.name || rev.Commit != tt.commit {
					t.Errorf("latest is %+v, %v", rev, err)
				}
			})
		}
	}
}

func TestOldServersServeCommitsOfBranches(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Old()
	first := g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "two")})
	o, err := look(t, gitAt(g.URL, "", first), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Revision.Commit != first || read(t, o, o.Skills[0])["SKILL.md"] != skillText("pdf", "one") {
		t.Errorf("got %+v", o.Revision)
	}
	_, err = look(t, gitAt(g.URL, "", strings.Repeat("0", 39)+"1"), nil)
	if _, ok := errors.AsType[*remote.NotFoundError](err); !ok {
		t.Errorf("a commit that is missing: %v", err)
	}
}

func TestB11LatestFollowsBranches(t *testing.T) {
	g := remotetest.NewGit(t)
	files := map[string]string{"pdf/SKILL.md": skillText("pdf", "one")}
	first := g.Commit(files)
	g.Tag("v1", first)
	g.Annotate("v2", first)
	c, _ := client(t, nil)
	latest := func(ref string) remote.Revision {
		t.Helper()
		rev, err := c.Latest(t.Context(), gitAt(g.URL, "", ref))
		if err != nil {
			t.Fatal(err)
		}
		return *rev
	}
	if got, want := latest(""), (remote.Revision{Ref: "refs/heads/main", Commit: first, Tags: map[string]string{"v1": first, "v2": first}}); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	second := g.Push(remotetest.Change{Files: files, Anew: true}) // a forced push
	g.Tag("v1", second)
	g.Annotate("v2", second)
	for _, ref := range []string{"main", "v1", "v2"} {
		if got := latest(ref); got.Commit != second || got.Tags["v1"] != second || got.Tags["v2"] != second {
			t.Errorf("%s is %+v, want %s", ref, got, second)
		}
	}
	g.Delete("refs/tags/v1")
	_, err := c.Latest(t.Context(), gitAt(g.URL, "", "v1"))
	if e, ok := errors.AsType[*remote.NotFoundError](err); !ok || !slices.Contains(e.Suggestions, "v2") {
		t.Errorf("a ref that was deleted: %v", err)
	}
	if rev, err := c.Latest(t.Context(), remote.Location{Kind: remote.Local, URL: t.TempDir()}); err != nil || !cmp.Equal(*rev, remote.Revision{}) {
		t.Errorf("a folder: %+v, %v", rev, err)
	}
}

func TestW29PrivateRepositories(t *testing.T) {
	const right, wrong = "hunter2-right", "hunter2-wrong"
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	g.Private(right)
	program, log := recorded(t)
	for _, tt := range []struct {
		name  string
		cred  *remote.Credential
		asked int
		check func(error) bool
	}{
		{"right", &remote.Credential{User: "me", Password: right}, 1, func(err error) bool { return err == nil }},
		{"right without a user", &remote.Credential{Password: right}, 1, func(err error) bool { return err == nil }},
		{"wrong", &remote.Credential{User: "me", Password: wrong}, 1, func(err error) bool {
			e, ok := errors.AsType[*remote.DeniedError](err)
			return ok && e.Host == g.Host() && e.CredentialSent
		}},
		{"absent", nil, 1, func(err error) bool {
			e, ok := errors.AsType[*remote.NotFoundError](err)
			return ok && strings.Contains(e.Hint, "private")
		}},
		{"of two lines", &remote.Credential{User: "me", Password: right + "\nhost=example.com"}, 1, func(err error) bool { return err != nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			o, err := look(t, gitAt(g.URL, "", ""), &remote.Options{
				Git: program,
				Credential: func(_ context.Context, host string) (*remote.Credential, error) {
					if asked++; host != g.Host() {
						t.Errorf("asked for %s", host)
					}
					return tt.cred, nil
				},
				Progress: func(p remote.Progress) {
					if strings.Contains(p.What, "hunter2") {
						t.Errorf("progress %+v", p)
					}
				},
			})
			if !tt.check(err) || asked != tt.asked {
				t.Errorf("got %v, asked %d times", err, asked)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error has the token: %v", err)
			}
			if err == nil && len(o.Problems) == 0 && read(t, o, o.Skills[0])["SKILL.md"] == "" {
				t.Error("nothing was read")
			}
		})
	}
	if args := log(); strings.Contains(args, "hunter2") || !strings.Contains(args, " fetch ") {
		t.Errorf("arguments of git:\n%s", args)
	}
}

// recorded is a git that records its arguments and output.
func recorded(t *testing.T) (program string, log func() string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the wrapper is a shell script")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	program = filepath.Join(dir, "git")
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s ' \"$@\" >>'%s/log'\necho >>'%s/log'\nexec '%s' \"$@\"\n", dir, dir, git)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, func() string {
		out, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
}

func TestServerRefusalsAreTyped(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	for _, url := range []string{g.Path("/none.git"), "file://" + filepath.ToSlash(filepath.Join(filepath.Dir(g.Dir), "none.git"))} {
		_, err := look(t, gitAt(url, "", ""), nil)
		if e, ok := errors.AsType[*remote.NotFoundError](err); !ok || !strings.Contains(e.What, "repository") || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", url, err)
		}
	}
	_, err := look(t, gitAt(g.URL, "", "mian"), nil)
	if e, ok := errors.AsType[*remote.NotFoundError](err); !ok || !slices.Contains(e.Suggestions, "main") {
		t.Errorf("a ref that is missing: %v", err)
	}
	_, err = look(t, gitAt(g.URL, "dpf", ""), nil)
	if e, ok := errors.AsType[*remote.NotFoundError](err); !ok || !strings.Contains(e.What, "dpf") {
		t.Errorf("a directory that is missing: %v", err)
	}
	g.Forbid(true)
	_, err = look(t, gitAt(g.URL, "", ""), nil)
	if e, ok := errors.AsType[*remote.DeniedError](err); !ok || e.CredentialSent {
		t.Errorf("403: %v", err)
	}
	g.Forbid(false)
	g.Dumb()
	if _, err = look(t, gitAt(g.URL, "", ""), nil); err == nil || !strings.Contains(err.Error(), "is not a git server") {
		t.Errorf("a server of files: %v", err)
	}
}

func TestEmptyRepositories(t *testing.T) {
	g := remotetest.NewGit(t)
	_, err := look(t, gitAt(g.URL, "", ""), nil)
	if e, ok := errors.AsType[*remote.NotFoundError](err); !ok || !strings.Contains(e.Hint, "empty") {
		t.Errorf("without a commit: %v", err)
	}
	g.Commit(map[string]string{"README": "no skill"})
	o, err := look(t, gitAt(g.URL, "", ""), nil)
	if err != nil || len(o.Skills) != 0 {
		t.Errorf("without a skill: %+v, %v", o, err)
	}
	g.Head("gone")
	_, err = look(t, gitAt(g.URL, "", ""), nil)
	if e, ok := errors.AsType[*remote.NotFoundError](err); !ok || !strings.Contains(e.Hint, "branch") {
		t.Errorf("without a default branch: %v", err)
	}
}

func TestInterruptedConnectionLeavesNothing(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", noise(1<<20))})
	for _, after := range []int64{1, 100, 1000, 100_000} {
		g.Cut(after)
		if _, err := look(t, gitAt(g.URL, "", ""), nil); err == nil {
			t.Errorf("cut after %d bytes: no error", after)
		}
	}
}

// noise is text that cannot be compressed much.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, n)
	for i := range out {
		out[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[r.IntN(64)]
	}
	return string(out)
}

func TestRepositoryLimits(t *testing.T) {
	g := remotetest.NewGit(t)
	files := map[string]string{"pdf/SKILL.md": skillText("pdf", "one")}
	for i := range 50 {
		files[fmt.Sprintf("pdf/%d.txt", i)] = noise(100_000)[i:]
	}
	g.Commit(files)
	_, err := look(t, gitAt(g.URL, "", ""), &remote.Options{Limits: remote.Limits{Download: 1000}})
	if e, ok := errors.AsType[*remote.TooLargeError](err); !ok || e.Limit != 1000 {
		t.Errorf("a large one: %v", err)
	}
	if _, err := look(t, gitAt(g.URL, "", ""), &remote.Options{Limits: remote.Limits{Entries: 50}}); err == nil || !strings.Contains(err.Error(), "too many files (limit 50)") {
		t.Errorf("many files: %v", err)
	}
	if _, err := look(t, gitAt(g.URL, "", ""), &remote.Options{Limits: remote.Limits{Time: 1}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no time: %v", err)
	}
}

func TestForbiddenFilesAreRefused(t *testing.T) {
	lfs := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 12\n"
	for name, c := range map[string]remotetest.Change{
		"link":        {Links: map[string]string{"pdf/passwd": "/etc/passwd"}},
		"submodule":   {Submodules: map[string]string{"pdf/sub": strings.Repeat("1", 40)}},
		"LFS pointer": {Files: map[string]string{"pdf/model.bin": lfs}},
		"collision":   {Files: map[string]string{"pdf/a.txt": "", "pdf/A.txt": ""}},
		"reserved":    {Files: map[string]string{"pdf/aux.txt": ""}},
		"large":       {Files: map[string]string{"pdf/large.bin": strings.Repeat("0", 17<<20)}},
	} {
		t.Run(name, func(t *testing.T) {
			g := remotetest.NewGit(t)
			g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one"), "csv/SKILL.md": skillText("csv", "fine")})
			g.Push(c)
			o, err := look(t, gitAt(g.URL, "", ""), nil)
			if err != nil || len(o.Skills) != 2 {
				t.Fatalf("%+v, %v", o, err)
			}
			if len(read(t, o, o.Skills[0])) != 1 {
				t.Error("the other skill is not all there")
			}
			b, err := o.OpenSkill(t.Context(), o.Skills[1])
			if e, ok := errors.AsType[*skill.RefusedError](err); !ok || !strings.HasPrefix(e.Refusals[0].Entry, "pdf/") && e.Refusals[0].Entry == "" {
				t.Errorf("got %v, %v", b, err)
			}
		})
	}
}

func TestFilesEqualRepository(t *testing.T) {
	g := remotetest.NewGit(t)
	files := map[string]string{
		".gitattributes":   "*.md export-subst text eol=crlf ident\n*.txt export-ignore filter=lfs\n",
		"pdf/SKILL.md":     skillText("pdf", "$Format:%H$ $Id$"),
		"pdf/notes.txt":    "kept\r\nas it is\n",
		"pdf/ü/Ünïcode.md": "x\x00\xff\n",
		"pdf/a b":          "",
		"pdf/large":        strings.Repeat("0123456789abcdef", 600_000), // streamed by git
	}
	g.Push(remotetest.Change{Files: files, Programs: map[string]string{"pdf/run.sh": "#!/bin/sh\n"}})
	o, err := look(t, gitAt(g.URL, "pdf", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"run.sh": "#!/bin/sh\n"}
	for p, content := range files {
		if rest, ok := strings.CutPrefix(p, "pdf/"); ok {
			want[rest] = content
		}
	}
	if diff := cmp.Diff(want, read(t, o, o.Skills[0])); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestMovedRepositoryIsFollowedOnceAndReported(t *testing.T) {
	g := remotetest.NewGit(t)
	commit := g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	g.Redirect("/old.git", "/repo.git")
	o, err := look(t, gitAt(g.Path("/old.git"), "", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Revision.Commit != commit || len(o.Problems) != 1 || o.Problems[0].Code != "moved" || !strings.Contains(o.Problems[0].Message, g.URL) {
		t.Errorf("got %+v, %v", o.Revision, o.Problems)
	}
	g.Redirect("/repo/", "/repo.git/")
	if o, err := look(t, gitAt(g.Path("/repo"), "", ""), nil); err != nil || len(o.Problems) != 0 {
		t.Errorf("a host that adds .git: %v, %v", o, err)
	}
	g.Redirect("/loop.git", "/loop.git")
	if _, err := look(t, gitAt(g.Path("/loop.git"), "", ""), nil); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("an endless redirect: %v", err)
	}
	g.Redirect("/page.git", "/somewhere?to=")
	if _, err := look(t, gitAt(g.Path("/page.git"), "", ""), nil); err == nil {
		t.Error("a redirect to a page: no error")
	}
}

func TestMovedPrivateRepositoryIsFollowed(t *testing.T) {
	g := remotetest.NewGit(t)
	commit := g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	behind, err := url.Parse(g.Path(""))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, moved := strings.CutPrefix(r.URL.RequestURI(), "/old.git")
		switch _, password, _ := r.BasicAuth(); {
		case password != "right":
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		case moved:
			http.Redirect(w, r, "/repo.git"+rest, http.StatusMovedPermanently)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	o, err := look(t, gitAt(front.URL+"/old.git", "", ""), &remote.Options{Credential: func(context.Context, string) (*remote.Credential, error) {
		return &remote.Credential{User: "me", Password: "right"}, nil
	}})
	if err != nil || o.Revision.Commit != commit || len(o.Problems) != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestRenamedPrivateRepositoryIsFollowed(t *testing.T) {
	g := remotetest.NewGit(t)
	commit := g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	g.Private("right")
	g.Redirect("/old.git", "/repo.git")
	for _, ref := range []string{"", "main", commit} {
		asked := 0
		o, err := look(t, gitAt(g.Path("/old.git"), "", ref), &remote.Options{Credential: func(context.Context, string) (*remote.Credential, error) {
			asked++
			return &remote.Credential{Password: "right"}, nil
		}})
		if err != nil || o.Revision.Commit != commit || len(o.Problems) != 1 || asked != 1 {
			t.Errorf("at %q: %+v, %v, asked %d times", ref, o, err, asked)
		}
	}
}

func TestCredentialIsNotSentToAnotherHost(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	var mu sync.Mutex
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Get("Authorization"))
		mu.Unlock()
		w.Header().Set("WWW-Authenticate", `Basic realm="other"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(other.Close)
	g.Redirect("/old.git", other.URL+"/repo.git")
	asked := []string{}
	_, err := look(t, gitAt(g.Path("/old.git"), "", ""), &remote.Options{Credential: func(_ context.Context, host string) (*remote.Credential, error) {
		asked = append(asked, host)
		return &remote.Credential{User: "me", Password: "hunter2"}, nil
	}})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	for _, header := range seen {
		if header != "" {
			t.Errorf("the other host was shown %q", header)
		}
	}
	if len(seen) == 0 || slices.ContainsFunc(asked, func(host string) bool { return host != g.Host() }) {
		t.Errorf("the other host was asked %d times; credentials were asked of %v", len(seen), asked)
	}
}

// A Location need not come from Parse: it is in files too.
func TestLocationIsNeverAGitOption(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	mark := filepath.Join(t.TempDir(), "mark")
	for _, l := range []remote.Location{
		gitAt("--upload-pack=touch "+mark, "", ""),
		gitAt("-u"+mark, "", ""),
		gitAt("ext::touch "+mark, "", ""),
		gitAt("ext::sh -c touch% "+mark, "", ""),
		gitAt("ssh://-oProxyCommand=touch "+mark+"/x", "", ""),
		gitAt("-oProxyCommand=touch "+mark+":x", "", ""),
		gitAt("file://"+g.Dir+"/../repo.git", "", ""),
		gitAt(g.Dir, "", ""),
		gitAt("", "", ""),
		gitAt("http://user:hunter2@"+g.Host()+"/repo.git", "", ""),
		gitAt("https://user:hunter2@example.com:port/r.git", "", ""),
		gitAt("user:hunter2@example.com:r.git", "", ""),
		gitAt(g.URL, "", "--upload-pack=touch "+mark),
		gitAt(g.URL, "", "main:refs/heads/x"),
		gitAt(g.URL, "", "main^{tree}"),
		gitAt(g.URL, "../..", ""),
		gitAt(g.URL, "--output=x", ""),
		gitAt("http://192.0.2.1/r.git", "", ""),
	} {
		_, err := look(t, l, nil)
		if _, ok := errors.AsType[*remote.LocationError](err); !ok {
			t.Errorf("%+v: %v", l, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error has the password: %v", err)
		}
		c, _ := client(t, nil)
		if _, err := c.Latest(t.Context(), l); err == nil {
			t.Errorf("latest of %+v: no error", l)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command was run")
	}
}

func TestRepositoryCodeIsNotRun(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one"), ".gitattributes": "* filter=x diff=x merge=x\n", ".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ./x\n"})
	mark := filepath.Join(t.TempDir(), "mark")
	run := "touch " + mark
	for _, name := range []string{"core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.pager", "core.editor", "uploadpack.packObjectsHook", "credential.helper", "filter.x.smudge", "filter.x.clean", "filter.x.process", "diff.x.textconv", "diff.external", "core.alternateRefsCommand", "gpg.program"} {
		g.Config(name, run)
	}
	hooks := filepath.Join(g.Dir, "hooks")
	g.Config("core.hooksPath", hooks)
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-checkout", "pre-receive", "post-update", "reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-auto-gc", "post-upload-pack"} {
		if err := os.WriteFile(filepath.Join(hooks, hook), []byte("#!/bin/sh\n"+run+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Remove(mark) // by the program that created the repository
	for _, url := range []string{"file://" + filepath.ToSlash(g.Dir), g.URL} {
		o, err := look(t, gitAt(url, "", ""), nil)
		if err != nil {
			t.Fatal(err)
		}
		read(t, o, o.Skills[0])
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command of the repository was run")
	}
}

func TestGitDoesNotInheritEnvironment(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	mark := filepath.Join(t.TempDir(), "mark")
	home := t.TempDir()
	config := "[url \"file:///none/\"]\n\tinsteadOf = http://\n[core]\n\tfsmonitor = touch " + mark + "\n[credential]\n\thelper = \"!touch " + mark + "\"\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": filepath.Join(home, ".gitconfig"),
		"GIT_DIR": home, "GIT_WORK_TREE": home, "GIT_OBJECT_DIRECTORY": home, "GIT_INDEX_FILE": filepath.Join(home, "index"),
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url.file:///none/.insteadOf", "GIT_CONFIG_VALUE_0": "http://",
		"GIT_CONFIG_PARAMETERS": "'url.file:///none/.insteadOf=http://'",
		"GIT_SSH_COMMAND":       "touch " + mark, "GIT_ASKPASS": "touch " + mark, "GIT_TRACE": mark, "GIT_EXEC_PATH": home,
		"GIT_TEMPLATE_DIR": home, "GIT_ALLOW_PROTOCOL": "ext",
	} {
		t.Setenv(name, value)
	}
	o, err := look(t, gitAt(g.URL, "", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	read(t, o, o.Skills[0])
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command of the environment was run, or git wrote down what it did")
	}
}

func TestHugeRepositoryNeedsFewProcesses(t *testing.T) {
	g := remotetest.NewGit(t)
	files := map[string]string{}
	for i := range 400 {
		name := fmt.Sprintf("skill-%03d", i)
		files["skills/"+name+"/SKILL.md"] = skillText(name, "body")
		files["skills/"+name+"/notes.txt"] = name
	}
	g.Commit(files)
	program, log := recorded(t)
	var done, total int64
	o, err := look(t, gitAt(g.URL, "skills", ""), &remote.Options{Git: program, Progress: func(p remote.Progress) {
		if p.What == "receiving objects" {
			done, total = p.Done, p.Total
		}
	}})
	if err != nil || len(o.Skills) != 400 {
		t.Fatalf("%v, %v", o, err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for _, s := range o.Skills[i*50 : i*50+50] {
				if got := read(t, o, s); got["notes.txt"] != s.Name {
					t.Errorf("%s has %v", s.Name, slices.Sorted(maps.Keys(got)))
				}
			}
		})
	}
	all.Wait()
	if n := strings.Count(log(), "\n"); n > 6 {
		t.Errorf("git was started %d times:\n%s", n, log())
	}
	if total == 0 || done != total {
		t.Errorf("progress ended at %d of %d", done, total)
	}
}

func TestLongObjectNames(t *testing.T) {
	remotetest.NewGit(t) // there is git
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=A Test", "-c", "user.email=test@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Skipf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet", "--object-format=sha256", "--template=")
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(skillText("pdf", "one")), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "--quiet", "-m", "one")
	commit := git("rev-parse", "HEAD")
	for _, ref := range []string{"", commit} {
		o, err := look(t, gitAt("file://"+filepath.ToSlash(dir), "", ref), nil)
		if err != nil || o.Revision.Commit != commit || len(o.Skills) != 1 || o.Skills[0].Dir != "." {
			t.Errorf("at %q: %+v, %v", ref, o, err)
		}
	}
}

func TestCancelEndsGit(t *testing.T) {
	remotetest.NewGit(t) // there is git
	came, left := make(chan struct{}), make(chan struct{})
	var once sync.Once
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(came) })
		<-r.Context().Done() // until the client disconnects
		close(left)
	}))
	t.Cleanup(silent.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-came; cancel() }()
	c, leftNothing := client(t, nil)
	commit := strings.Repeat("1", 40) // for which git itself asks
	if _, err := c.Open(ctx, gitAt(silent.URL+"/repo.git", "", commit)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-left
	leftNothing()
}

func TestOfferIsUsableUntilClosed(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one"), "pdf/a.txt": "a"})
	ctx, cancel := context.WithCancel(t.Context())
	c, leftNothing := client(t, nil)
	o, err := c.Open(ctx, gitAt(g.URL, "", ""))
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, o, o.Skills[0]); got["a.txt"] != "a" {
		t.Errorf("got %v", got)
	}
	for range 2 {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	if b, err := o.OpenSkill(t.Context(), o.Skills[0]); err == nil {
		if _, err := fs.ReadFile(b, "a.txt"); err == nil {
			t.Error("a closed offer was read")
		}
	}
	leftNothing()
}

// Without git the list of refs is the same.
func TestB11LatestWithoutGit(t *testing.T) {
	g := remotetest.NewGit(t)
	first := g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "one")})
	g.Annotate("v1", first)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "two")})
	g.Push(remotetest.Change{Branch: "feature/x", Files: map[string]string{"a": ""}})
	with, _ := client(t, nil)
	without, _ := client(t, &remote.Options{Git: "-"})
	for _, ref := range []string{"", "main", "feature/x", "v1", first, first[:8]} {
		l := gitAt(g.URL, "", ref)
		want, err := with.Latest(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		got, err := without.Latest(t.Context(), l)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: got %+v, %v; want %+v", ref, got, err, want)
		}
	}
	for _, l := range []remote.Location{gitAt(g.URL, "", "none"), gitAt(g.Path("/none.git"), "", "")} {
		_, err := without.Latest(t.Context(), l)
		if _, ok := errors.AsType[*remote.NotFoundError](err); !ok {
			t.Errorf("%+v: %v", l, err)
		}
	}
	g.Dumb()
	if _, err := without.Latest(t.Context(), gitAt(g.URL, "", "")); err == nil || !strings.Contains(err.Error(), "is not a git server") {
		t.Errorf("a server of files: %v", err)
	}
}

func TestWithoutGitOnlyKnownHostsAreUsed(t *testing.T) {
	c, leftNothing := client(t, &remote.Options{Git: "-"})
	for _, url := range []string{"ssh://git@example.com/repo", "git@example.com:repo", "file:///srv/repo"} {
		if _, err := c.Open(t.Context(), gitAt(url, "", "")); !errors.Is(err, remote.ErrNoGit) {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := c.Latest(t.Context(), gitAt(url, "", "")); !errors.Is(err, remote.ErrNoGit) {
			t.Errorf("latest of %s: %v", url, err)
		}
	}
	leftNothing()
}
