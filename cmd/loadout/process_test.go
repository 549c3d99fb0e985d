package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/exit"
)

// process is a loadout process with its own home directory.
type process struct {
	*exec.Cmd
	home   string
	out    *bufio.Reader
	stderr bytes.Buffer
}

// start starts loadout with its standard input open.
func start(t *testing.T, args ...string) (*process, io.WriteCloser) {
	t.Helper()
	return startIn(t, t.TempDir(), args...)
}

// startIn is like start with an existing home directory.
func startIn(t *testing.T, home string, args ...string) (*process, io.WriteCloser) {
	t.Helper()
	p := &process{Cmd: exec.Command("loadout", args...), home: home}
	p.Dir, p.Stderr = p.home, &p.stderr
	p.Env = append(os.Environ(), "HOME="+p.home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "LOADOUT_CACHE=", "LOADOUT_STATE=", "LOADOUT_CONFIG=")
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*time.Minute, func() { p.Process.Kill() })
	t.Cleanup(func() { late.Stop(); p.Process.Kill(); p.Wait() })
	return p, in
}

// end waits for the process and returns its exit code.
func (p *process) end(t *testing.T) int {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, p.out)
		ended <- p.Wait()
	}()
	select {
	case err := <-ended:
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	return p.ProcessState.ExitCode()
}

// serve starts an HTTP server and returns its URL.
func serve(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	return serveIn(t, t.TempDir(), args...)
}

// serveIn is like serve with an existing home directory.
func serveIn(t *testing.T, home string, args ...string) (*process, string) {
	t.Helper()
	p, _ := startIn(t, home, append([]string{"mcp", "--http", "127.0.0.1:0", "--json"}, args...)...)
	var greeting struct {
		URL    string `json:"url"`
		Skills int    `json:"skills"`
	}
	if err := json.NewDecoder(p.out).Decode(&greeting); err != nil {
		t.Fatalf("greeting: %v", err)
	}
	if greeting.Skills == 0 || !regexp.MustCompile(`^http://127\.0\.0\.1:[1-9][0-9]*/mcp$`).MatchString(greeting.URL) {
		t.Fatalf("greeting %+v", greeting)
	}
	return p, greeting.URL
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// post sends a message and returns the answer, whose body is still open.
func post(t *testing.T, url, session, message string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return do(t, req, session)
}

func do(t *testing.T, req *http.Request, session string) *http.Response {
	t.Helper()
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func needsSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program cannot be sent these signals here")
	}
}

// A server over HTTP ends on a signal, also while a client holds a
// stream open, and leaves its port free.
func TestHTTPInterrupted(t *testing.T) {
	needsSignals(t)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			p, url := serve(t)
			res := post(t, url, "", initialize)
			session := res.Header.Get("Mcp-Session-Id")
			if res.StatusCode != http.StatusOK || session == "" {
				t.Fatalf("initialize: %s, session %q", res.Status, session)
			}
			req, err := http.NewRequest(http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if stream := do(t, req, session); stream.StatusCode != http.StatusOK {
				t.Fatalf("stream: %s", stream.Status)
			}
			if err := p.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := p.end(t); code != exit.Interrupted {
				t.Errorf("exit code %d, want %d; %s", code, exit.Interrupted, p.stderr.String())
			}
			if p.stderr.Len() > 0 {
				t.Errorf("standard error: %s", p.stderr.String())
			}
			address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
			if l, err := net.Listen("tcp", address); err != nil {
				t.Errorf("the port is in use: %v", err)
			} else {
				l.Close()
			}
		})
	}
}

func TestHTTPToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := serve(t, "--token-file", file)
	for header, want := range map[string]int{"": 401, "Bearer 0123456789abcdeF": 401, "Bearer 0123456789abcdef": 200} {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(initialize))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", header)
		if res := do(t, req, ""); res.StatusCode != want {
			t.Errorf("%q: status %d, want %d", header, res.StatusCode, want)
		}
	}
}

func TestHTTPGreeting(t *testing.T) {
	p, _ := start(t, "mcp", "--http", "127.0.0.1:0")
	var text strings.Builder
	for !strings.Contains(text.String(), "Ctrl-C") {
		line, err := p.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %s", err, text.String())
		}
		text.WriteString(line)
	}
	m := regexp.MustCompile(`MCP endpoint: (http://\S+)`).FindStringSubmatch(text.String())
	if m == nil {
		t.Fatalf("no address in %s", text.String())
	}
	for _, want := range []string{" skills from bundled.\n", "  csv-analysis ", "  {\n    \"mcpServers\": {\n", `"url": "` + m[1] + `"`,
		"claude mcp add --transport http loadout " + m[1], "loadout connect CLIENT --url " + m[1]} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if res := post(t, m[1], "", initialize); res.StatusCode != http.StatusOK {
		t.Errorf("initialize: %s", res.Status)
	}
}

func TestHTTPInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, _ := start(t, "mcp", "--http", l.Addr().String())
	if code := p.end(t); code != exit.Failure {
		t.Errorf("exit code %d, want %d", code, exit.Failure)
	}
	if got := p.stderr.String(); !regexp.MustCompile(`^loadout: serve MCP at 127\.0\.0\.1:\d+: .*in use\n  .*another port`).MatchString(got) {
		t.Errorf("standard error: %s", got)
	}
}

// On standard input and output, a signal and the end of the input both end
// the server.
func TestStdioEnds(t *testing.T) {
	needsSignals(t)
	tests := map[string]struct {
		end  func(p *process, in io.Closer) error
		code int
	}{
		"interrupt":    {func(p *process, _ io.Closer) error { return p.Process.Signal(os.Interrupt) }, exit.Interrupted},
		"terminate":    {func(p *process, _ io.Closer) error { return p.Process.Signal(syscall.SIGTERM) }, exit.Interrupted},
		"end of input": {func(_ *process, in io.Closer) error { return in.Close() }, exit.OK},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, in := start(t, "mcp")
			if _, err := io.WriteString(in, initialize+"\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := p.out.ReadString('\n'); err != nil || !strings.Contains(line, `"serverInfo"`) {
				t.Fatalf("answer %q, %v", line, err)
			}
			if err := tt.end(p, in); err != nil {
				t.Fatal(err)
			}
			if code := p.end(t); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if p.stderr.Len() > 0 {
				t.Errorf("standard error: %s", p.stderr.String())
			}
		})
	}
}

// SIGHUP reads the skills again.
func TestSIGHUPReloads(t *testing.T) {
	needsSignals(t)
	p, in := start(t, "mcp", "--skills", ".", "--verbose")
	ask := func(id string) string {
		message := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"load_skill","arguments":{"name":"late"}}}`
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := p.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, `"id":`+id+`,`) {
				return line
			}
		}
	}
	if _, err := io.WriteString(in, initialize+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if got := ask("2"); !strings.Contains(got, `"isError":true`) {
		t.Fatalf("a skill that is missing: %s", got)
	}
	if err := os.MkdirAll(filepath.Join(p.home, "late"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.home, "late", "SKILL.md"), []byte("---\nname: late\ndescription: Came late.\n---\nHello.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for id := 3; id < 1500; id++ {
		if got := ask(strconv.Itoa(id)); strings.Contains(got, "Hello.") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the new skill does not appear")
}

// The command ends quietly if the reader of its output has exited, and reports other
// write errors.
func TestClosedOutput(t *testing.T) {
	needsSignals(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-c", "loadout config example | head -1").CombinedOutput()
	if got := strings.Count(string(out), "\n"); err != nil || got != 1 {
		t.Errorf("%d lines, %v: %s", got, err, out)
	}
	// A parent that ignores the signal passes that on.
	out, err = exec.CommandContext(ctx, "sh", "-c", "trap '' PIPE; loadout list | true").CombinedOutput()
	if len(out) > 0 || err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	for _, args := range []string{"list", "list --json", "version", "config example", "--help"} {
		out, err := exec.CommandContext(ctx, "sh", "-c", "loadout "+args+" > /dev/full").CombinedOutput()
		ee, _ := errors.AsType[*exec.ExitError](err)
		if ee == nil || ee.ExitCode() != exit.Failure || !strings.HasPrefix(string(out), "loadout: write standard output: no space left on device\n  ") {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
}
