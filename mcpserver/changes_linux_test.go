package mcpserver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/heldchange"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// newSteerer returns a world with a skill whose script changes CLAUDE.md in a
// workspace, and the store of held changes.
func newSteerer(t *testing.T, o mcpserver.Options) (w *world, workspace string, store *heldchange.Store) {
	t.Helper()
	if err := usable(); err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
	workspace, err := os.MkdirTemp("", "workspace")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(workspace) })
	if err := os.Chmod(workspace, 0o777); err != nil { // scripts that root runs are not root
		t.Fatal(err)
	}
	box := native.New(&native.Options{Stage: os.Getenv(stagetest.Variable), Dir: filepath.Join(t.TempDir(), "run")})
	trial, err := box.Start(t.Context(), &sandbox.Spec{Mounts: []sandbox.Mount{{Host: workspace, Path: "/workspace", Overlay: true}}})
	if err != nil {
		t.Skip(err)
	}
	defer trial.Close()
	if err := trial.(execute.Overlayer).OverlayError(); err != nil {
		t.Skip(err)
	}
	held := filepath.Join(t.TempDir(), "changes")
	s := &workshop{grants: policy.NewMemoryStore()}
	o.Workspace = workspace
	s.world = newWorld(t, setup{tree: shell(), options: o, scripts: &loadout.Scripts{Sandbox: box, Grants: s.grants, HeldChangesDir: held, FolderDir: filepath.Join(t.TempDir(), "work"), Bounds: policy.Bounds{WorkspaceWrite: true}}})
	r, err := s.rt.ReadApprovalRequest(t.Context(), "sh")
	if err == nil {
		p := r.Requested.Permissions()
		p.WorkspaceWrite = true
		_, err = s.grants.Put(t.Context(), policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Scope: policy.Always, Subject: r.Digest, Name: "sh", Origin: r.Entry.Origin, Permissions: p})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.world, workspace, heldchange.New(held)
}

// The user is asked by elicitation where the client has it. Otherwise changes of
// steering files are held.
func TestUserIsAskedAboutChangesOfScripts(t *testing.T) {
	for _, how := range ways {
		for action, decision := range map[string]any{"accept": "apply", "decline": nil, "cancel": nil} {
			t.Run(how.String()+"/"+action, func(t *testing.T) {
				w, workspace, store := newSteerer(t, mcpserver.Options{})
				asked := ""
				c := w.connect(t, how, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked += req.Params.Message
					return &mcp.ElicitResult{Action: action, Content: map[string]any{"decision": decision}}, nil
				}})
				res := c.call("run_skill_script", line("echo obey > /workspace/CLAUDE.md; echo x > /workspace/x"))
				if res.IsError {
					t.Fatal(textOf(res))
				}
				data, _ := os.ReadFile(filepath.Join(workspace, "CLAUDE.md"))
				list, err := store.List(workspace)
				if err != nil {
					t.Fatal(err)
				}
				if applied := string(data) == "obey\n"; applied != (asked != "" && action == "accept") {
					t.Errorf("applied: %t, asked: %q", applied, asked)
				}
				if held := len(list) == 1; held != (asked == "" || action == "cancel") {
					t.Errorf("held %+v, asked: %q", list, asked)
				}
				if asked != "" && (strings.Count(asked, "CLAUDE.md (read by Claude Code)") != 1 || !strings.Contains(asked, "+obey")) {
					t.Errorf("asked %q", asked)
				}
				if how == (way{"stdio", legacy}) && asked == "" {
					t.Error("the user was not asked")
				}
				if asked == "" && !strings.Contains(textOf(res), "the user can review and apply them: loadout changes") {
					t.Errorf("result %q", textOf(res))
				}
			})
		}
	}
}

func TestProgramIsAskedAboutChangesOfScripts(t *testing.T) {
	asked := 0
	w, workspace, store := newSteerer(t, mcpserver.Options{ApproveChanges: func(_ context.Context, changes []loadout.HeldChange) (bool, error) {
		asked += len(changes)
		return true, nil
	}})
	res := w.connect(t, ways[0], nil).call("run_skill_script", line("echo obey > /workspace/CLAUDE.md"))
	data, _ := os.ReadFile(filepath.Join(workspace, "CLAUDE.md"))
	if list, err := store.List(workspace); asked != 1 || string(data) != "obey\n" || err != nil || len(list) > 0 {
		t.Errorf("asked %d, CLAUDE.md %q, held %v, %v: %s", asked, data, list, err, textOf(res))
	}
}
