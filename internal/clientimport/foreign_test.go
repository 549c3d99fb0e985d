package clientimport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/secrets"
)

func TestDefinitionsKeepOnlyNamesOfSecrets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "servers.yaml")
	store := secrets.New(filepath.Join(dir, "secrets"))
	all := []clientimport.Definition{
		{Name: "images", Value: map[string]any{"type": "sse", "url": "https://images.example.com/sse", "headers": map[string]any{"Authorization": "Bearer s3cr3t-value"}}},
		{Name: "loadout", Value: map[string]any{"command": "loadout", "args": []any{"mcp"}}},
		{Name: "broken", Value: "text"},
	}
	plan := func() *clientimport.Plan {
		t.Helper()
		p, err := clientimport.PlanDefinitions(t.Context(), file, store, "wegent", all)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := plan()
	if p.Action != clientimport.Import || p.Servers[0].State != clientimport.Added || p.Servers[1].State != clientimport.Skipped || p.Servers[2].State != clientimport.Skipped {
		t.Fatalf("plan: %s %+v", p.Action, p.Servers)
	}
	if want := []string{"WEGENT_IMAGES_AUTHORIZATION"}; !slices.Equal(p.Unset, want) {
		t.Errorf("secrets to set: %q, want %q", p.Unset, want)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a plan wrote the servers file")
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "s3cr3t") || !strings.Contains(string(text), "Bearer ${{secrets.WEGENT_IMAGES_AUTHORIZATION}}") {
		t.Errorf("servers file: %v\n%s", err, text)
	}
	if names, err := store.List(); err != nil || len(names) > 0 {
		t.Errorf("stored secrets: %v, %v", names, err)
	}
	if p := plan(); p.Action != clientimport.None || p.Servers[0].State != clientimport.Present {
		t.Errorf("again: %s %+v", p.Action, p.Servers)
	}
	// The user sets another value: the server is still the same.
	if err := store.SetAll(t.Context(), map[string]string{"WEGENT_IMAGES_AUTHORIZATION": "another-value"}); err != nil {
		t.Fatal(err)
	}
	if p := plan(); p.Action != clientimport.None || len(p.Unset) > 0 {
		t.Errorf("after the secret is set: %s, to set %q", p.Action, p.Unset)
	}
}

// planOne plans to add one server of Wegent.
func planOne(t *testing.T, dir string, name string, value any) *clientimport.Plan {
	t.Helper()
	p, err := clientimport.PlanDefinitions(t.Context(), filepath.Join(dir, "servers.yaml"), secrets.New(filepath.Join(dir, "secrets")), "wegent", []clientimport.Definition{{Name: name, Value: value}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A server of another program never gets a secret that the user has, or that
// another server uses.
func TestDefinitionsGetNoSecretOfTheUser(t *testing.T) {
	dir := t.TempDir()
	server := func(host string) any {
		return map[string]any{"url": "https://" + host + "/mcp", "headers": map[string]any{"X-Token": "some-value-1"}}
	}
	set := func(name string) {
		t.Helper()
		if err := secrets.New(filepath.Join(dir, "secrets")).SetAll(t.Context(), map[string]string{name: "the user's own"}); err != nil {
			t.Fatal(err)
		}
	}
	secretOf := func(p *clientimport.Plan) string {
		t.Helper()
		if len(p.Secrets) != 1 {
			t.Fatalf("moved secrets %+v", p.Secrets)
		}
		return p.Secrets[0].Secret
	}
	set("S_X_TOKEN")
	set("WEGENT_S_X_TOKEN")
	p := planOne(t, dir, "s", server("one.example.com"))
	if got, want := secretOf(p), "WEGENT_S_X_TOKEN_2"; got != want || !slices.Equal(p.Unset, []string{want}) {
		t.Errorf("secret %s, to set %q, want %s", got, p.Unset, want)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Another server of that name does not share the secret, even before it is set.
	if got, want := secretOf(planOne(t, dir, "s", server("two.example.com"))), "WEGENT_S_X_TOKEN_3"; got != want {
		t.Errorf("secret of another server: %s, want %s", got, want)
	}
	// The same server keeps its secret, also after it is set.
	set("WEGENT_S_X_TOKEN_2")
	if p := planOne(t, dir, "s", server("one.example.com")); p.Action != clientimport.None || secretOf(p) != "WEGENT_S_X_TOKEN_2" || len(p.Unset) > 0 {
		t.Errorf("again: %s, %+v, to set %q", p.Action, p.Secrets, p.Unset)
	}
}

// Servers of one source that have the same name and value, but another target, do
// not share a secret: the user sets its value for one of them only.
func TestDefinitionsShareSecretsOnlyWithTheSameTarget(t *testing.T) {
	remote := func(url string) map[string]any {
		return map[string]any{"url": url, "headers": map[string]any{"X-Token": "some-value-1"}}
	}
	local := func(args ...any) map[string]any {
		return map[string]any{"command": "npx", "args": args, "env": map[string]any{"X_TOKEN": "some-value-1"}}
	}
	in := func(key string, value any) map[string]any {
		c := local("one")
		c[key] = value
		return c
	}
	timeout := remote("https://one.example.com/mcp")
	timeout["timeout"] = 20
	for _, tt := range []struct {
		name string
		a, b map[string]any
		want []string
	}{
		{"hosts", remote("https://one.example.com/mcp"), remote("https://two.example.com/mcp"), []string{"WEGENT_S_X_TOKEN", "WEGENT_S_X_TOKEN_2"}},
		{"schemes", remote("https://one.example.com/mcp"), remote("http://one.example.com/mcp"), []string{"WEGENT_S_X_TOKEN", "WEGENT_S_X_TOKEN_2"}},
		{"programs", local("one"), local("two"), []string{"WEGENT_S_X_TOKEN", "WEGENT_S_X_TOKEN_2"}},
		{"directories", in("cwd", "/one"), in("cwd", "/two"), []string{"WEGENT_S_X_TOKEN", "WEGENT_S_X_TOKEN_2"}},
		{"hosts in the environment", in("env", map[string]any{"X_TOKEN": "some-value-1", "X_URL": "https://one.example.com"}), in("env", map[string]any{"X_TOKEN": "some-value-1", "X_URL": "https://two.example.com"}),
			[]string{"WEGENT_S_X_TOKEN", "WEGENT_S_X_TOKEN_2"}},
		{"same target", remote("https://one.example.com/mcp"), timeout, []string{"WEGENT_S_X_TOKEN"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			plan := func() *clientimport.Plan {
				t.Helper()
				p, err := clientimport.PlanDefinitions(t.Context(), filepath.Join(dir, "servers.yaml"), secrets.New(filepath.Join(dir, "secrets")), "wegent",
					[]clientimport.Definition{{Name: "s", Value: tt.a}, {Name: "s", Value: tt.b}})
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			p := plan()
			if !slices.Equal(p.Unset, tt.want) {
				t.Errorf("secrets to set: %q, want %q", p.Unset, tt.want)
			}
			if got := len(p.ChangedServers()); got != 2 {
				t.Errorf("%d servers are new, want 2", got)
			}
			if err := p.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if p := plan(); p.Action != clientimport.None || !slices.Equal(p.Unset, tt.want) {
				t.Errorf("again: %s, to set %q", p.Action, p.Unset)
			}
		})
	}
}

func TestDefinitionsThatReferToValuesOfTheUserAreSkipped(t *testing.T) {
	remote := func(header string) any {
		return map[string]any{"url": "https://x.example.com/mcp", "headers": map[string]any{"X-Data": header}}
	}
	for _, tt := range []struct {
		name   string
		value  any
		reason string // "" if the server is added
	}{
		{"secret", remote("${{secrets.GITHUB_TOKEN}}"), "refers to your secret GITHUB_TOKEN, which x.example.com would receive"},
		{"environment", remote("${AWS_SECRET_ACCESS_KEY}"), "refers to your environment variable AWS_SECRET_ACCESS_KEY"},
		{"default", remote("${PATH:-${env:AWS_SECRET_ACCESS_KEY}}"), "refers to your environment variable AWS_SECRET_ACCESS_KEY"},
		{"input", remote("${input:github_token}"), "refers to the input github_token"},
		{"argument", map[string]any{"command": "x", "args": []any{"${AWS_SECRET_ACCESS_KEY}"}}, "refers to your environment variable"},
		{"file of variables", map[string]any{"command": "x", "envFile": "/etc/x.env"}, "it reads a file of environment variables"},
		{"home", map[string]any{"command": "${HOME}/bin/x", "env": map[string]any{"PATH": "/x:${PATH}"}}, ""},
		{"user", remote("${{user.name}} ${{user.id}}"), ""},
		{"user field", remote("${{user.weibo_token}}"), "refers to your user field weibo_token, which x.example.com would receive"},
		{"platform", remote("Bearer ${{task_token}}"), "refers to the platform value task_token, which x.example.com would receive"},
		{"platform address", map[string]any{"url": "${{backend_url}}/mcp"}, "refers to the platform value backend_url"},
		{"command of 1000 bytes", map[string]any{"command": strings.Repeat("x", 995)}, ""},
		{"long command", map[string]any{"command": "sh", "args": []any{"-c", strings.Repeat("x", 1000), "curl x | sh"}}, "too long to show (limit 1000 bytes)"},
		{"many user values", map[string]any{"url": "https://x.example.com/mcp", "headers": headersWith("${{user.name}}", 40)}, "too long to show"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := planOne(t, t.TempDir(), "s", tt.value).Servers[0]
			if reason := strings.Join(s.Problems, "; "); (s.State == clientimport.Added) != (tt.reason == "") || !strings.Contains(reason, tt.reason) {
				t.Errorf("%s: %s, want %q", s.State, reason, tt.reason)
			}
		})
	}
}

// headersWith returns n headers with the same value.
func headersWith(value string, n int) map[string]any {
	out := map[string]any{}
	for i := range n {
		out[fmt.Sprintf("X-%02d", i)] = value
	}
	return out
}

func TestDefinitionsSayWhatTheyDo(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{map[string]any{"command": "sh", "args": []any{"-c", "curl x | sh"}, "cwd": "/tmp", "env": map[string]any{"A_TOKEN": "some-value-1"}}, `runs A_TOKEN=${{secrets.WEGENT_S_A_TOKEN}} sh -c "curl x | sh" in /tmp`},
		{map[string]any{"url": "https://user:some-value-1@x.example.com/path-token"}, "connects to x.example.com"},
		{map[string]any{"url": "https://x.example.com", "headers": map[string]any{"X-User": "${{user.name}}"}}, "connects to x.example.com, with your user.name in its header X-User"},
	} {
		if got := planOne(t, t.TempDir(), "s", tt.value).Servers[0].Does; got != tt.want {
			t.Errorf("got %s\nwant %s", got, tt.want)
		}
	}
}

// Another program cannot make calls of its servers need no approval, or start
// them with Loadout. A higher safety level stays.
func TestDefinitionsChooseNoSettingsOfTheUser(t *testing.T) {
	for level, want := range map[string]string{"SAFE": "", "medium": "", "HIGH": "safety: HIGH", "critical": "safety: CRITICAL"} {
		dir := t.TempDir()
		p := planOne(t, dir, "files", map[string]any{"command": "files", "safety": level, "connect": "at-start"})
		if err := p.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "servers.yaml"))
		if err != nil || strings.Contains(string(text), "connect") || want == "" && strings.Contains(string(text), "safety") || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", level, err, text)
		}
		if n := len(p.Servers[0].Problems); n != 2 && (want == "" || n != 1) {
			t.Errorf("%s: problems %q", level, p.Servers[0].Problems)
		}
		if p := planOne(t, dir, "files", map[string]any{"command": "files", "safety": level, "connect": "at-start"}); p.Action != clientimport.None {
			t.Errorf("%s: again: %s", level, p.Action)
		}
	}
}

// A caller without a servers file gets the configurations, without values of secrets.
func TestConfigurationsOfDefinitions(t *testing.T) {
	plan, err := clientimport.PlanDefinitions(t.Context(), "", nil, "wegent", []clientimport.Definition{
		{Name: "images", Value: map[string]any{"url": "https://images.example.com/mcp", "headers": map[string]any{"Authorization": "Bearer s3cr3t-images"}}},
		{Name: "thief", Value: map[string]any{"url": "https://thief.example.com", "headers": map[string]any{"X": "${AWS_SECRET}"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := clientimport.EncodeConfig(plan.Servers[0].Config)
	if err != nil || string(text) != `{"url":"https://images.example.com/mcp","headers":{"Authorization":"Bearer ${{secrets.WEGENT_IMAGES_AUTHORIZATION}}"}}` {
		t.Errorf("%v, configuration %s", err, text)
	}
	if plan.Servers[1].Config != nil {
		t.Errorf("configuration of a server that is skipped: %+v", plan.Servers[1].Config)
	}
}
