package upstream_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// A command without a directory starts in the given one, unless it names the workspace.
// Programs that search for code in their working directory start in the given one in any
// case.
func TestCommandWorkingDirectory(t *testing.T) {
	v := userVariables
	v.Dir = "/state/cwd"
	for _, tt := range []struct {
		c    upstream.Config
		want string
	}{
		{upstream.Config{Command: "server"}, "/state/cwd"},
		{upstream.Config{Command: "server", Args: []string{"${userHome}/x"}}, "/state/cwd"},
		{upstream.Config{Command: "server", Dir: "${workspaceFolder}"}, "/work/project"},
		{upstream.Config{Command: "npx", Args: []string{"-y", "server"}, Dir: "/srv"}, "/srv"},
		{upstream.Config{Command: "${workspaceFolder}/run"}, ""},
		{upstream.Config{Command: "server", Args: []string{"--in=${workspaceFolder}"}}, ""},
		{upstream.Config{Command: "server", Env: map[string]string{"ROOT": "${workspaceRoot}"}}, ""},
		{upstream.Config{Command: "npx", Args: []string{"-y", "server", "${workspaceFolder}"}}, "/state/cwd"},
		{upstream.Config{Command: `C:\\node\\NPX.cmd`, Args: []string{"${workspaceFolder}"}}, "/state/cwd"},
		{upstream.Config{Command: "cmd", Args: []string{"/c", "npx", "server", "${workspaceFolder}"}}, "/state/cwd"},
		{upstream.Config{Command: "sh", Args: []string{"-c", "exec uvx server ${workspaceFolder}"}}, "/state/cwd"},
		{upstream.Config{Command: "python3.12", Args: []string{"-m", "server", "${workspaceFolder}"}}, "/state/cwd"},
		{upstream.Config{Command: "python3", Args: []string{"${workspaceFolder}/server.py"}}, ""},
		{upstream.Config{Command: "server", Args: []string{"$${workspaceFolder}"}}, "/state/cwd"},
	} {
		tt.c.Name = "x"
		got, unset := tt.c.Resolve(v)
		if len(unset) > 0 || got.Dir != tt.want || got.Digest() != tt.c.Digest() {
			t.Errorf("%s %q: %+v, %v; want it in %q", tt.c.Command, tt.c.Args, got, unset, tt.want)
		}
	}
	c := upstream.Config{Name: "x", URLs: []string{"https://example.com/mcp"}}
	if got, _ := c.Resolve(v); got.Dir != "" {
		t.Errorf("a server by its URL starts in %s", got.Dir)
	}
}
