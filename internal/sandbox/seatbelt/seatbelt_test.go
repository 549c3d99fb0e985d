//go:build darwin || linux

package seatbelt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

func TestProfile(t *testing.T) {
	text, err := profile(access{read: []string{`/a "b" \c`}, write: []string{"/w/work", "/w/tmp"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(version 1)\n(deny default)\n", "(allow process-fork)", `(subpath "/a \"b\" \\c")`, "(allow file-write*\n    (subpath \"/w/work\")\n    (subpath \"/w/tmp\"))", `(literal "/dev/null")`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, never := range []string{"network", "(allow default)", `(subpath "/")`, "/Users", "/private/etc\"", "/private/var\""} {
		if strings.Contains(text, never) {
			t.Errorf("%s in\n%s", never, text)
		}
	}
	balanced(t, text)
	if text, _ = profile(access{proxy: 4711}); !strings.Contains(text, `(allow network-outbound (remote ip "localhost:4711"))`) || strings.Contains(text, "network*") {
		t.Errorf("with a proxy:\n%s", text)
	}
	if text, _ = profile(access{host: true}); !strings.Contains(text, `(allow network*)`) {
		t.Errorf("with the host's network:\n%s", text)
	}
}

// balanced reads the profile as its language has it: strings, and lists that end.
func balanced(t *testing.T, text string) {
	t.Helper()
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				t.Fatalf("a list ends early in\n%s", text)
			}
		}
	}
	if depth != 0 || quoted {
		t.Errorf("depth %d, in a string: %v:\n%s", depth, quoted, text)
	}
}

func TestPathsCannotInject(t *testing.T) {
	for _, p := range []string{"", "relative", "/", "/a\n(allow default)", "/a\x00b", "/a\x7f", "/a\xff", "/a\tb"} {
		if text, err := profile(access{write: []string{p}}); err == nil {
			t.Errorf("%q was taken:\n%s", p, text)
		}
	}
}

func FuzzProfile(f *testing.F) {
	f.Add(`/a") (allow default) ("`)
	f.Add(`/a\`)
	f.Fuzz(func(t *testing.T, p string) {
		text, err := profile(access{write: []string{p}})
		if err != nil {
			return
		}
		balanced(t, text)
		head, rest, _ := strings.Cut(text, `(allow file-write*`+"\n"+`    (subpath "`)
		var got strings.Builder
		for i := 0; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' {
				i++
			}
			got.WriteByte(rest[i])
		}
		if head == "" || got.String() != p {
			t.Errorf("%q became %q", p, got.String())
		}
	})
}

func TestUnavailableElsewhere(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("this is where it is available")
	}
	_, err := New(nil).Start(context.Background(), &sandbox.Spec{})
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || e.Fix == "" {
		t.Errorf("%v", err)
	}
}

// stub stands for sandbox-exec: it writes the profile down and runs the command.
func stub(t *testing.T) (exe, log string) {
	dir := stagetest.OpenDir(t)
	exe, log = filepath.Join(dir, "sandbox-exec"), filepath.Join(dir, "log")
	for path, data := range map[string]string{exe: "#!/bin/sh\n[ \"$1\" = -p ] || exit 99\nprintf %s \"$2\" > " + log + "\nshift 2\nexec \"$@\"\n", log: ""} {
		if err := os.WriteFile(path, []byte(data), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o777); err != nil { // whatever the umask, for the user of a root's sandboxes
			t.Fatal(err)
		}
	}
	return exe, log
}

type stubbed struct {
	*Backend
	exe string
}

func (s stubbed) Start(_ context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	return s.start(spec, s.exe)
}

func TestRun(t *testing.T) {
	exe, log := stub(t)
	b := stubbed{New(&Options{Cache: stagetest.OpenDir(t), UID: 65534}), exe}
	sum := sha256.Sum256([]byte("hello"))
	spec := &sandbox.Spec{
		Trees: []sandbox.Tree{{Path: mountpoint.Skill, FS: fstest.MapFS{"SKILL.md": {Data: []byte("hello"), Mode: fs.FileMode(0o644)}},
			Files: []sandbox.File{{Path: "SKILL.md", Size: 5, SHA256: hex.EncodeToString(sum[:])}}}},
		Network: sandbox.Network{Allow: []string{"example.com"}},
	}
	collected := map[string]string{}
	res, err := execute.Run(t.Context(), b, spec, &sandbox.Cmd{Args: []string{"sh", "-c", "cat /skill/SKILL.md $1; echo $https_proxy; mkfifo pipe; ln -s /etc/passwd link; echo x > out/x", "sh", "/skill/SKILL.md"}},
		&execute.Options{Collect: func(f sandbox.File, r io.Reader) (bool, error) {
			data, err := io.ReadAll(r)
			collected[f.Path] = string(data)
			return true, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	out, address, _ := strings.Cut(string(res.Stdout), "http://")
	if out != "hello" || res.Reason != sandbox.OK {
		t.Errorf("%s %d: %q %q", res.Reason, res.ExitCode, res.Stdout, res.Stderr)
	}
	if len(collected) != 1 || collected["out/x"] != "x\n" {
		t.Errorf("collected %q", collected)
	}
	text, _ := os.ReadFile(log)
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimSpace(address), "/"))
	if port == "" || !strings.Contains(string(text), `(remote ip "localhost:`+port+`")`) || !strings.Contains(string(text), "/work\")") || !strings.Contains(string(text), "/bundles/") {
		t.Errorf("%q in the environment; the profile is\n%s", address, text)
	}
	balanced(t, string(text))
}

// A file that is not the one that was approved does not reach the sandbox.
func TestChangedFileIsNotRun(t *testing.T) {
	exe, _ := stub(t)
	b := stubbed{New(&Options{Cache: stagetest.OpenDir(t), UID: 65534}), exe}
	spec := &sandbox.Spec{Trees: []sandbox.Tree{{Path: mountpoint.Skill, FS: fstest.MapFS{"SKILL.md": {Data: []byte("other")}},
		Files: []sandbox.File{{Path: "SKILL.md", Size: 5, SHA256: strings.Repeat("0", 64)}}}}}
	if box, err := b.Start(t.Context(), spec); err == nil || box != nil {
		t.Errorf("got %v, %v", box, err)
	}
}

func TestTimeoutKillsProcessGroup(t *testing.T) {
	exe, _ := stub(t)
	b := stubbed{New(&Options{Cache: stagetest.OpenDir(t), UID: 65534}), exe}
	res, err := execute.Run(t.Context(), b, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"sh", "-c", "sleep 1000 & sleep 1000"}, Timeout: 200 * time.Millisecond}, nil)
	if err != nil || res.Reason != sandbox.Timeout {
		t.Errorf("%+v %v", res, err)
	}
	res, err = execute.Run(t.Context(), b, &sandbox.Spec{Limits: sandbox.Limits{Work: 1 << 20}}, &sandbox.Cmd{Args: []string{"sh", "-c", "head -c 8000000 /dev/zero > big; sleep 1000"}}, nil)
	if err != nil || res.Reason != sandbox.FileSize {
		t.Errorf("%+v %v", res, err)
	}
}

func TestOpenProxyGetsNoSecrets(t *testing.T) {
	_, err := New(nil).start(&sandbox.Spec{Network: sandbox.Network{Allow: []string{"example.com"}, Inject: []sandbox.Injection{{Host: "example.com", Header: "Authorization", Secret: sandbox.NewSecret("KEY", "v")}}}}, "/x")
	if _, ok := errors.AsType[*sandbox.UnsupportedError](err); !ok {
		t.Errorf("%v", err)
	}
}

// The proxy serves the sandbox until it is closed.
func TestProxyServesSandbox(t *testing.T) {
	exe, _ := stub(t)
	b := stubbed{New(&Options{Cache: stagetest.OpenDir(t), UID: 65534}), exe}
	var l net.Listener
	b.listen = func(network, address string) (_ net.Listener, err error) {
		l, err = net.Listen(network, address)
		return l, err
	}
	spec := &sandbox.Spec{Network: sandbox.Network{Allow: []string{"a.example"}}}
	s, err := b.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := execute.RunIn(t.Context(), s, spec, &sandbox.Cmd{Args: []string{"sh", "-c", "id -u; echo $https_proxy"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	user, address, _ := strings.Cut(strings.TrimSpace(string(res.Stdout)), "\n")
	if want := strconv.Itoa(os.Geteuid()); user != want && os.Geteuid() != 0 || os.Geteuid() == 0 && user != "65534" {
		t.Errorf("runs as user %s", user)
	}
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://b.example/")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("the proxy answers %s", answer.Status)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the proxy serves a closed sandbox: %v", err)
	}
}
