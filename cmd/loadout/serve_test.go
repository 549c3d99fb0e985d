package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// served is a hub process.
type served struct {
	*exec.Cmd
	url      string
	greeting hubGreeting
	log      *lockedBuffer
	ended    chan error
}

// lockedBuffer is written to by a process, and read by a test.
type lockedBuffer struct {
	mu     sync.Mutex
	change sync.Cond // with mu: something was written, or closed is set
	closed bool
	all    bytes.Buffer
}

func newLockedBuffer() *lockedBuffer {
	b := &lockedBuffer{}
	b.change.L = &b.mu
	return b
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change.Broadcast()
	return b.all.Write(p)
}

// close ends all waits: the process has exited.
func (b *lockedBuffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.change.Broadcast()
}

// waitForLine waits for the first line that contains prefix and returns the rest of it.
// It returns "" if the process exits without writing it.
func (b *lockedBuffer) waitForLine(prefix string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		_, rest, _ := strings.Cut(b.all.String(), prefix)
		if line, _, whole := strings.Cut(rest, "\n"); whole || b.closed {
			return line
		}
		b.change.Wait()
	}
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// serveHub starts a hub in a home directory with variables as NAME=VALUE, and returns
// once it has printed its address.
func serveHub(t *testing.T, home string, env []string, args ...string) *served {
	t.Helper()
	s := &served{Cmd: exec.Command("loadout", append([]string{"serve", "--addr", "127.0.0.1:0", "--json"}, args...)...), log: newLockedBuffer(), ended: make(chan error, 1)}
	s.Dir, s.Stderr = home, s.log
	s.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_CACHE=", "LOADOUT_STATE=", "LOADOUT_CONFIG=")
	s.Env = append(s.Env, env...)
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { s.Process.Kill() })
	read := bufio.NewReader(out)
	err = json.NewDecoder(read).Decode(&s.greeting)
	go func() {
		io.Copy(io.Discard, read)
		s.ended <- s.Wait()
		close(s.ended)
		s.log.close()
	}()
	t.Cleanup(func() { late.Stop(); s.Process.Kill(); <-s.ended })
	if err != nil {
		t.Fatalf("it says nothing: %v\n%s", err, s.log)
	}
	s.url = s.greeting.URL
	return s
}

// stop tells the hub to end, and returns its exit code.
func (s *served) stop(t *testing.T) int {
	t.Helper()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return s.exit(t)
}

func (s *served) exit(t *testing.T) int {
	t.Helper()
	if err := <-s.ended; err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return s.ProcessState.ExitCode()
}

// ask sends a request, and returns the status and the body.
func (s *served) ask(t *testing.T, method, path, token string, body any) (int, string) {
	t.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, s.url+path, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// loadoutIn runs a command in a home directory.
func loadoutIn(home string, env []string, args ...string) (code int, stdout, stderr string) {
	cmd := exec.Command("loadout", args...)
	var out, problems strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, &out, &problems
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_CACHE=", "LOADOUT_STATE=", "LOADOUT_CONFIG=")
	cmd.Env = append(cmd.Env, env...)
	_ = cmd.Run() // the code says it
	return cmd.ProcessState.ExitCode(), out.String(), problems.String()
}

// Without configuration, one command serves a single user.
func TestServeWithoutConfiguration(t *testing.T) {
	needsSignals(t)
	home := t.TempDir()
	s := serveHub(t, home, nil)
	if g := s.greeting; g.Mode != "single" || g.Database != "SQLite" || g.Model != "demo" || g.Setup || g.Data != filepath.Join(home, ".local/state/loadout/hub") {
		t.Errorf("the greeting is %+v", g)
	}
	if code, body := s.ask(t, "GET", "/readyz", "", nil); code != 200 || !strings.HasPrefix(body, "ok\n") {
		t.Errorf("not ready: %d %s", code, body)
	}
	if code, body := s.ask(t, "GET", "/api/v1/me", "", nil); code != 200 || !strings.Contains(body, `"local"`) {
		t.Errorf("who is asking: %d %s", code, body)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "hub.db": 0o600} {
		if fi, err := os.Stat(filepath.Join(s.greeting.Data, name)); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%q has the mode %v (%v), want %v", name, fi, err, want)
		}
	}
	if code, body := s.ask(t, "GET", "/api/v1/skills?namespace=bundled", "", nil); code != 200 || !strings.Contains(body, `"csv-analysis"`) {
		t.Errorf("the library lists %d %s", code, body)
	}
	if code := s.stop(t); code != exit.OK {
		t.Errorf("exit code %d\n%s", code, s.log)
	}
	for line := range strings.Lines(s.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
}

// --open opens the page, without the setup link, which is secret.
func TestServeOpen(t *testing.T) {
	needsSignals(t)
	home := t.TempDir()
	opened, browser := filepath.Join(home, "opened"), filepath.Join(home, "browser")
	if err := exec.Command("mkfifo", opened).Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(browser, []byte("#!/bin/sh\necho \"$1\" >"+opened+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := serveHub(t, home, []string{"BROWSER=" + browser}, "--accounts", "--open")
	if page, err := os.ReadFile(opened); err != nil || string(page) != s.url+"\n" {
		t.Errorf("opened %q (%v), want %s", page, err, s.url)
	}
}

// Two hubs must not have one directory.
func TestServeRefusesDirectoryInUse(t *testing.T) {
	needsSignals(t)
	home := t.TempDir()
	s := serveHub(t, home, nil)
	code, _, stderr := loadoutIn(home, nil, "serve", "--addr", "127.0.0.1:0")
	if code != exit.Failure || !strings.Contains(stderr, "is in use by another hub") || !strings.Contains(stderr, "--data") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, _ := s.ask(t, "GET", "/readyz", "", nil); code != 200 {
		t.Errorf("the first is not ready: %d", code)
	}
}

// The link for the first administrator is printed once it listens, works once, and is
// nowhere but there.
func TestServeAccounts(t *testing.T) {
	needsSignals(t)
	s := serveHub(t, t.TempDir(), nil, "--accounts")
	link := s.log.waitForLine(s.url + "/setup/")
	if !s.greeting.Setup || s.greeting.Mode != "accounts" || link == "" {
		t.Fatalf("no link in\n%s", s.log)
	}
	if code, _ := s.ask(t, "GET", "/api/v1/groups", "", nil); code != 401 {
		t.Errorf("somebody got in: %d", code)
	}
	const password = "a long enough one"
	admin := map[string]string{"link": link, "name": "ada", "password": password}
	if code, body := s.ask(t, "POST", "/api/v1/setup", "", admin); code/100 != 2 {
		t.Fatalf("no administrator: %d %s", code, body)
	}
	if code, _ := s.ask(t, "POST", "/api/v1/setup", "", admin); code/100 == 2 {
		t.Error("the link works twice")
	}
	if code, body := s.ask(t, "POST", "/api/v1/login", "", map[string]string{"name": "ada", "password": password}); code != 200 {
		t.Errorf("no sign-in: %d %s", code, body)
	}
	s.stop(t)
	if strings.Contains(s.log.String(), password) || strings.Count(s.log.String(), link) != 1 {
		t.Errorf("a secret is in the log:\n%s", s.log)
	}
}

func TestServeFirstAdministrator(t *testing.T) {
	needsSignals(t)
	home := t.TempDir()
	file := filepath.Join(home, "password")
	if err := os.WriteFile(file, []byte("a long enough one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveHub(t, home, []string{"LOADOUT_HUB_ADMIN=grace"}, "--accounts", "--admin-password-file", file)
	if s.greeting.Setup || strings.Contains(s.log.String(), "/setup/") {
		t.Errorf("unexpected link as well:\n%s", s.log)
	}
	if code, body := s.ask(t, "POST", "/api/v1/login", "", map[string]string{"name": "grace", "password": "a long enough one"}); code != 200 {
		t.Errorf("no sign-in: %d %s", code, body)
	}
	s.stop(t)
	// From now on users sign in, with or without the setting.
	s = serveHub(t, home, nil)
	if s.greeting.Mode != "accounts" || s.greeting.Setup {
		t.Errorf("the greeting is %+v", s.greeting)
	}
}

// Running requests are answered when the hub stops, even if that takes longer than the
// timeout of other commands.
func TestServeDrains(t *testing.T) {
	needsSignals(t)
	if testing.Short() {
		t.Skip("it is about time that passes")
	}
	s := serveHub(t, t.TempDir(), nil, "--drain", "30s")
	conn, finish := begin(t, s)
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	refused(t, s)
	time.Sleep(shutdownTimeout + shutdownTimeout/4) // nothing should happen meanwhile
	select {
	case <-s.ended:
		t.Fatalf("it ended with a request under way\n%s", s.log)
	default:
	}
	finish()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("it was not answered: %v\n%s", err, s.log)
	}
	res.Body.Close()
	if res.StatusCode != 422 && res.StatusCode/100 != 2 {
		t.Errorf("it was answered with %s", res.Status)
	}
	conn.Close()
	if code := s.exit(t); code != exit.OK {
		t.Errorf("exit code %d\n%s", code, s.log)
	}
}

// A second signal waits for nothing, not even if it comes before the hub has
// noticed the first.
func TestServeStopsAtSecondSignal(t *testing.T) {
	needsSignals(t)
	for _, c := range []struct {
		name string
		wait func(*testing.T, *served) // between the signals
	}{
		{"while the hub stops", refused},
		{"at once", func(*testing.T, *served) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serveHub(t, t.TempDir(), nil, "--drain", "10m", "--private", "127.0.0.0/8")
			askAPlaceThatHangs(t, s)
			if err := s.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			c.wait(t, s)
			if err := s.Process.Signal(syscall.SIGINT); err != nil { // equal signals could become one
				t.Fatal(err)
			}
			if code := s.exit(t); code != exit.Interrupted {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// askAPlaceThatHangs begins a request that is at work for minutes.
func askAPlaceThatHangs(t *testing.T, s *served) {
	t.Helper()
	asked, over := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	body := fmt.Sprintf(`{"source":"%s/pdf.zip","namespace":"default"}`, server.URL)
	fmt.Fprintf(conn, "POST /api/v1/skills/import/look HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	answered := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(conn, 2000))
		answered <- string(b)
	}()
	select {
	case <-asked:
	case got := <-answered:
		t.Fatalf("it was answered at once: %s", got)
	}
}

// begin begins a request that is at work until finish is called.
func begin(t *testing.T, s *served) (conn net.Conn, finish func()) {
	t.Helper()
	const body = `{"title":"of a slow client"}`
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	line, err := bufio.NewReader(conn).ReadString('\n') // once the body is read
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("it begins with %q: %v", line, err)
	}
	return conn, func() { io.WriteString(conn, body) }
}

// refused waits until no more connections are accepted.
func refused(t *testing.T, s *served) {
	t.Helper()
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			return
		}
		conn.Close()
		select {
		case <-s.ended:
			t.Fatalf("it ended with a request under way\n%s", s.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A running hub is backed up, and a restored copy is identical.
func TestBackupAndRestore(t *testing.T) {
	needsSignals(t)
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "copy.db")
	s := serveHub(t, home, nil)
	code, body := s.ask(t, "POST", "/api/v1/groups", "", map[string]string{"name": "crew"})
	if code/100 != 2 {
		t.Fatalf("no group: %d %s", code, body)
	}
	code, stdout, stderr := loadoutIn(home, nil, "backup", file)
	if code != exit.OK || !strings.Contains(stdout, "Backed up the database") || !strings.Contains(stdout, "hub/key") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := loadoutIn(home, nil, "backup", file); code != exit.Refused {
		t.Errorf("a copy is written over another: %d %s", code, stderr)
	}
	if code, _, stderr := loadoutIn(home, nil, "restore", file, "--force"); code != exit.Failure || !strings.Contains(stderr, "in use by another hub") {
		t.Errorf("a hub that runs is restored: %d %s", code, stderr)
	}
	if code, stdout, _ := loadoutIn(home, nil, "serve", "--check"); code != exit.OK || !strings.Contains(stdout, "No problems found") {
		t.Errorf("a hub that runs is not in order: %d %s", code, stdout)
	}
	s.stop(t)
	if code, _, stderr := loadoutIn(home, nil, "restore", file); code != exit.Refused || !strings.Contains(stderr, "--force") {
		t.Errorf("it is replaced unasked: %d %s", code, stderr)
	}
	code, stdout, stderr = loadoutIn(home, nil, "restore", file, "--force", "--json")
	var out struct{ Database, Aside string }
	if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != exit.OK {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(out.Aside); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
	other := t.TempDir()
	if code, stdout, stderr := loadoutIn(other, nil, "restore", file); code != exit.OK {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, dir := range []string{home, other} {
		s := serveHub(t, dir, nil)
		if code, body := s.ask(t, "GET", "/api/v1/groups", "", nil); code != 200 || !strings.Contains(body, `"crew"`) {
			t.Errorf("the group is missing: %d %s", code, body)
		}
		s.stop(t)
	}
}

func TestRestoreRefusesOtherFiles(t *testing.T) {
	needsSignals(t)
	home := t.TempDir()
	serveHub(t, home, nil).stop(t)
	good := filepath.Join(home, "good.db")
	if code, _, stderr := loadoutIn(home, nil, "backup", good); code != exit.OK {
		t.Fatal(stderr)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"text": []byte("not a database"), "cut": whole[:len(whole)/2], "empty": nil} {
		bad := filepath.Join(home, name)
		if err := os.WriteFile(bad, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := loadoutIn(home, nil, "restore", bad, "--force"); code != exit.Failure || stderr == "" {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
	}
	if code, stdout, _ := loadoutIn(home, nil, "serve", "--check", "--json"); code != exit.OK || !strings.Contains(stdout, `"ok": true`) {
		t.Errorf("what was there is not in order: %d %s", code, stdout)
	}
	left, err := filepath.Glob(filepath.Join(home, ".local/state/loadout/hub/.restore-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("what was copied is left: %q %v", left, err)
	}
}

// A check reports damage and exits with 1.
func TestCheckDetectsDamage(t *testing.T) {
	needsSignals(t)
	home := t.TempDir()
	serveHub(t, home, nil).stop(t)
	db, err := store.Open(t.Context(), filepath.Join(home, ".local/state/loadout/hub/hub.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Sessions.Create(t.Context(), store.Session{Owner: "nobody", Title: "of nobody", Data: []byte("{}")})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := loadoutIn(home, nil, "serve", "--check", "--json")
	var r hubReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exit.Failure || r.OK || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "has no owner") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// Errors that keep a hub from being opened have a next step of their own.
func TestHubErrors(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		next string
	}{
		{&hub.KeyError{Reason: "there is none", Next: "make one"}, exit.Missing, "make one; set LOADOUT_HUB_KEY or --key-file"},
		{&hub.InUseError{Dir: "/srv/hub"}, exit.Failure, "stop that hub first, or name another directory with --data"},
		{fmt.Errorf("open: %w", store.ErrTooNew), exit.Failure, "use the newer loadout that created it"},
		{fmt.Errorf("open: %w", store.ErrUnavailable), exit.Missing, "check that the database server is running, and that --database or LOADOUT_DATABASE names it"},
		{fmt.Errorf("open: %w", store.ErrFull), exit.Failure, "free disk space"},
		{errors.New("another"), exit.Failure, "see: loadout serve --help"},
	} {
		e, ok := errors.AsType[*exit.Error](classifyHubError(tt.err))
		if !ok || e.Code != tt.code || e.Hint != tt.next {
			t.Errorf("%v: %+v", tt.err, e)
		}
	}
}

// Models that users define reach the public internet and the addresses that the operator
// allows. A key is never sent without encryption, and the operator's key is used for the
// operator's model only.
func TestDefinedModels(t *testing.T) {
	asked := make(chan string, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	defer server.Close()
	models := func(private ...netip.Prefix) func(*agents.ModelChoice, string) (llm.Model, error) {
		a := newApp(environment{getenv: func(name string) string {
			return map[string]string{"OPENAI_API_KEY": "of the operator"}[name]
		}})
		f, err := a.newHubModels(t.Context(), &config.Config{Models: config.Models{Default: "openai:ours"}}, private)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	base := (&url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/v1"}).String()
	local := &agents.ModelChoice{Name: "local", Model: agents.Model{Vendor: "openai", Model: "x", BaseURL: base}}
	m, err := models()(local, "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := streamError(t, m); err == nil || !strings.Contains(err.Error(), "refusing to connect to loopback address") {
		t.Errorf("a loopback address is reached: %v", err)
	}
	if m, err = models(netip.MustParsePrefix("127.0.0.0/8"))(local, "k"); err != nil {
		t.Fatal(err)
	}
	if err := streamError(t, m); err == nil || <-asked != "Bearer k" {
		t.Errorf("an address that is let through is not reached: %v", err)
	}
	clear := &agents.ModelChoice{Name: "clear", Model: agents.Model{Vendor: "openai", Model: "x", BaseURL: "http://models.example.com/v1"}}
	if _, err := models()(clear, "k"); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("a key would be sent in clear: %v", err)
	}
	for _, vendor := range []string{"openai", "anthropic"} {
		if _, err := models()(&agents.ModelChoice{Name: "dear", Model: agents.Model{Vendor: vendor, Model: "dear"}}, ""); err == nil {
			t.Errorf("%s: somebody's model has the key of the operator", vendor)
		}
	}
	own, err := models()(nil, "")
	if err != nil || own.Name() != "openai:ours" {
		t.Errorf("the hub's own model is %v: %v", own, err)
	}
}

func streamError(t *testing.T, m llm.Model) error {
	t.Helper()
	for _, err := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("hello")}}}}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// The pages that show serve quote its first line.
func TestServeGreetingIsQuoted(t *testing.T) {
	var out bytes.Buffer
	a := newApp(environment{stdout: &out, getenv: func(string) string { return "" }})
	a.printHubText(hubGreeting{Mode: "single", Database: "SQLite", Data: "DIR"})
	line, _, _ := strings.Cut(out.String(), "DIR")
	for _, page := range []string{"README.md", "README.zh.md", "docs/hub.md", "docs/zh/hub.md"} {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n"+line) {
			t.Errorf("%s does not quote %q", page, line)
		}
	}
}
