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
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/outputlink"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// elicitTimeout is the timeout for a user's answer to a server's question.
const elicitTimeout = 15 * time.Minute

// folderRules allows an agent to use the working directory of its conversation
// without approval, because the directory contains only the conversation's
// files.
var folderRules = []string{"allow mcp." + workspace.Name + ".*"}

// folderTools returns the tools for the working directory. For run, see
// [workspace.Options]. The agent's deny rules apply.
func (t *conversation) folderTools(ctx context.Context, root *os.Root, run runFunc, s *session.Session, o agent.SkillToolOptions) ([]agent.Tool, error) {
	rt := t.setup.Runtime
	server := workspace.New(root, &workspace.Options{Own: true, Run: run, ReadOutput: func(link string) ([]byte, error) { return outputlink.Read(rt, link) }})
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{
		Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){upstream.Provider: upstream.MemoryTransport(map[string]*mcp.Server{workspace.Name: server})},
	}})
	rules, problems := policy.ParseRules(folderRules)
	if len(problems) > 0 {
		return nil, fmt.Errorf("parse rules for working directory: %s", problems[0])
	}
	set := tools.ForRuntime(rt, toolset.With(&tools.Options{
		Rules: t.setup.base.plan.rules.Append(rules), Grants: NewGrantStore(t.assembler.o.DB, t.setup.Principal), Audit: t.assembler.auditor().Append, Logger: t.assembler.o.Logger,
		Own: []*upstream.Config{{Name: workspace.Name, Type: upstream.Provider, URLs: []string{workspace.Name}, Safety: policy.High.String()}},
	}, toolset.Options{Pool: pool}))
	if err := t.onClose(func() error { return errors.Join(set.Close(), pool.Close()) }); err != nil {
		return nil, err
	}
	o.Tools = set
	return agent.ServerTools(ctx, rt, s, workspace.Name, &o)
}

// runFunc runs a command in the working directory.
type runFunc = func(ctx context.Context, args []string, timeout time.Duration) (*workspace.CommandResult, error)

// runsCommands reports whether commands can run in the working directory. This
// requires a sandbox, a user who may run code, and a directory that may be passed
// to the sandbox. The last condition has the same result for all conversations of
// a node.
func (t *conversation) runsCommands(ctx context.Context, c *chat.ToolContext) (bool, error) {
	rt, k := t.setup.Runtime, t.assembler
	if t.principal.Scopes&account.ScopeRun == 0 || !rt.RunsScripts() {
		return false, nil
	}
	k.mu.Lock()
	refused := k.folderRefused
	k.mu.Unlock()
	if refused == nil {
		if _, err := c.OpenFolder(ctx); err != nil {
			return false, err
		}
		refused = new(errors.Is(rt.CheckWorkspace(c.FolderPath), loadout.ErrWorkspace))
		k.mu.Lock()
		k.folderRefused = refused
		k.mu.Unlock()
	}
	return !*refused, nil
}

// commandRunner returns a function that runs sandboxed commands in the working
// directory. Commands can use the active skills of s.
func (t *conversation) commandRunner(dir string, s *session.Session) runFunc {
	rt := t.setup.Runtime
	return func(ctx context.Context, args []string, timeout time.Duration) (*workspace.CommandResult, error) {
		if err := chownToSandbox(dir); err != nil {
			return nil, err
		}
		ran, err := rt.Command(ctx, loadout.Command{Args: args, Folder: dir, Writable: true, Direct: true, Skills: s.SkillsInContext(), Session: s.ID(), Timeout: timeout})
		if err != nil {
			return nil, firstLine(err)
		}
		out := &workspace.CommandResult{ExitCode: ran.ExitCode, Stdout: ran.Stdout, Stderr: ran.Stderr}
		switch {
		case ran.Killed:
			out.Notes = append(out.Notes, "killed: "+string(ran.Reason))
		case ran.Truncated:
			out.Notes = append(out.Notes, "output truncated")
		}
		out.Notes = append(out.Notes, ran.Notes...)
		return out, nil
	}
}

// firstLine returns err reduced to its first line. Further lines are for the
// operator.
func firstLine(err error) error {
	if i := strings.IndexByte(err.Error(), '\n'); i >= 0 {
		return errors.New(err.Error()[:i])
	}
	return err
}

// nobody is the user ID of sandboxes if the hub runs as root.
const nobody = 65534

// maxChown is the maximum number of files and directories that chownToSandbox
// changes.
const maxChown = 20_000

// chownToSandbox makes the sandbox user the owner of a directory and its
// contents. It does not follow symbolic links.
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
			return nil // removed meanwhile
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("change owner of working directory: %w", errors.Unwrap(err))
	}
	return nil
}
