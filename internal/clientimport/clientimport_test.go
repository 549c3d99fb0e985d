package clientimport

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// anyName accepts every name of a secret.
func anyName(name, _ string) (string, error) { return name, nil }

func valuesOf(all []MovedSecret) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		out[m.Secret] = m.value
	}
	return out
}

// Likely tokens move to secrets; references to a token do not.
func TestMoveSecrets(t *testing.T) {
	c := &upstream.Config{Name: "my server", Env: map[string]string{
		"API_KEY": "s3cr3t-1", "MY_SERVER_TOKEN": "s3cr3t-2", "OTHER": "ghp_0123456789abcdef", "PLAIN": "value", "REF_TOKEN": "${TOKEN}",
		"SHORT_KEY": "abc", "ASKED": "${input:some id}", "REGION": "${input:region}",
		"DATABASE_URL": "postgres://me:s3cr3t-5@db.example.com/x", "AWS_ACCESS_KEY": "AKIAIOSFODNN7EXAMPLE",
	}, Headers: map[string]string{"Authorization": "Bearer s3cr3t-3", "X-Api-Key": "s3cr3t-4", "Accept": "text/plain"}}
	moved, err := moveSecrets(c, anyName)
	moved = append(moved, replaceInputs(c, []upstream.Input{{ID: "some id", Password: true}, {ID: "region", Default: "eu"}})...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"MY_SERVER_API_KEY": "s3cr3t-1", "MY_SERVER_TOKEN": "s3cr3t-2", "MY_SERVER_OTHER": "ghp_0123456789abcdef",
		"MY_SERVER_AUTHORIZATION": "s3cr3t-3", "MY_SERVER_X_API_KEY": "s3cr3t-4", "MY_SERVER_PASSWORD": "s3cr3t-5", "SOME_ID": ""}, valuesOf(moved)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{
		"API_KEY": "${{secrets.MY_SERVER_API_KEY}}", "MY_SERVER_TOKEN": "${{secrets.MY_SERVER_TOKEN}}", "OTHER": "${{secrets.MY_SERVER_OTHER}}",
		"PLAIN": "value", "REF_TOKEN": "${TOKEN}", "SHORT_KEY": "abc", "ASKED": "${{secrets.SOME_ID}}", "REGION": "eu",
		"DATABASE_URL": "postgres://me:${{secrets.MY_SERVER_PASSWORD}}@db.example.com/x", "AWS_ACCESS_KEY": "AKIAIOSFODNN7EXAMPLE",
	}, c.Env); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"Authorization": "Bearer ${{secrets.MY_SERVER_AUTHORIZATION}}", "X-Api-Key": "${{secrets.MY_SERVER_X_API_KEY}}",
		"Accept": "text/plain"}, c.Headers); diff != "" {
		t.Error(diff)
	}
}

// Values that are secrets by their form move too, whatever their name.
func TestSecretsAreRecognizedByForm(t *testing.T) {
	for _, tt := range []struct{ key, value, want, secret string }{
		{"MY_PASSPHRASE", "correcthorse", "${{secrets.X_MY_PASSPHRASE}}", "correcthorse"},
		{"DB_DSN", "user:hunter2secret@tcp(db)/x", "user:${{secrets.X_PASSWORD}}@tcp(db)/x", "hunter2secret"},
		{"CONNECTION", "Server=db;User Id=me;Password=hunter2;Encrypt=true", "Server=db;User Id=me;Password=${{secrets.X_PASSWORD}};Encrypt=true", "hunter2"},
		{"CONNECTION", "host=db password=hunter2", "host=db password=${{secrets.X_PASSWORD}}", "hunter2"},
		{"CONNECTION", "jdbc:postgresql://db/x?user=me&password=hunter2", "jdbc:postgresql://db/x?user=me&password=${{secrets.X_PASSWORD}}", "hunter2"},
		{"NOTIFY", "https://hooks.slack.com/services/T0/B0/abcdef", "${{secrets.X_WEBHOOK}}", "https://hooks.slack.com/services/T0/B0/abcdef"},
		{"ALERT_WEBHOOK_URL", "https://example.com/in/abcdef", "${{secrets.X_ALERT_WEBHOOK_URL}}", "https://example.com/in/abcdef"},
		{"DB_DSN", "user:${PASSWORD}@tcp(db)/x", "user:${PASSWORD}@tcp(db)/x", ""},
		{"CONNECTION", "Password=${{secrets.DB}};x", "Password=${{secrets.DB}};x", ""},
		{"PACKAGE", "npm:some-server@1.2.3", "npm:some-server@1.2.3", ""},
		{"IMAGE", "server:1.2.3@sha256:0123", "server:1.2.3@sha256:0123", ""},
		{"CONTACT", "mailto:ann.lee@example.com", "mailto:ann.lee@example.com", ""},
		{"ADDRESS", "ann@example.com", "ann@example.com", ""},
	} {
		c := &upstream.Config{Name: "x", Env: map[string]string{tt.key: tt.value}}
		moved, err := moveSecrets(c, anyName)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v := range valuesOf(moved) {
			got = v
		}
		if c.Env[tt.key] != tt.want || got != tt.secret {
			t.Errorf("%s=%s: %s with %q", tt.key, tt.value, c.Env[tt.key], got)
		}
	}
}

func TestSecretNames(t *testing.T) {
	for _, tt := range [][3]string{
		{"github", "GITHUB_TOKEN", "GITHUB_TOKEN"}, {"a.b c", "key", "A_B_C_KEY"}, {"", "1st", "SECRET_1ST"}, {"", "…", "SECRET_"}, {"日本", "k", "K"},
	} {
		if got := deriveSecretName(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%q %q: %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

// Tokens in arguments move, by name or prefix; the rest stays as written.
func TestTokensInArguments(t *testing.T) {
	type values = map[string]string
	for _, tt := range []struct {
		name       string
		args, want []string
		values     values
	}{
		{"a flag and its value", []string{"-y", "server", "--api-key", "s3cr3t", "--verbose"}, []string{"-y", "server", "--api-key", "${{secrets.X_API_KEY}}", "--verbose"}, values{"X_API_KEY": "s3cr3t"}},
		{"with =", []string{"--token=s3cr3t=="}, []string{"--token=${{secrets.X_TOKEN}}"}, values{"X_TOKEN": "s3cr3t=="}},
		{"spellings", []string{"--figma-api-key=s3cr3t1", "--accessToken", "s3cr3t2", "--key", "s3cr3t3", "-password", "s3cr3t4"},
			[]string{"--figma-api-key=${{secrets.X_FIGMA_API_KEY}}", "--accessToken", "${{secrets.X_ACCESSTOKEN}}", "--key", "${{secrets.X_KEY}}", "-password", "${{secrets.X_PASSWORD}}"},
			values{"X_FIGMA_API_KEY": "s3cr3t1", "X_ACCESSTOKEN": "s3cr3t2", "X_KEY": "s3cr3t3", "X_PASSWORD": "s3cr3t4"}},
		{"mcp-remote", []string{"-y", "mcp-remote", "https://mcp.example.com/sse", "--header", "Authorization: Bearer s3cr3t"},
			[]string{"-y", "mcp-remote", "https://mcp.example.com/sse", "--header", "Authorization: Bearer ${{secrets.X_AUTHORIZATION}}"}, values{"X_AUTHORIZATION": "s3cr3t"}},
		{"mcp-remote without blanks", []string{"--header=Authorization:s3cr3t", "-H", "X-Api-Key:Bearer s3cr3t2"},
			[]string{"--header=Authorization:${{secrets.X_AUTHORIZATION}}", "-H", "X-Api-Key:Bearer ${{secrets.X_API_KEY}}"}, values{"X_AUTHORIZATION": "s3cr3t", "X_API_KEY": "s3cr3t2"}},
		{"docker", []string{"run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "-e", "API_KEY=s3cr3t", "-eAPP_SECRET=s3cr3t2", "--env", "DB_PASSWORD=s3cr3t3", "--env=HOST=example.com", "image"},
			[]string{"run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "-e", "API_KEY=${{secrets.X_API_KEY}}", "-eAPP_SECRET=${{secrets.X_APP_SECRET}}", "--env", "DB_PASSWORD=${{secrets.X_DB_PASSWORD}}", "--env=HOST=example.com", "image"},
			values{"X_API_KEY": "s3cr3t", "X_APP_SECRET": "s3cr3t2", "X_DB_PASSWORD": "s3cr3t3"}},
		{"a token by itself", []string{"sk-0123456789abcdef", "--auth", "ghp_0123456789abcdefghij"}, []string{"${{secrets.X_TOKEN}}", "--auth", "${{secrets.X_TOKEN}}"}, values{"X_TOKEN": "ghp_0123456789abcdefghij"}},
		{"JSON", []string{"--config", `{"apiKey": "s3cr3t", "limit": "10", "url": "x"}`}, []string{"--config", `{"apiKey": "${{secrets.X_APIKEY}}", "limit": "10", "url": "x"}`}, values{"X_APIKEY": "s3cr3t"}},
		{"a connection", []string{"postgresql://me:s3cr%40t@db.example.com:5432/x?sslmode=disable", "--url=https://example.com/mcp?api_key=s3cr3t#a"},
			[]string{"postgresql://me:${{secrets.X_PASSWORD}}@db.example.com:5432/x?sslmode=disable", "--url=https://example.com/mcp?api_key=${{secrets.X_API_KEY}}#a"},
			values{"X_PASSWORD": "s3cr%40t", "X_API_KEY": "s3cr3t"}},
		{"no token", []string{"--token", "${TOKEN}", "--api-key=${{secrets.K}}", "--max-tokens", "4000", "--key-file", "/etc/key", "--key", "server.pem", "--secret", "./secret", "--token", "--password", "true",
			"--sort-key", "name-of-it", "--access-key", "AKIAIOSFODNN7EXAMPLE", "sk-learn-server-with-a-name", "@scope/token-server", "--header", "Accept: text/plain", "-e", "TOKEN", "https://example.com/mcp?profile=some", "--token"}, nil, values{}},
	} {
		c := &upstream.Config{Name: "x", Args: tt.args}
		moved, err := moveSecrets(c, anyName)
		if err != nil {
			t.Fatal(err)
		}
		want := tt.want
		if want == nil {
			want = tt.args
		}
		if diff := cmp.Diff(want, c.Args); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.values, valuesOf(moved)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestTokensInURLs(t *testing.T) {
	for _, tt := range []struct{ url, want, value string }{
		{"https://example.com/mcp?api_key=s3cr3t&profile=p", "https://example.com/mcp?api_key=${{secrets.X_API_KEY}}&profile=p", "s3cr3t"},
		{"https://example.com/mcp?tavilyApiKey=s3cr3t", "https://example.com/mcp?tavilyApiKey=${{secrets.X_TAVILYAPIKEY}}", "s3cr3t"},
		{"https://example.com/mcp?a=b&access_token=s3%2Fcr3t", "https://example.com/mcp?a=b&access_token=${{secrets.X_ACCESS_TOKEN}}", "s3%2Fcr3t"},
		{"https://me:s3cr3t@example.com:8443/mcp", "https://me:${{secrets.X_PASSWORD}}@example.com:8443/mcp", "s3cr3t"},
		{"https://example.com/s/sk-0123456789abcdef/mcp", "https://example.com/s/${{secrets.X_TOKEN}}/mcp", "sk-0123456789abcdef"},
		{"wss://example.com?token=s3cr3t", "wss://example.com?token=${{secrets.X_TOKEN}}", "s3cr3t"},
		{"https://example.com/mcp?api_key=${KEY}", "https://example.com/mcp?api_key=${KEY}", ""},
		{"https://me:${PASSWORD}@example.com", "https://me:${PASSWORD}@example.com", ""},
		{"https://example.com/token/mcp?key=&version=2025-06-18", "https://example.com/token/mcp?key=&version=2025-06-18", ""},
		{"https://me@example.com/mcp", "https://me@example.com/mcp", ""},
	} {
		c := &upstream.Config{Name: "x", URLs: []string{tt.url}}
		moved, err := moveSecrets(c, anyName)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, m := range moved {
			got = m.value
		}
		if c.URLs[0] != tt.want || got != tt.value {
			t.Errorf("%s: %s with %q", tt.url, c.URLs[0], got)
		}
		back, unset := c.Resolve(upstream.Variables{Secret: func(name string) (string, bool) { v, ok := valuesOf(moved)[name]; return v, ok },
			Env: func(string) (string, bool) { return "v", true }})
		if len(unset) > 0 || tt.value != "" && back.URLs[0] != tt.url {
			t.Errorf("%s comes back as %v %v", tt.url, back, unset)
		}
	}
}

// Loadout's own entry is recognized by its name or its command.
func TestOwnEntry(t *testing.T) {
	list := func(words ...any) []any { return words }
	for _, tt := range []struct {
		name  string
		value any
		want  bool
	}{
		{"loadout", map[string]any{"url": "http://127.0.0.1:8485/mcp"}, true},
		{"skills", map[string]any{"command": "/usr/local/bin/loadout", "args": list("mcp")}, true},
		{"skills", map[string]any{"command": `C:\Program Files\Loadout\LOADOUT.exe`, "args": list("--quiet", "mcp", "--expose", "direct")}, true},
		{"skills", map[string]any{"command": "cmd", "args": list("/c", "loadout", "mcp")}, true},
		{"skills", map[string]any{"command": "sh", "args": list("-c", "exec loadout mcp")}, true},
		{"skills", map[string]any{"command": list("loadout", "mcp")}, true},
		{"skills", map[string]any{"command": "loadout", "args": list("list")}, false},
		{"skills", map[string]any{"command": "npx", "args": list("-y", "server", "mcp")}, false},
		{"mcp", map[string]any{"url": "https://example.com/mcp"}, false},
		{"odd", "text", false},
	} {
		if got := isOwnEntry(tt.name, tt.value); got != tt.want {
			t.Errorf("%s %v: %v", tt.name, tt.value, got)
		}
	}
}

// A directory belongs to the nearest project at or above it.
func TestProjectOfDirectory(t *testing.T) {
	projects := map[string]map[string]any{"/home/me": nil, "/home/me/app": {}, "/home/me/app2/": nil, "/home/me/app/web": nil, "relative": nil}
	for dir, want := range map[string]string{
		"/home/me/app": "/home/me/app", "/home/me/app/src/deep": "/home/me/app", "/home/me/app/web/x": "/home/me/app/web", "/home/me/app2": "/home/me/app2/",
		"/home/me/other": "/home/me", "/home": "", "/home/mee": "", "": "",
	} {
		if got := findProject(projects, dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Entries from the documentation of each client.
func TestClientServers(t *testing.T) {
	for _, tt := range []struct {
		client, name, entry string
		want                upstream.Config
		values              map[string]string
		login               bool
	}{
		{"claude-code", "github", `{"type": "http", "url": "https://api.example.com/mcp/", "headers": {"Authorization": "Bearer ghp_0123456789abcdefghij"}}`,
			upstream.Config{Type: upstream.HTTP, URLs: []string{"https://api.example.com/mcp/"}, Headers: map[string]string{"Authorization": "Bearer ${{secrets.GITHUB_AUTHORIZATION}}"}},
			map[string]string{"GITHUB_AUTHORIZATION": "ghp_0123456789abcdefghij"}, false},
		{"claude-code", "airtable", `{"type": "stdio", "command": "npx", "args": ["-y", "airtable-mcp-server"], "env": {"AIRTABLE_API_KEY": "s3cr3t"}}`,
			upstream.Config{Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "airtable-mcp-server"}, Env: map[string]string{"AIRTABLE_API_KEY": "${{secrets.AIRTABLE_API_KEY}}"}},
			map[string]string{"AIRTABLE_API_KEY": "s3cr3t"}, false},
		{"claude-code", "sentry", `{"type": "http", "url": "https://mcp.example.dev/mcp"}`,
			upstream.Config{Type: upstream.HTTP, URLs: []string{"https://mcp.example.dev/mcp"}}, map[string]string{}, true},
		{"claude-desktop", "linear", `{"command": "npx", "args": ["-y", "mcp-remote", "https://mcp.example.com/sse", "--header", "Authorization: Bearer s3cr3t"]}`,
			upstream.Config{Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "mcp-remote", "https://mcp.example.com/sse", "--header", "Authorization: Bearer ${{secrets.LINEAR_AUTHORIZATION}}"}},
			map[string]string{"LINEAR_AUTHORIZATION": "s3cr3t"}, false},
		{"cursor", "figma", `{"command": "npx", "args": ["-y", "figma-developer-mcp", "--figma-api-key=s3cr3t", "--stdio"]}`,
			upstream.Config{Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "figma-developer-mcp", "--figma-api-key=${{secrets.FIGMA_API_KEY}}", "--stdio"}},
			map[string]string{"FIGMA_API_KEY": "s3cr3t"}, false},
		{"vscode", "docker", `{"type": "stdio", "command": "docker", "args": ["run", "-i", "-e", "TOKEN=s3cr3t", "image"], "envFile": "${workspaceFolder}/.env"}`,
			upstream.Config{Type: upstream.Stdio, Command: "docker", Args: []string{"run", "-i", "-e", "TOKEN=${{secrets.DOCKER_TOKEN}}", "image"}, EnvFile: "${workspaceFolder}/.env"},
			map[string]string{"DOCKER_TOKEN": "s3cr3t"}, false},
		{"codex", "docs", `{"url": "https://mcp.example.com/mcp?token=s3cr3t", "bearer_token_env_var": "DOCS_TOKEN"}`,
			upstream.Config{URLs: []string{"https://mcp.example.com/mcp?token=${{secrets.DOCS_TOKEN}}"}, Headers: map[string]string{"Authorization": "Bearer ${env:DOCS_TOKEN}"}},
			map[string]string{"DOCS_TOKEN": "s3cr3t"}, false},
		{"gemini", "search", `{"httpUrl": "https://mcp.example.com/mcp", "headers": {"X-Goog-Api-Key": "AIza0123456789abcdefghij"}, "timeout": 5000}`,
			upstream.Config{Type: upstream.HTTP, URLs: []string{"https://mcp.example.com/mcp"}, Headers: map[string]string{"X-Goog-Api-Key": "${{secrets.SEARCH_X_GOOG_API_KEY}}"}, CallTimeout: 5e9},
			map[string]string{"SEARCH_X_GOOG_API_KEY": "AIza0123456789abcdefghij"}, false},
		{"gemini", "drive", `{"url": "https://mcp.example.com/sse", "oauth": {"enabled": true, "clientId": "me", "clientSecret": "s3cr3t", "scopes": ["a", "b"]}}`,
			upstream.Config{URLs: []string{"https://mcp.example.com/sse"}, OAuth: &upstream.OAuthClient{ID: "me", Secret: "${{secrets.DRIVE_CLIENT_SECRET}}", Scopes: []string{"a", "b"}}},
			map[string]string{"DRIVE_CLIENT_SECRET": "s3cr3t"}, true},
	} {
		if _, err := clientconfig.Lookup(tt.client); err != nil {
			t.Fatal(err)
		}
		c, _, findings := parseClientServer(tt.client, tt.name, decoded(t, tt.entry), nil)
		if c == nil {
			t.Errorf("%s %s: %v", tt.client, tt.name, findings)
			continue
		}
		moved, err := moveSecrets(c, anyName)
		if err != nil {
			t.Fatal(err)
		}
		tt.want.Name = tt.name
		if got, want := c.Digest(), tt.want.Digest(); got != want {
			t.Errorf("%s %s: %+v\nwant %+v", tt.client, tt.name, *c, tt.want)
		}
		into := &serversFile{}
		if err := into.parse(nil); err != nil {
			t.Fatal(err)
		}
		into.add(c)
		if _, err := into.encode(); err != nil { // fails unless it reads back as the same
			t.Errorf("%s %s: %v", tt.client, tt.name, err)
		}
		if !maps.Equal(valuesOf(moved), tt.values) {
			t.Errorf("%s %s: %v", tt.client, tt.name, valuesOf(moved))
		}
		if got := mayNeedLogin(c); got != tt.login {
			t.Errorf("%s %s: login %v", tt.client, tt.name, got)
		}
	}
}
