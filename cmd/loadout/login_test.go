package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
)

// withServersFile is a home directory with servers, as servers.yaml has them.
func withServersFile(t *testing.T, servers string) string {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, ".config", "loadout", "servers.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("mcpServers:\n"+servers), 0o644); err != nil {
		t.Fatal(err)
	}
	return home
}

// ended runs a command and returns its exit code and output.
func ended(t *testing.T, home string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p, _ := startIn(t, home, args...)
	out, err := io.ReadAll(p.out)
	if err != nil {
		t.Fatal(err)
	}
	code = p.end(t)
	return code, string(out), p.stderr.String()
}

var page = regexp.MustCompile(`^  (http://\S+)$`)

// person signs in by opening the page that the command prints.
func person(t *testing.T, home string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "loadout", append([]string{"servers", "login", "--no-browser"}, args...)...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "LOADOUT_CACHE=", "LOADOUT_STATE=", "LOADOUT_CONFIG=")
	var out, said bytes.Buffer
	cmd.Stdout = &out
	lines, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(lines); in.Scan(); {
		fmt.Fprintln(&said, in.Text())
		if m := page.FindStringSubmatch(in.Text()); m != nil {
			if _, err := oauthtest.Browse(m[1]); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

// TestLogin is the life of a sign-in, over processes.
func TestLogin(t *testing.T) {
	issuer := oauthtest.New(t)
	home := withServersFile(t, "  guarded: {url: '"+issuer.Serve(t)+"'}\n")

	_, out, _ := ended(t, home, "servers", "--json")
	var list serversOutput
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	if s := list.Servers[0]; s.State != "DEAD" || !strings.HasSuffix(s.Error, "sign in with: loadout servers login guarded") {
		t.Errorf("before: %s, %q", s.State, s.Error)
	}

	code, out, stderr := person(t, home, "guarded", "--json")
	var login loginOutput
	if err := json.Unmarshal([]byte(out), &login); err != nil {
		t.Fatalf("%v in %q, %s", err, out, stderr)
	}
	if code != exit.OK || login.State != "READY" || login.Tools != 1 || login.Issuer != issuer.URL || !login.Renewed {
		t.Errorf("exit code %d, %+v", code, login)
	}
	if strings.Contains(out+stderr, "access-") || strings.Contains(out+stderr, "refresh-") {
		t.Error("a token is shown")
	}

	if code, out, _ = ended(t, home, "servers", "test", "guarded"); code != exit.OK || !strings.Contains(out, "guarded is READY") {
		t.Errorf("another process: %d, %s", code, out)
	}
	if code, out, _ = ended(t, home, "servers", "logout", "guarded"); code != exit.OK || !strings.HasPrefix(out, "Signed out of guarded and revoked the token.") {
		t.Errorf("signing out: %d, %s", code, out)
	}
	if n := issuer.ValidTokens(); n != 0 {
		t.Errorf("%d tokens are still good", n)
	}
	if code, out, _ = ended(t, home, "servers", "logout", "guarded", "--json"); code != exit.OK || !strings.Contains(out, `"signed_out": false`) {
		t.Errorf("signing out again: %d, %s", code, out)
	}
	if code, out, _ = ended(t, home, "servers", "test", "guarded"); code != exit.Failure || !strings.Contains(out, "loadout servers login guarded") {
		t.Errorf("after it: %d, %s", code, out)
	}

	code, out, stderr = person(t, home, "guarded")
	if code != exit.OK || !strings.HasSuffix(out, " It has 1 tool.\n") {
		t.Errorf("for users: %d, %s%s", code, out, stderr)
	}
	issuer.Deny("access_denied")
	if code, _, stderr = person(t, home, "guarded"); code != exit.Failure || !strings.Contains(stderr, "denied: access_denied\n  try again: loadout servers login guarded\n") {
		t.Errorf("where the user says no: %d, %s", code, stderr)
	}
}

func TestLoginRefused(t *testing.T) {
	home := withServersFile(t, `
  local: {command: "true"}
  header: {url: "https://mcp.example.com/mcp", headers: {authorization: "Bearer ${TOKEN:-x}"}}
  user: {url: "https://me:pass@mcp.example.com/mcp"}
  unset: {url: "https://mcp.example.com/${LOADOUT_TEST_NO_SUCH}"}
`)
	for _, tt := range []struct {
		name string
		code int
		want string
	}{
		{"nope", exit.NotFound, "MCP server \"nope\" not found\n  list your servers: loadout servers"},
		{"local", exit.Usage, "local uses stdio"},
		{"header", exit.Usage, "header has credentials in its configuration"},
		{"user", exit.Usage, "user has credentials in its configuration"},
		{"unset", exit.Failure, "unset is not configured"},
	} {
		if code, out, stderr := ended(t, home, "servers", "login", tt.name); code != tt.code || out != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit code %d, want %d; %s", tt.name, code, tt.code, stderr)
		}
	}
}

func TestLoginOnAnotherHub(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	home := withServersFile(t, "  guarded: {url: '"+server+"', oauth: {issuer: 'https://login.example.com'}}\n  free: {url: '"+server+"'}\n")
	code, _, stderr := person(t, home, "guarded")
	if want := "issuer mismatch: the server names " + issuer.URL + ", but its configuration has https://login.example.com\n  ask the operator of the server which issuer is right;"; code != exit.Refused || !strings.Contains(stderr, want) {
		t.Errorf("another one than written: exit code %d, %s", code, stderr)
	}
	if code, _, stderr = person(t, home, "free"); code != exit.OK {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	kept, err := filepath.Glob(filepath.Join(home, ".local", "state", "loadout", "oauth", "*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("it keeps %v, %v", kept, err)
	}
	b, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept[0], bytes.Replace(b, []byte(`"issuer":"`+issuer.URL), []byte(`"issuer":"https://login.example.com`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = person(t, home, "free")
	if want := ", but the last sign-in was at https://login.example.com\n  ask the operator of the server whether its issuer changed; if so: loadout servers logout free, then: loadout servers login free\n"; code != exit.Refused || !strings.Contains(stderr, want) {
		t.Errorf("another one than before: exit code %d, %s", code, stderr)
	}
	if code, _, stderr = ended(t, home, "servers", "logout", "free"); code != exit.OK {
		t.Errorf("signing out: %d, %s", code, stderr)
	}
	if code, _, stderr = person(t, home, "free"); code != exit.OK {
		t.Errorf("after it: %d, %s", code, stderr)
	}
}

// The command to sign in names the file that a server was found by.
func TestLoginWithTokenFile(t *testing.T) {
	issuer := oauthtest.New(t)
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "my servers.json"), fmt.Appendf(nil, `{"mcpServers": {"guarded": {"url": %q}}}`, issuer.Serve(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := ended(t, home, "servers", "--mcp-config", "my servers.json"); !strings.Contains(out, "loadout servers login guarded --mcp-config 'my servers.json'") {
		t.Errorf("got %s", out)
	}
	if code, out, stderr := person(t, home, "guarded", "--mcp-config", "my servers.json"); code != exit.OK {
		t.Errorf("exit code %d, %s%s", code, out, stderr)
	}
}

func TestLoginOpensTheBrowser(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program that is a shell script")
	}
	issuer := oauthtest.New(t)
	home := withServersFile(t, "  guarded: {url: '"+issuer.Serve(t)+"'}\n")
	browser, opened := filepath.Join(home, "browser"), filepath.Join(home, "opened")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\nprintf %s \"$1\" > "+opened+".new && mv "+opened+".new "+opened+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROWSER", browser)
	p, in := startIn(t, home, "servers", "login", "guarded")
	in.Close()
	deadline := time.After(20 * time.Second)
	for {
		if b, err := os.ReadFile(opened); err == nil {
			if status, err := oauthtest.Browse(string(b)); err != nil || status != 200 {
				t.Errorf("the browser sees %d, %v", status, err)
			}
			break
		}
		select {
		case <-deadline:
			t.Fatal("no browser was opened")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if code := p.end(t); code != exit.OK {
		t.Errorf("exit code %d, %s", code, p.stderr.String())
	}
}

// The reason why a user cannot sign in is printed once, with a useful next step.
func TestLoginImpossible(t *testing.T) {
	home := withServersFile(t, "  unset: {url: 'https://mcp.example.com/mcp', headers: {X-Key: '${NOWHERE}'}}\n  refused: {url: 'http://127.0.0.1:1/mcp'}\n")
	code, _, stderr := ended(t, home, "servers", "login", "unset")
	if code != exit.Failure || !strings.HasPrefix(stderr, "loadout: unset is not configured: header X-Key has no value for ${NOWHERE}\n  ") {
		t.Errorf("without its variable: %d, %s", code, stderr)
	}
	if code, out, stderr := ended(t, home, "servers", "logout", "unset"); code != exit.OK || out != "You were not signed in to unset.\n" {
		t.Errorf("signing out needs no variable: %d, %s, %s", code, out, stderr)
	}
	code, _, stderr = ended(t, home, "servers", "login", "--no-browser", "refused")
	if code != exit.Failure || !strings.Contains(stderr, "sign in to refused: cannot connect: ") || !strings.Contains(stderr, "check its url, and that it is running") {
		t.Errorf("nobody listens there: %d, %s", code, stderr)
	}
}
