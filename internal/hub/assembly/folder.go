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

// elicitPatience is how long a server's question may wait for a person.
const elicitPatience = 15 * time.Minute

// folderRules let an agent work on the folder of its conversation, where nothing else is.
var folderRules = []string{"allow mcp." + workspace.Name + ".*"}

// folderTools are those of the working folder, as the caller may call them. What rules of
// the agent deny is denied.
func (t *talk) folderTools(ctx context.Context, root *os.Root, like *agent.ToolCaller) ([]agent.Tool, error) {
	rt := t.kit.Runtime
	dir := root.Name()
	server := workspace.New(root, &workspace.Options{Run: t.commands(dir), Made: func(link string) ([]byte, error) { return mcpserver.ReadFolderFile(rt, link) }})
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{
		Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){builtin: tools.MemoryTransport(map[string]*mcp.Server{workspace.Name: server})},
	}})
	rules, problems := policy.ParseRules(folderRules)
	if len(problems) > 0 {
		return nil, fmt.Errorf("rules for the working folder: %s", problems[0])
	}
	set := tools.ForRuntime(rt, &tools.Options{
		Pool: pool, Rules: t.kit.base.plan.rules.Append(rules), Grants: NewGrantStore(t.kits.o.DB, t.kit.Principal), Audit: t.kits.auditing().Append, Logger: t.kits.o.Logger,
		Own: []*upstream.Config{{Name: workspace.Name, Type: builtin, URLs: []string{workspace.Name}, Safety: policy.High.String()}},
	})
	t.closing(func() error { return errors.Join(set.Close(), pool.Close()) })
	caller := *like
	caller.Set = set
	return caller.ServerTools(ctx, workspace.Name)
}

// commands runs commands of an agent in the sandbox, on its folder; nil where there is
// none, or who acts may not run code.
func (t *talk) commands(dir string) func(context.Context, []string, time.Duration) (*workspace.Ran, error) {
	rt := t.kit.Runtime
	if t.who.Scopes&account.ScopeRun == 0 || !rt.RunsScripts() || errors.Is(rt.CheckWorkspace(dir), loadout.ErrWorkspace) {
		return nil
	}
	return func(ctx context.Context, args []string, timeout time.Duration) (*workspace.Ran, error) {
		if err := handOver(dir); err != nil {
			return nil, err
		}
		ran, err := rt.Command(ctx, loadout.Command{Args: args, Folder: dir, Writable: true, Timeout: timeout})
		if err != nil {
			return nil, shortened(err)
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

// shortened is why code did not run, without what an operator alone should see.
func shortened(err error) error {
	if i := strings.IndexByte(err.Error(), '\n'); i >= 0 {
		return errors.New(err.Error()[:i])
	}
	return err
}

// nobody is the user that sandboxes of root have.
const nobody = 65534

// maxOwned bounds the files and directories of a folder that are handed over.
const maxOwned = 20_000

// handOver makes a folder that of the user as whom code runs in the sandbox. Links are
// not followed.
func handOver(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	seen := 0
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if seen++; seen > maxOwned {
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
