package remote

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

const minimal = "---\nname: pdf\ndescription: Reads forms.\n---\nbody\n"

// resolved is a client for which every name has these addresses.
func resolved(t *testing.T, o Options, addrs ...string) *Client {
	o.TempDir = t.TempDir()
	if o.Credential == nil {
		o.Credential = func(context.Context, string) (*Credential, error) { return nil, nil }
	}
	c := New(&o)
	c.resolve = func(context.Context, string) (out []netip.Addr, _ error) {
		for _, a := range addrs {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
	return c
}

func TestGitConnectsToNoPrivateAddress(t *testing.T) {
	remotetest.NewGit(t) // there is git
	for _, addr := range []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1", "fd00:ec2::254"} {
		c := resolved(t, Options{}, addr)
		l := Location{Kind: Git, URL: "https://skills.example.com/repo.git"}
		_, err := c.Open(t.Context(), l)
		if e, ok := errors.AsType[*AddressError](err); !ok || e.Host != "skills.example.com" {
			t.Errorf("%s: %v", addr, err)
		}
		if _, err := c.Latest(t.Context(), l); err == nil {
			t.Errorf("latest at %s: no error", addr)
		}
	}
	for _, literal := range []string{"http://169.254.169.254/repo.git", "https://169.254.169.254/repo.git", "https://[fd00:ec2::254]/repo.git"} {
		_, err := resolved(t, Options{Private: func(string) bool { return true }}).Open(t.Context(), Location{Kind: Git, URL: literal})
		if err == nil {
			t.Errorf("%s: no error", literal)
		} else if e, ok := errors.AsType[*AddressError](err); strings.HasPrefix(literal, "https") && (!ok || !e.AlwaysBlocked) {
			t.Errorf("%s: %v", literal, err)
		}
	}
}

func TestGitConnectsToTheAddressThatWasChecked(t *testing.T) {
	g := remotetest.NewGit(t)
	commit := g.Commit(map[string]string{"pdf/SKILL.md": minimal})
	behind, err := url.Parse(g.Path(""))
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(behind)) // of example.com
	t.Cleanup(front.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", ca) // for git
	at := "https://example.com:" + front.URL[strings.LastIndexByte(front.URL, ':')+1:] + "/repo.git"
	c := resolved(t, Options{Private: func(host string) bool { return host == "example.com" }}, "127.0.0.1")
	c.tls = front.Client().Transport.(*http.Transport).TLSClientConfig
	o, err := c.Open(t.Context(), Location{Kind: Git, URL: at})
	if err != nil {
		t.Fatalf("%v (git before 2.37 cannot be told an address)", err)
	}
	defer o.Close()
	if o.Revision.Commit != commit {
		t.Errorf("got %+v", o.Revision)
	}
}

func TestGitUsesUserProxy(t *testing.T) {
	g := remotetest.NewGit(t)
	commit := g.Commit(map[string]string{"pdf/SKILL.md": minimal})
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}} // a request to a proxy names the host
	var passed atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	c := resolved(t, Options{})
	c.proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	o, err := c.Open(t.Context(), Location{Kind: Git, URL: g.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.Revision.Commit != commit || passed.Load() == 0 {
		t.Errorf("got %+v, by %d requests to the proxy", o.Revision, passed.Load())
	}
	if _, err = c.Open(t.Context(), Location{Kind: Git, URL: "https://169.254.169.254/repo.git"}); !errorIs[*AddressError](err) {
		t.Errorf("an address of a cloud behind a proxy: %v", err)
	}
}

func errorIs[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

// A program called ssh that runs the command here stands for another machine.
func TestGitOverSSH(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the other machine is a shell script")
	}
	g := remotetest.NewGit(t)
	commit := g.Commit(map[string]string{"pdf/SKILL.md": minimal})
	home, bin := t.TempDir(), t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho \"$HOME $*\" >>'%s/log'\nfor last; do :; done\neval \"$last\"\n", bin)
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("HOME", home)
	t.Setenv("GIT_SSH_COMMAND", "false")
	for _, at := range []string{"git@example.com:" + g.Dir, "ssh://git@example.com:2222" + g.Dir} {
		o, err := resolved(t, Options{}).Open(t.Context(), Location{Kind: Git, URL: at})
		if err != nil {
			t.Fatal(err)
		}
		if o.Revision.Commit != commit {
			t.Errorf("got %+v", o.Revision)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(bin, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if !strings.HasPrefix(line, home+" -oBatchMode=yes ") || !strings.Contains(line, "git@example.com git-upload-pack") {
			t.Errorf("ssh was run as %q", line)
		}
	}
}

// A few trees name each other so that they have a billion directories, all empty.
func TestTreeBombIsNotExpanded(t *testing.T) {
	g := remotetest.NewGit(t)
	git := func(in string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"--git-dir=" + g.Dir, "-c", "user.name=A Test", "-c", "user.email=test@example.com"}, args...)...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	tree := git("", "mktree")
	for range 5 {
		var in strings.Builder
		for i := range 64 {
			fmt.Fprintf(&in, "040000 tree %s\td%02d\n", tree, i)
		}
		tree = git(in.String(), "mktree")
	}
	g.Ref("refs/heads/main", git("", "commit-tree", "-m", "bomb", tree))
	_, err := resolved(t, Options{}).Open(t.Context(), Location{Kind: Git, URL: g.URL})
	if err == nil || !strings.Contains(err.Error(), "directories") {
		t.Errorf("got %v", err)
	}
}

func TestGitErrorsAreOneLineWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"remote: \x1b[31mwelcome\x1b[0m\nwarning: x\nfatal: unable to access 'https://me:hunter2@example.com/r.git?token=hunter2': \x07no\n": "git fetch: unable to access 'https://example.com/r.git': no",
		"ssh: connect to host example.com port 22: Connection refused\nfatal: Could not read from remote repository.\n\nPlease make sure …":  "git fetch: ssh: connect to host example.com port 22: Connection refused",
		"": "git fetch: exit status 128",
		strings.Repeat("remote: flood\n", 100_000) + "fatal: the end":    "git fetch: the end",
		"fatal: " + strings.Repeat("x", 100_000) + "\nerror: afterwards": "git fetch: " + strings.Repeat("x", 300) + "…",
	} {
		output := &gitOutput{progress: func(Progress) {}}
		fmt.Fprint(output, text)
		if got := output.commandError("fetch", errors.New("exit status 128")).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(output.messages) > maxOutput || len(output.line) > maxOutput {
			t.Errorf("%d and %d bytes are stored", len(output.messages), len(output.line))
		}
	}
}

func TestProgressIsReadInParts(t *testing.T) {
	var got []Progress
	output := &gitOutput{progress: func(p Progress) { got = append(got, p) }}
	text := "remote: Counting objects: 50% (1/2)\rReceiving objects:  50% (1/2)\rReceiving objects: 100% (2/2), 1.0 KiB | 1 MiB/s, done.\n"
	for i := range len(text) {
		fmt.Fprint(output, text[i:i+1])
	}
	want := []Progress{{What: "receiving objects", Done: 1, Total: 2}, {What: "receiving objects", Done: 2, Total: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestUserCredential(t *testing.T) {
	remotetest.NewGit(t) // there is git
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GH_TOKEN": "", "GITHUB_TOKEN": "hub", "GITLAB_TOKEN": "lab", "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": "/none", "GIT_ASKPASS": "false"} {
		t.Setenv(name, value)
	}
	config := "[credential \"https://example.com:8443\"]\n\thelper = \"!f() { echo username=me; echo password=kept; }; f\"\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New(&Options{TempDir: t.TempDir()})
	for host, want := range map[string]*Credential{
		"github.com":                  {"x-access-token", "hub"},
		"gitlab.com":                  {"oauth2", "lab"},
		"example.com:8443":            {"me", "kept"},
		"example.com":                 nil,
		"github.com.example.com":      nil,
		"example.com\nhost=other.com": nil,
	} {
		got, err := c.credential(t.Context(), host)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: got %+v, %v; want %+v", host, got, err, want)
		}
	}
	if left, err := os.ReadDir(c.opts.TempDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// FuzzRefs checks that each listed ref can be requested by its name.
func FuzzRefs(f *testing.F) {
	id := strings.Repeat("0", 40)
	f.Add("ref: refs/heads/main\tHEAD\n"+id+"\tHEAD\n"+id+"\trefs/heads/main\n"+id+"\trefs/tags/v1\n"+id+"\trefs/tags/v1^{}\n", "v1")
	f.Add(id+"\trefs/heads/--upload-pack=x\n"+id+"\trefs/heads/a..b\n", "0000")
	f.Fuzz(func(t *testing.T, text, ref string) {
		refs, err := parseRefs(strings.NewReader(text), ref)
		if err != nil || checkRef(ref) != nil {
			return
		}
		for name := range refs.objects {
			if checkRef(strings.TrimSuffix(name, "^{}")) != nil {
				t.Errorf("a ref is called %q", name)
			}
		}
		want, err := refs.find(Location{Kind: Git, URL: "https://example.com/r.git", Ref: ref})
		if err != nil {
			return
		}
		if !isCommit(want.commit) || checkRef(want.name) != nil || want.name == "" && ref != "" && !strings.HasPrefix(want.commit, ref) {
			t.Errorf("%q is %+v", ref, want)
		}
	})
}

// The answer of a server is read as what git prints of it is.
func FuzzAdvertised(f *testing.F) {
	id := strings.Repeat("0", 40)
	line := func(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
	f.Add([]byte(line("# service=git-upload-pack\n") + "0000" + line(id+" HEAD\x00 symref=HEAD:refs/heads/main\n") + line(id+" refs/heads/main\n") + line(id+" refs/tags/v1^{}\n") + "0000"))
	f.Add([]byte("0001"))
	f.Add([]byte("fff0x"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		refs, err := parseAdvertised(bytes.NewReader(answer), "")
		if err != nil {
			return
		}
		if refs.head != "" && checkRef(refs.head) != nil {
			t.Errorf("HEAD is %q", refs.head)
		}
		for name, id := range refs.objects {
			if checkRef(strings.TrimSuffix(name, "^{}")) != nil || !isCommit(id) {
				t.Errorf("%q is %q", name, id)
			}
		}
	})
}

func TestTreeListingBoundsPaths(t *testing.T) {
	g := &gitSession{client: New(nil)}
	list := func(length int) ([]entry, error) {
		id := strings.Repeat("0", 40)
		return g.parseTree(strings.NewReader("100644 blob " + id + "      12\t" + strings.Repeat("p", length) + "\x00"))
	}
	if got, err := list(maxTreePath); err != nil || len(got) != 1 || len(got[0].path) != maxTreePath {
		t.Errorf("%d bytes: %d entries, %v", maxTreePath, len(got), err)
	}
	for _, length := range []int{2 * maxTreePath, 16 * maxTreePath, 17 * maxTreePath} {
		if got, err := list(length); err == nil || !strings.Contains(err.Error(), strconv.Itoa(maxTreePath)) {
			t.Errorf("%d bytes: %d entries, %v", length, len(got), err)
		}
	}
}

// What is listed has a size, and a name of an object that git takes for nothing else.
func FuzzTreeListing(f *testing.F) {
	id := strings.Repeat("0", 40)
	f.Add([]byte("100644 blob " + id + "      12\ta b\n\x00120000 blob " + id + "       3\tlink\x00160000 commit " + id + "       -\tsub\x00040000 tree " + id + "       -\td\x00"))
	f.Add([]byte("100644 blob " + id + " -1\ta\x00"))
	g := &gitSession{client: New(nil)}
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := g.parseTree(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.size < 0 || e.kind != submoduleEntry && e.open == nil || len(e.path) > len(text) {
				t.Errorf("entry %+v", e)
			}
		}
		if n := bytes.Count(text, []byte{0}); len(entries) > n {
			t.Errorf("%d entries of %d", len(entries), n)
		}
	})
}

// A credential that is read has a password, and no value has a line break.
func FuzzCredential(f *testing.F) {
	f.Add("protocol=https\nhost=example.com\nusername=me\npassword=a=b\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := parseCredential(text)
		if c != nil && (c.Password == "" || strings.Contains(c.User+c.Password, "\n")) {
			t.Errorf("got %+v", c)
		}
	})
}

func TestGitOptionsAreUnambiguous(t *testing.T) {
	seen := []string{}
	for _, w := range failureMessages {
		if slices.Contains(seen, w.words) {
			t.Errorf("%q is listed twice", w.words)
		}
		seen = append(seen, w.words)
		if got := gitFailureReason(fmt.Errorf("look: %w", &gitError{messages: "fatal: " + w.words + "\n"})); got != w.why {
			t.Errorf("%q is %d, want %d", w.words, got, w.why)
		}
	}
}
