package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// elicitor asks a person what a server wants to know.
type elicitor = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// elicitTimeout is how long a server's question may wait for a person.
const elicitTimeout = 15 * time.Minute

// folderRules let an agent work on the folder of its conversation, where nothing else is.
var folderRules = []string{"allow mcp." + workspace.Name + ".*"}

// folderTools are those of the working folder, as the caller may call them. What rules of
// the agent deny is denied.
func (t *conversation) folderTools(ctx context.Context, root *os.Root, like *agent.ToolCaller) ([]agent.Tool, error) {
	rt := t.setup.Runtime
	dir := root.Name()
	server := workspace.New(root, &workspace.Options{Run: t.commandRunner(dir), Made: func(link string) ([]byte, error) { return mcpserver.ReadFolderFile(rt, link) }})
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{
		Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){builtin: tools.MemoryTransport(map[string]*mcp.Server{workspace.Name: server})},
	}})
	rules, problems := policy.ParseRules(folderRules)
	if len(problems) > 0 {
		return nil, fmt.Errorf("rules for the working folder: %s", problems[0])
	}
	set := tools.ForRuntime(rt, &tools.Options{
		Pool: pool, Rules: t.setup.base.plan.rules.Append(rules), Grants: NewGrantStore(t.assembler.o.DB, t.setup.Principal), Audit: t.assembler.auditor().Append, Logger: t.assembler.o.Logger,
		Own: []*upstream.Config{{Name: workspace.Name, Type: builtin, URLs: []string{workspace.Name}, Safety: policy.High.String()}},
	})
	t.onClose(func() error { return errors.Join(set.Close(), pool.Close()) })
	caller := *like
	caller.Set = set
	return caller.ServerTools(ctx, workspace.Name)
}

// commandRunner runs commands of an agent in the sandbox, on its folder; nil where there is
// none, or who acts may not run code.
func (t *conversation) commandRunner(dir string) func(context.Context, []string, time.Duration) (*workspace.Ran, error) {
	rt := t.setup.Runtime
	if t.principal.Scopes&account.ScopeRun == 0 || !rt.RunsScripts() || errors.Is(rt.CheckWorkspace(dir), loadout.ErrWorkspace) {
		return nil
	}
	return func(ctx context.Context, args []string, timeout time.Duration) (*workspace.Ran, error) {
		if err := chownToSandbox(dir); err != nil {
			return nil, err
		}
		ran, err := rt.Command(ctx, loadout.Command{Args: args, Folder: dir, Writable: true, Timeout: timeout})
		if err != nil {
			return nil, firstLine(err)
		}
		out := &workspace.Ran{ExitCode: ran.ExitCode, Stdout: ran.Stdout, Stderr: ran.Stderr}
		switch {
		case ran.Killed:
			out.Note = "it was ended: " + string(ran.Reason)
		case ran.Truncated:
			out.Note = "the output was cut"
		}
		return out, nil
	}
}

// firstLine is why code did not run, without what an operator alone should see.
func firstLine(err error) error {
	if i := strings.IndexByte(err.Error(), '\n'); i >= 0 {
		return errors.New(err.Error()[:i])
	}
	return err
}

// nobody is the user that sandboxes of root have.
const nobody = 65534

// maxChown bounds the files and directories of a folder that are handed over.
const maxChown = 20_000

// chownToSandbox makes a folder that of the user as whom code runs in the sandbox. Links are
// not followed.
func chownToSandbox(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	seen := 0
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if seen++; seen > maxChown {
			return fs.SkipAll
		}
		if err == nil {
			err = os.Lchown(name, nobody, nobody)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the folder of the conversation cannot be given to the sandbox: %w", errors.Unwrap(err))
	}
	return nil
}
