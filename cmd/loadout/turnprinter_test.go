package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/exit"
)

// varyingID is the ID of a conversation.
var varyingID = regexp.MustCompile(`\d{8}-\d{6}-[a-z0-9]{5}`)

// chatted is the output of a conversation in this process.
type chatted struct {
	code           int
	stdout, stderr string
}

// chats runs loadout chat in this process with a new home directory.
func chats(ctx context.Context, t *testing.T, stdin string, args ...string) chatted {
	t.Helper()
	return chatsAt(ctx, t, t.TempDir(), stdin, args...)
}

// chatsAt is chats with a home directory.
func chatsAt(ctx context.Context, t *testing.T, home, stdin string, args ...string) chatted {
	t.Helper()
	env := map[string]string{"HOME": home, "PATH": os.Getenv("PATH"), "OPENAI_API_KEY": "sk-of-the-vendor", "LOADOUT_SKILLS_BUNDLED": "false"}
	var out, errs bytes.Buffer
	code := run(ctx, append([]string{"chat"}, args...), environment{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs, getenv: func(k string) string { return env[k] }, operator: testOperator()})
	return chatted{code, out.String(), errs.String()}
}

// refusing is a server that answers each request with a status.
func refusing(t *testing.T, status int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"error":{"message":"no"}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// cutting is a server whose stream ends in the middle of an answer.
func cutting(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Half an ans"}}]}`+"\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// gone is an address without a listener.
func gone(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/v1"
}

func TestFailedTurnSuggestsNextStep(t *testing.T) {
	for _, tt := range []struct {
		name, server string
		code, status int
		hint         string
		said         string
	}{
		{"no key", refusing(t, 401), 3, 401, "name the secret or variable with the key for 127.0.0.1", ""},
		{"no such model", refusing(t, 404), 4, 404, "check the name of the model and the address given with --base-url", ""},
		{"a wrong request", refusing(t, 400), 1, 400, "a retry would be refused too", ""},
		{"nobody there", gone(t), 1, 0, "check that the server runs", ""},
		{"a cut stream", cutting(t), 1, 0, "continue with: loadout chat --session ID --model openai:x --base-url URL --workspace", "Half an ans\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "my  folder")
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			args := []string{"-p", "hello", "--model", "openai:x", "--base-url", tt.server, "--workspace", folder}
			text := chats(t.Context(), t, "", args...)
			if text.code != tt.code || text.stdout != tt.said {
				t.Errorf("it ends with %d, and prints %q; want %d, %q", text.code, text.stdout, tt.code, tt.said)
			}
			asJSON := chats(t.Context(), t, "", append(args, "--json")...)
			var last struct {
				agent.Event
				Status int
				Hint   string
			}
			lines := strings.Split(strings.TrimSpace(asJSON.stdout), "\n")
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
				t.Fatalf("%v: %s", err, asJSON.stdout)
			}
			if asJSON.code != tt.code || last.Type != "error" || last.Status != tt.status || asJSON.stderr != "" {
				t.Errorf("as JSON it ends with %d, %+v, %s", asJSON.code, last, asJSON.stderr)
			}
			for _, hint := range []string{text.stderr, strings.ReplaceAll(last.Hint, last.Session, "ID")} {
				if hint = strings.ReplaceAll(hint, tt.server, "URL"); !strings.Contains(varyingID.ReplaceAllString(hint, "ID"), tt.hint) {
					t.Errorf("the hint is %q, want %q", hint, tt.hint)
				}
			}
			for _, hint := range []string{text.stderr, last.Hint} {
				if tt.said != "" && !strings.Contains(hint, "--workspace '"+folder+"'") {
					t.Errorf("the folder is not in %q", hint)
				}
			}
		})
	}
}

// Who is interrupted ends with 130, also as JSON.
func TestInterruptedTurn(t *testing.T) {
	for _, more := range [][]string{nil, {"--json"}} {
		ctx, interrupt := context.WithCancel(t.Context())
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			interrupt()
			<-r.Context().Done()
		}))
		got := chats(ctx, t, "", append([]string{"-p", "hello", "--model", "openai:x", "--base-url", s.URL + "/v1"}, more...)...)
		s.Close()
		if got.code != exit.Interrupted || got.stderr != "" {
			t.Errorf("%v: it ends with %d, %s", more, got.code, got.stderr)
		}
	}
}

// An address or a key without a model of that server is not passed over.
func TestBaseURLNeedsModel(t *testing.T) {
	for _, args := range [][]string{{"--base-url", "http://127.0.0.1:1/v1"}, {"--key", "OWN"}, {"--model", "demo", "--key", "OWN"}} {
		got := chats(t.Context(), t, "", append(args, "-p", "hello")...)
		if got.code != exit.Usage || !strings.Contains(got.stderr, "needs --model openai:NAME") || got.stdout != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// An empty response is reported as such.
func TestEmptyResponse(t *testing.T) {
	v := newVendor(t, `{"content":""}`)
	got := chats(t.Context(), t, "", "-p", "hello", "--model", "openai:x", "--base-url", v.URL+"/v1")
	if got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "returned no answer") {
		t.Errorf("%+v", got)
	}
}

// Piped input is appended to the prompt unchanged, marked as input, and within limits.
func TestPromptAndPipe(t *testing.T) {
	v := newVendor(t, `{"content":"ok"}`)
	args := []string{"-p", "Which is wrong?", "--model", "openai:x", "--base-url", v.URL + "/v1"}
	if got := chats(t.Context(), t, "a,b\n1,```2\n", args...); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	messages := v.requests[0]["messages"].([]any)
	if said := messages[len(messages)-1].(map[string]any)["content"]; said != "Which is wrong?\n\n````\na,b\n1,```2\n````" {
		t.Errorf("the model got %q", said)
	}
	if got := chats(t.Context(), t, strings.Repeat("x", 1<<20), args...); got.code != exit.Usage || !strings.Contains(got.stderr, "larger than") {
		t.Errorf("%d %s", got.code, got.stderr)
	}
}

// If nobody can be prompted, denied calls are counted, with the rule that would allow
// them.
func TestDeniedCallsAreCounted(t *testing.T) {
	v := newVendor(t, asksFor("1", "write_file", `{"path":"a","content":"b"}`), asksFor("2", "write_file", `{"path":"b","content":"b"}`), `{"content":"I could not."}`)
	got := chats(t.Context(), t, "", "-p", "Write.", "--model", "openai:x", "--base-url", v.URL+"/v1", "--workspace", t.TempDir())
	want := "loadout: 2 calls were denied\n  to allow them, add to policy.rules: allow mcp.workspace.write_file; to be asked on a terminal, use --approve ask\n"
	if got.code != 0 || got.stdout != "I could not.\n" || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("%d %s\n%s", got.code, got.stdout, got.stderr)
	}
}

// With --json what commands and preloaded skills come to are lines of it, too.
func TestCommandsAsJSON(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: tides\ndescription: Reads *tide* tables.\n---\nx\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := chats(t.Context(), t, "hello", "--json", "--skills", dir, "--preload", "tides", "--model", "demo")
	if first, _, _ := strings.Cut(got.stdout, "\n"); got.code != 0 || first != `{"type":"skill_loaded","skill":"tides"}` {
		t.Errorf("%+v", got)
	}
}

// An unreadable conversation is left unchanged, and a new one is started.
func TestDamagedConversation(t *testing.T) {
	state := t.TempDir()
	if err := os.Mkdir(filepath.Join(state, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "sessions", "one.jsonl"), []byte("{broken}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	code := run(t.Context(), []string{"chat", "-p", "hello", "--session", "one", "--model", "demo"}, environment{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &errs,
		getenv: func(k string) string { return map[string]string{"HOME": state, "LOADOUT_STATE": state}[k] }})
	if code != exit.Failure || !strings.Contains(errs.String(), "is damaged") || !strings.Contains(errs.String(), "start a new one: loadout chat") {
		t.Errorf("%d %s", code, errs.String())
	}
}
