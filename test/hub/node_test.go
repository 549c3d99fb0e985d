//go:build unix

package hub_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/bus/bustest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// patience is the time that a test waits for an expected event.
const patience = 2 * time.Minute

const secret = "a long enough one"

// hub is what its nodes have in common.
type hub struct {
	t      testing.TB
	exe    string
	env    []string
	args   []string
	client *http.Client
	token  string // of its administrator

	database string // its address
}

// newHub is a hub on a database, that wakes nodes by a Redis, or "". No node runs yet.
func newHub(t testing.TB, database, redis string, args ...string) *hub {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var key [32]byte
	rand.Read(key[:])
	h := &hub{t: t, exe: must(command())(t), client: &http.Client{Transport: transport}, database: database}
	h.args = append([]string{"serve", "--json", "--addr", "127.0.0.1:0", "--accounts", "--admin-password-file", password, "--private", "127.0.0.0/8", "--log", "json"}, args...)
	h.env = []string{"LOADOUT_DATABASE=" + database, "LOADOUT_REDIS=" + redis, "LOADOUT_HUB_RATE=100000", "LOADOUT_HUB_TITLES=first_message",
		"LOADOUT_HUB_KEY=" + base64.StdEncoding.EncodeToString(key[:])}
	return h
}

// onPostgres is a hub whose nodes share what tests of this process share, and a Redis of
// their own.
func onPostgres(t testing.TB, args ...string) *hub {
	t.Helper()
	return newHub(t, storetest.Postgres(t), bustest.Start(t).URL(), args...)
}

// home returns environment variables that hide the files of the user who runs the tests
// from a command.
func (h *hub) home(dir string) []string {
	env := append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_CACHE=", "LOADOUT_STATE=", "LOADOUT_CONFIG=",
		"OPENAI_API_KEY=", "ANTHROPIC_API_KEY=")
	return append(env, h.env...)
}

// node is a process that serves a hub.
type node struct {
	*hub
	cmd   *exec.Cmd
	dir   string // its home
	data  string
	url   string
	log   *logged
	ended chan struct{} // closed when it has
}

// logged is written to by a process, and read by a test.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *logged) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *logged) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// start starts a node and returns once it has printed its address. The first node of a
// hub signs its administrator in.
func (h *hub) start(args ...string) *node {
	h.t.Helper()
	return h.startIn(h.t.TempDir(), args...)
}

// startIn starts a node with its home in a directory.
func (h *hub) startIn(dir string, args ...string) *node {
	h.t.Helper()
	n := &node{hub: h, dir: dir, log: &logged{}, ended: make(chan struct{})}
	n.cmd = exec.Command(h.exe, append(h.args, args...)...)
	n.cmd.Dir, n.cmd.Stderr, n.cmd.Env, n.cmd.SysProcAttr = dir, n.log, h.home(dir), tether()
	out := must(n.cmd.StdoutPipe())(h.t)
	if err := n.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { n.cmd.Process.Kill() })
	var greeting struct{ URL, Data string }
	read := bufio.NewReader(out)
	err := json.NewDecoder(read).Decode(&greeting)
	late.Stop()
	go func() {
		defer close(n.ended)
		io.Copy(io.Discard, read)
		_ = n.cmd.Wait() // how it ended is in its state
	}()
	h.t.Cleanup(func() {
		n.kill()
		if log := n.log.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic: ") {
			h.t.Errorf("a node says\n%s", log)
		} else if h.t.Failed() {
			h.t.Logf("the node at %s says\n%s", n.url, log)
		}
	})
	if err != nil {
		h.t.Fatalf("it says nothing: %v\n%s", err, n.log)
	}
	n.url, n.data = greeting.URL, greeting.Data
	if h.token == "" {
		n.signIn()
	}
	return n
}

// kill ends a node as when its machine fails.
func (n *node) kill() {
	n.cmd.Process.Kill()
	<-n.ended
}

// tell tells a node to end.
func (n *node) tell() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
}

// stop tells a node to end, and waits until it has, as it should.
func (n *node) stop() {
	n.t.Helper()
	n.tell()
	n.exit()
}

// exit waits for the exit of a stopping node.
func (n *node) exit() {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-time.After(patience):
		n.t.Fatalf("it does not end\n%s", n.log)
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		n.t.Errorf("exit code %d\n%s", code, n.log)
	}
}

// run runs a command beside the nodes, with the home of this one.
func (n *node) run(args ...string) (code int, output string) {
	n.t.Helper()
	cmd := exec.Command(n.exe, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = n.dir, n.home(n.dir), tether()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		n.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// reply is an answer that was read.
type reply struct {
	status int
	header http.Header
	body   string
}

// want fails the test if a response has another status.
func (r reply) want(t testing.TB, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// into reads the body.
func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%q: %v", r.body, err)
	}
}

func (r reply) text(t testing.TB, name string) string {
	t.Helper()
	var fields map[string]any
	r.into(t, &fields)
	text, _ := fields[name].(string)
	return text
}

// typed is a body that is not JSON.
type typed struct {
	kind string
	data []byte
}

// send sends a request of the administrator.
func (n *node) send(method, path string, body any) reply {
	n.t.Helper()
	r, err := n.ask(n.token, method, path, body)
	if err != nil {
		n.t.Fatalf("%s %s: %v\n%s", method, path, err, n.log)
	}
	return r
}

// ask sends a request with a token.
func (n *node) ask(token, method, path string, body any) (reply, error) {
	return n.askOnce(token, "", method, path, body)
}

// askOnce is like ask, with an Idempotency-Key unless key is "".
func (n *node) askOnce(token, key, method, path string, body any) (reply, error) {
	var in io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case typed:
		in, kind = bytes.NewReader(b.data), b.kind
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return reply{}, err
		}
		in = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, n.url+path, in)
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := (&http.Client{Transport: n.client.Transport, Timeout: patience}).Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(data)}, err
}

// signIn makes a token that may do everything.
func (n *node) signIn() {
	n.t.Helper()
	n.hub.token = n.tokenOf("admin", secret)
}

// tokenOf makes a token of a user.
func (n *node) tokenOf(name, password string, scopes ...string) string {
	n.t.Helper()
	if scopes == nil {
		scopes = []string{"read", "write", "run", "chat", "mcp", "review", "admin"}
	}
	r := must(n.ask("", "POST", "/api/v1/login", map[string]string{"name": name, "password": password}))(n.t).want(n.t, 200)
	cookies := (&http.Response{Header: r.header}).Cookies()
	if len(cookies) != 1 {
		n.t.Fatalf("the cookies are %v", cookies)
	}
	req := must(http.NewRequest("POST", n.url+"/api/v1/tokens", bytes.NewReader(must(json.Marshal(map[string]any{"name": "test", "scopes": scopes}))(n.t))))(n.t)
	req.Header.Set("Content-Type", "application/json")
	req.AddCookie(cookies[0])
	res := must(n.client.Do(req))(n.t)
	defer res.Body.Close()
	var made struct{ Token string }
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil || made.Token == "" {
		n.t.Fatalf("no token: %s %v", res.Status, err)
	}
	return made.Token
}

// eventually waits until something is so: where nothing tells of it.
func (n *node) eventually(what string, is func() bool) {
	n.t.Helper()
	late := time.After(patience)
	for !is() {
		select {
		case <-late:
			n.t.Fatalf("it never was that %s\n%s", what, n.log)
		case <-n.ended:
			n.t.Fatalf("it ended before %s\n%s", what, n.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ready reports whether a node is ready, with its message.
func (n *node) ready() (bool, string) {
	r, err := n.ask("", "GET", "/readyz", nil)
	return err == nil && r.status == 200, fmt.Sprint(r.status, " ", r.body, err)
}
