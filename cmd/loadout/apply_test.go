package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
)

// hubScene is a hub, a directory with files, and who runs commands there.
type hubScene struct {
	t     *testing.T
	url   string
	token string
	dir   string
}

const hubPassword = "a long enough one"

// newHubScene opens a hub with accounts, and a token of its administrator.
func newHubScene(t *testing.T, files map[string]string) *hubScene {
	t.Helper()
	h, err := hub.Open(t.Context(), hub.Options{Data: t.TempDir(), Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: hubPassword},
		Cost: account.Cost{Memory: 64, Time: 1, Lanes: 1}, Rate: -1})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &hubScene{t: t, url: server.URL, dir: t.TempDir()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cookie := s.post("/login", map[string]any{"name": "root", "password": hubPassword}, nil, nil)
	var made struct{ Token string }
	s.post("/tokens", map[string]any{"name": "cli", "scopes": []string{"read", "write"}}, cookie, &made)
	if s.token = made.Token; s.token == "" {
		t.Fatal("no token")
	}
	return s
}

func (s *hubScene) post(path string, body any, cookie *http.Cookie, into any) *http.Cookie {
	s.t.Helper()
	return s.send("POST", path, body, cookie, into)
}

func (s *hubScene) send(method, path string, body any, cookie *http.Cookie, into any) *http.Cookie {
	s.t.Helper()
	data, _ := json.Marshal(body)
	req, err := http.NewRequest(method, s.url+"/api/v1"+path, strings.NewReader(string(data)))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if cookie != nil {
		req.AddCookie(cookie)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		s.t.Fatalf("%s: %s", path, resp.Status)
	}
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, c := range resp.Cookies() {
		return c
	}
	return nil
}

// loadout runs a command, in whose arguments DIR is the directory of the files.
func (s *hubScene) loadout(stdin string, env map[string]string, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	for i, a := range args {
		args[i] = strings.Replace(a, "DIR", s.dir, 1)
	}
	var out, problems strings.Builder
	code = run(s.t.Context(), args, environment{stdin: strings.NewReader(stdin), stdout: &out, stderr: &problems, getenv: func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		return map[string]string{"LOADOUT_HUB": s.url, "LOADOUT_HUB_TOKEN": s.token}[name]
	}})
	clean := strings.NewReplacer(s.dir, "DIR", s.url, "HUB")
	return clean.Replace(out.String()), clean.Replace(problems.String()), code
}

const (
	ghosts = "# of the team\nkind: Ghost\nmetadata: {name: plan}\nspec: {systemPrompt: Plan.}\n---\nkind: Shell\nmetadata: {name: Chat}\n"
	bots   = "---\napiVersion: loadout/v1\nkind: Bot\nmetadata: {name: lead}\nspec: {ghostRef: plan}"
	skills = "{\n\t\"kind\": \"Skill\", \"metadata\": {\"name\": \"prose\"},\n\t\"spec\": {\"description\": \"Writes.\", \"prompt\": \"Write.\"}\n}\n"
	broken = "kind: Ghost\nmetadata: {name: other}\nspec:\n  skills: [a]\n  preload: [b]\n"
)

func TestApply(t *testing.T) {
	s := newHubScene(t, map[string]string{"ghosts.yaml": ghosts, "bots.yaml": bots, "skills.json": skills, "broken.yaml": broken, "empty.yaml": "\n"})
	for _, tt := range []struct {
		name, stdin, args string
		code              int
		stdout, stderr    string
	}{
		{"a trial", "", "-f DIR/ghosts.yaml --dry-run", 0, "created   Ghost/plan\nskipped   Shell/Chat\n  DIR/ghosts.yaml:6:7: warning: unknown kind \"Shell\": document skipped [document-skipped]\n      remove the document\n" +
			"2 documents: 1 created, 1 skipped. Dry run: nothing was changed.\n", ""},
		{"nothing came of it", "", "-f DIR/bots.yaml", 1, "refused   Bot/lead\n  DIR/bots.yaml:4:18: error: ghostRef: Ghost \"plan\" not found or not permitted [ref-missing]\n" +
			"      apply it first, or together with this document; group and public documents cannot refer to a user's resources\n1 document: 1 refused. Nothing was changed.\n", ""},
		{"all or nothing", "", "-f DIR/ghosts.yaml -f DIR/bots.yaml -f DIR/broken.yaml", 1, "created   Ghost/plan\nskipped   Shell/Chat\n  DIR/ghosts.yaml:6:7: warning: unknown kind \"Shell\": document skipped [document-skipped]\n      remove the document\ncreated   Bot/lead\n" +
			"refused   Ghost/other\n  DIR/broken.yaml:5:12: error: preloaded skill \"b\" is not in skills [preload-unknown]\n      add it to skills\n4 documents: 2 created, 1 skipped, 1 refused. Nothing was changed.\n", ""},
		{"several", "", "-f DIR/bots.yaml -f DIR/skills.json -f -", 0, "created   Bot/lead\ncreated   Skill/prose\ncreated   Ghost/plan\n3 documents: 3 created.\n", ""},
		{"again", "", "-f DIR/skills.json", 0, "unchanged Skill/prose\n1 document: 1 unchanged.\n", ""},
		{"a change", "kind: Ghost\nmetadata: {name: plan}\nspec: {systemPrompt: Plan ahead.}\n", "-f -", 0,
			"updated   Ghost/plan\n  - spec.systemPrompt: \"Plan.\"\n  + spec.systemPrompt: \"Plan ahead.\"\n1 document: 1 updated.\n", ""},
		{"no YAML", "kind: 'Ghost\n", "-f -", 1, "", ""},
		{"no file", "", "", 2, "", "loadout: no file given\n  loadout apply -f FILE\n"},
		{"not there", "", "-f DIR/none.yaml", 4, "", "loadout: DIR/none.yaml: no such file or directory\n  check the path given with -f\n"},
		{"empty", "", "-f DIR/empty.yaml", 1, "", "loadout: DIR/empty.yaml has no documents\n  see: loadout apply --help\n"},
		{"nothing comes", "\n", "-f -", 1, "", "loadout: standard input has no documents\n  see: loadout apply --help\n"},
		{"a directory", "", "-f DIR", 1, "", "loadout: read DIR: is a directory\n  name a file, not a directory\n"},
		{"twice", "x", "-f - -f -", 2, "", "loadout: standard input given twice\n  use -f - only once\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "several" {
				tt.stdin = "kind: Ghost\nmetadata: {name: plan}\nspec: {systemPrompt: Plan.}\n"
			}
			stdout, stderr, code := s.loadout(tt.stdin, nil, append([]string{"apply"}, strings.Fields(tt.args)...)...)
			if code != tt.code || stderr != tt.stderr {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, stderr)
			}
			if diff := cmp.Diff(tt.stdout, stdout); tt.stdout != "" && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApplyJSON(t *testing.T) {
	s := newHubScene(t, map[string]string{"ghosts.yaml": ghosts, "broken.yaml": broken})
	for _, tt := range []struct {
		args     string
		code     int
		kept     bool
		outcomes string
	}{
		{"-f DIR/ghosts.yaml --dry-run", 0, false, "created skipped"},
		{"-f DIR/ghosts.yaml -f DIR/broken.yaml", 1, false, "created skipped refused"},
		{"-f DIR/broken.yaml --dry-run", 1, false, "refused"},
		{"-f DIR/ghosts.yaml", 0, true, "created skipped"},
		{"-f DIR/ghosts.yaml", 0, true, "unchanged skipped"},
	} {
		stdout, stderr, code := s.loadout("", nil, append([]string{"apply", "--json"}, strings.Fields(tt.args)...)...)
		var out applyOutput
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Fatalf("%s: %v: %s", stdout, err, stderr)
		}
		var outcomes []string
		for _, c := range out.Changes {
			outcomes = append(outcomes, c.Outcome)
		}
		if got := strings.Join(outcomes, " "); code != tt.code || out.Saved != tt.kept || got != tt.outcomes || out.Hub != "HUB" || stderr != "" {
			t.Errorf("%s: exit code %d, %s%s", tt.args, code, stdout, stderr)
		}
	}
}

// Why a hub does not do it, each with its exit code and what to do; and a token goes
// nowhere but to the hub, and not where others can read it.
func TestApplyRefused(t *testing.T) {
	s := newHubScene(t, map[string]string{"a.yaml": "kind: Ghost\nmetadata: {name: a}\n", "none.yaml": "kind: Ghost\nmetadata: {name: a, namespace: none}\n"})
	var seen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		w.Write([]byte("<p>hello</p>"))
	}))
	defer elsewhere.Close()
	sends := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer sends.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tt := range []struct {
		name string
		env  map[string]string
		args string
		code int
		said string
	}{
		{"no token", map[string]string{"LOADOUT_HUB_TOKEN": ""}, "-f DIR/a.yaml", 3, "put your token into LOADOUT_HUB_TOKEN"},
		{"a wrong token", map[string]string{"LOADOUT_HUB_TOKEN": "lo_wrong"}, "-f DIR/a.yaml", 3, "invalid token"},
		{"no such namespace", nil, "-f DIR/none.yaml --quiet", 1, ""},
		{"nobody there", map[string]string{"LOADOUT_HUB": gone.URL}, "-f DIR/a.yaml", 5, "start it with: loadout serve"},
		{"plain http", nil, "-f DIR/a.yaml --hub http://hub.example.com", 3, "the token is not sent"},
		{"no address", nil, "-f DIR/a.yaml --hub hub.example.com", 2, "give the address as https://HOST"},
		{"or password", nil, "-f DIR/a.yaml --hub https://me:pass-word@hub.example.com", 2, "LOADOUT_HUB_TOKEN"},
		{"another place", map[string]string{"LOADOUT_HUB": sends.URL}, "-f DIR/a.yaml", 1, "redirects are not followed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := s.loadout("", tt.env, append([]string{"apply"}, strings.Fields(tt.args)...)...)
			if code != tt.code || !strings.Contains(stderr, tt.said) {
				t.Errorf("exit code %d, want %d, and %q: %s%s", code, tt.code, tt.said, stdout, stderr)
			}
			if strings.Contains(stdout+stderr, s.token) || strings.Contains(stdout+stderr, "pass-word") {
				t.Errorf("it says what is secret: %s%s", stdout, stderr)
			}
		})
	}
	if len(seen) > 0 {
		t.Errorf("another place was sent %q", seen)
	}
	if _, stderr, code := s.loadout("", map[string]string{"LOADOUT_HUB": elsewhere.URL}, "apply", "-f", "DIR/a.yaml"); code != 5 || !strings.Contains(stderr, "no hub at") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A user without permission is told which permission is missing and whom to ask.
func TestApplyDenied(t *testing.T) {
	s := newHubScene(t, map[string]string{"a.yaml": "kind: Ghost\nmetadata: {name: a, namespace: public}\n"})
	cookie := s.post("/login", map[string]any{"name": "root", "password": hubPassword}, nil, nil)
	s.post("/users", map[string]any{"name": "ada", "password": hubPassword}, cookie, nil)
	ada := s.post("/login", map[string]any{"name": "ada", "password": hubPassword}, nil, nil)
	var made struct{ Token string }
	s.post("/tokens", map[string]any{"name": "cli", "scopes": []string{"write"}}, ada, &made)
	stdout, stderr, code := s.loadout("", map[string]string{"LOADOUT_HUB_TOKEN": made.Token}, "apply", "-f", "DIR/a.yaml")
	if code != 3 || !strings.HasPrefix(stdout, "refused   Ghost/public/a\n") || !strings.HasSuffix(stderr, "\n  ask an owner or maintainer of the namespace\n") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
