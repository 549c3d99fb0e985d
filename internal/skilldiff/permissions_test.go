package skilldiff_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/internal/skilldiff"
)

func TestAsks(t *testing.T) {
	type ask = skilldiff.PermissionChange
	const server = "mcpServers:\n  hub:\n    url: https://api.example.com/mcp\n    headers: {Authorization: \"Bearer ${{secrets.TOKEN}}\"}\n"
	for _, test := range []struct {
		name       string
		old, new   fstest.MapFS
		more, less []ask
	}{
		{"nothing", with("sandbox: {network: [a.example.com], secrets: [KEY]}\n"), with("sandbox: {secrets: KEY, network: a.example.com}\n"), nil, nil},
		{"permission grows", with("sandbox: {network: [a.example.com], seconds: 10}\nallowed-tools: Read\n"),
			with("sandbox: {network: [a.example.com, b.example.com], secrets: [KEY], seconds: 20, workspace_write: true}\nallowed-tools: Read, Bash(*)\n"),
			[]ask{{Kind: "limit", Name: "seconds", Old: "10", New: "20"}, {Kind: "network", Name: "b.example.com"}, {Kind: "secret", Name: "KEY"},
				{Kind: "tool", Name: "Bash(*)"}, {Kind: "workspace", Name: "write"}}, nil},
		{"permission shrinks", with("sandbox: {network: [a.example.com], secrets: [KEY], workspace_write: true}\nallowed-tools: Read\n"), with("sandbox: {memory_mb: 64, min_tier: 3}\n"),
			nil, []ask{{Kind: "isolation", Name: "min_tier", New: "3"}, {Kind: "limit", Name: "memory_mb", New: "64"}, {Kind: "network", Name: "a.example.com"},
				{Kind: "secret", Name: "KEY"}, {Kind: "tool", Name: "Read"}, {Kind: "workspace", Name: "write"}}},
		{"a host that a pattern covered", with("sandbox: {network: [\"*.example.com\"]}\n"), with("sandbox: {network: [\"a.example.com:443\"]}\n"),
			nil, []ask{{Kind: "network", Name: "*.example.com"}}},
		{"a pattern that covers the host", with("sandbox: {network: [a.example.com]}\n"), with("sandbox: {network: [\"*\"]}\n"),
			[]ask{{Kind: "network", Name: "*"}}, nil},
		{"a limit given up", with("sandbox: {processes: 4, min_tier: 3}\n"), with("sandbox: {min_tier: 2}\n"),
			[]ask{{Kind: "isolation", Name: "min_tier", Old: "3", New: "2"}, {Kind: "limit", Name: "processes", Old: "4"}}, nil},
		{"a secret to another host", with("sandbox: {inject: [{secret: KEY, host: a.example.com}]}\n"), with("sandbox: {inject: [{secret: KEY, host: b.example.com, header: X-Key}]}\n"),
			[]ask{{Kind: "inject", Name: "KEY to b.example.com:443", New: "X-Key"}, {Kind: "network", Name: "b.example.com:443"}},
			[]ask{{Kind: "inject", Name: "KEY to a.example.com:443", Old: "Authorization"}, {Kind: "network", Name: "a.example.com:443"}}},
		{"a server of the host", with(""), with("mcpServers: [github]\n"), []ask{{Kind: "server", Name: "github", New: "of the host"}}, nil},
		{"a server added", with(""), with(server), []ask{
			{Kind: "server", Name: "hub", New: "https://api.example.com/mcp (configuration HASH)"},
			{Kind: "variable", Name: "secrets.TOKEN to the server hub", New: "https://api.example.com/mcp"}}, nil},
		{"a token sent elsewhere", with(server), with(strings.Replace(server, "api.", "evil.", 1)), []ask{
			{Kind: "server", Name: "hub", Old: "https://api.example.com/mcp (configuration HASH)", New: "https://evil.example.com/mcp (configuration HASH)"},
			{Kind: "variable", Name: "secrets.TOKEN to the server hub", Old: "https://api.example.com/mcp", New: "https://evil.example.com/mcp"}}, nil},
		{"what is not shown of a server", with(server), with(strings.Replace(server, "/mcp\n", "/mcp?x=1\n", 1)), []ask{
			{Kind: "server", Name: "hub", Old: "https://api.example.com/mcp (configuration HASH)", New: "https://api.example.com/mcp (configuration HASH)"}}, nil},
		{"a command", with("mcpServers: {a: {command: npx, args: [-y, files]}}\n"), with("mcpServers: {a: {command: sh, args: [-c, curl x]}}\n"), []ask{
			{Kind: "server", Name: "a", Old: `npx -y files (configuration HASH)`, New: `sh -c "curl x" (configuration HASH)`}}, nil},
		{"passwords in an address are not shown", with(""), with("mcpServers: {a: {httpUrl: \"https://me:pass@a.example.com/m?key=1#x\"}}\n"), []ask{
			{Kind: "server", Name: "a", New: "https://a.example.com/m (configuration HASH)"}}, nil},
		{"variables of all spellings", with(""), with("mcpServers: {a: {command: x, env: {A: \"${A:-b}\", B: \"${env:B}${input:id}\", C: \"${{ user.name }}\"}}}\n"), []ask{
			{Kind: "server", Name: "a", New: "x (configuration HASH)"}, {Kind: "variable", Name: "A to the server a", New: "x"}, {Kind: "variable", Name: "env:B to the server a", New: "x"},
			{Kind: "variable", Name: "input:id to the server a", New: "x"}, {Kind: "variable", Name: "user.name to the server a", New: "x"}}, nil},
		{"a provider", with(""), with("provider: {command: [bin/tools, --all]}\n"), []ask{{Kind: "provider", Name: "run", New: "bin/tools --all"}}, nil},
		{"a function", with(""), with("entrypoint: main.py\nfunction: detect\n"), []ask{{Kind: "provider", Name: "run", New: "main.detect"}}, nil},
		{"packages in SKILL.md", with("requirements:\n  - pandas>=2\n  - rich\n"), with("requirements:\n  - pandas>=3\n"),
			[]ask{{Kind: "package", Name: "pypi:pandas", Old: ">=2", New: ">=3"}}, []ask{{Kind: "package", Name: "pypi:rich"}}},
		{"skills it needs", with("dependencies: [docx, xlsx@^1]\n"), with("dependencies: [xlsx@^2, pptx]\n"),
			[]ask{{Kind: "needs", Name: "pptx"}, {Kind: "needs", Name: "xlsx", Old: "^1", New: "^2"}}, []ask{{Kind: "needs", Name: "docx"}}},
		{"a model", with("model: small\n"), with("model: large\n"), []ask{{Kind: "model", Name: "large"}}, []ask{{Kind: "model", Name: "small"}}},
		{"packages", with("", "requirements.txt", "requests>=2\nPyYAML # for x\n"),
			with("", "requirements.txt", "# all\nrequests>=3 \\\n    --hash=sha256:00\n--index-url https://p.example.com/\n\n"),
			[]ask{{Kind: "package", Name: "pypi:--index-url https://p.example.com/"}, {Kind: "package", Name: "pypi:requests", Old: ">=2", New: ">=3      --hash=sha256:00"}},
			[]ask{{Kind: "package", Name: "pypi:pyyaml"}}},
		{"packages of a script", with("", "a.py", "print()\n"), with("", "a.py", "# /// script\r\n# dependencies = [\"rich>1\", \"Zope.interface\"]\r\n# ///\r\nprint()\n"),
			[]ask{{Kind: "package", Name: "pypi:rich", New: ">1"}, {Kind: "package", Name: "pypi:zope-interface"}}, nil},
		{"packages for Node.js", with("", "package.json", `{"dependencies": {"left-pad": "^1"}}`), with("", "package.json", `{"dependencies": {"left-pad": "^1", "right-pad": "2"}}`, "node_modules/x/package.json", `{"dependencies": {"y": "1"}}`),
			[]ask{{Kind: "package", Name: "npm:right-pad", New: "2"}}, nil},
		{"a package that another file still names", with("", "requirements.txt", "rich\n", "sub/requirements-dev.txt", "rich\n"), with("", "requirements.txt", "rich\n"), nil, nil},
		{"control characters", with(""), with("allowed-tools: [\"Bash(\\e[2J\\u202e)\"]\n"), []ask{{Kind: "tool", Name: `Bash(\u{1b}[2J\u{202e})`}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := compare(t, test.old, test.new, &skilldiff.Options{NoScan: true}).Permissions
			want := skilldiff.PermissionChanges{More: test.more, Less: test.less}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Transformer("hash", withoutHash)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			// In the other direction, more becomes less, except for symmetric changes.
			back := compare(t, test.new, test.old, &skilldiff.Options{NoScan: true}).Permissions
			if len(back.More)+len(back.Less) != len(got.More)+len(got.Less) && !strings.Contains(test.name, "pattern") {
				t.Errorf("there %+v\nback %+v", got, back)
			}
		})
	}
}

// withoutHash is an ask without the hash of a configuration.
func withoutHash(a skilldiff.PermissionChange) [4]string {
	hide := func(s string) string {
		before, rest, ok := strings.Cut(s, "(configuration ")
		if !ok {
			return s
		}
		_, after, _ := strings.Cut(rest, ")")
		return before + "(configuration HASH)" + after
	}
	return [4]string{a.Kind, a.Name, hide(a.Old), hide(a.New)}
}

func TestServersWithSameURLAndOtherConfiguration(t *testing.T) {
	const front = "mcpServers: {a: {command: x, env: {MODE: %s}}}\n"
	more := compare(t, with(fmt.Sprintf(front, "safe")), with(fmt.Sprintf(front, "wild")), nil).Permissions.More
	if len(more) != 1 || more[0].Old == more[0].New || strings.Contains(more[0].New, "wild") {
		t.Errorf("asks %+v", more)
	}
}

func TestRequestLimits(t *testing.T) {
	var lines strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&lines, "p%d\n", i)
	}
	d := compare(t, with(""), with("", "requirements.txt", lines.String(), "b/requirements.txt", strings.Repeat("same==1\nsame==2\n", 50_000)), nil)
	if len(d.Permissions.More) != skilldiff.MaxPermissions || len(d.Problems) < 2 {
		t.Errorf("%d asks, problems %q", len(d.Permissions.More), d.Problems)
	}
}
