package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// sandboxUser is the user ID of sandboxed code if Loadout runs as root.
const sandboxUser = 65534

// openWorkFolder returns the working directory of an agent and its policy
// rules. In a directory given by the user, changes need approval. Otherwise the
// conversation gets its own directory.
func (h *Host) openWorkFolder(named, id string) (dir string, rules policy.Rules, err error) {
	if dir, err = setup.ResolveWorkspace(named); err != nil {
		return "", rules, err
	}
	list := []string{"allow mcp.workspace." + toolname.ReadFile, "allow mcp.workspace." + toolname.ListFiles}
	if dir == "" {
		data := h.DataDir()
		if data == "" {
			return "", rules, exit.Errorf(exit.Missing, "name one with --workspace, or set XDG_DATA_HOME", "no directory for a working folder")
		}
		dir = filepath.Join(data, "chats", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", rules, err
		}
		if os.Geteuid() == 0 { // commands run as another user, who must own the directory
			if err := os.Chown(dir, sandboxUser, sandboxUser); err != nil {
				return "", rules, err
			}
		}
		list = []string{"ask mcp.workspace." + toolname.SaveSkill, "allow mcp.workspace.*"}
	}
	rules, problems := policy.ParseRules(list)
	if len(problems) > 0 {
		return "", rules, fmt.Errorf("parse rules for working folder: %s", problems[0])
	}
	return dir, rules, nil
}

// skillProjectDir returns the project whose skills a conversation can use: the
// given directory, or the current one. It returns "" if the user selected the
// skills with --skills.
func (h *Host) skillProjectDir(named string) string {
	if named != "" {
		dir, _ := setup.ResolveWorkspace(named) // validated earlier
		return dir
	}
	dir, err := os.Getwd()
	if err != nil || len(h.Skills) > 0 {
		return ""
	}
	return dir
}

// approveChanges asks the user whether to apply the changes made by a command.
type approveChanges func(context.Context, []loadout.HeldChange) (bool, error)

// agreeCallback returns ask as an [execution.Agree] callback, for changes that the agent
// makes without running a command. It returns nil if ask is nil.
func (ask approveChanges) agreeCallback() execution.Agree {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, held []execution.HeldChange) (bool, error) {
		var changes []loadout.HeldChange
		for _, c := range held {
			changes = append(changes, loadout.HeldChange(c))
		}
		return ask(ctx, changes)
	}
}

// newCommandRunner returns a function that runs an agent's commands in the
// sandbox, with dir as the working directory. If own is true, dir was created
// for the conversation, and commands change it directly. Commands can use the
// skills that are active in the conversation with the given ID. newCommandRunner
// returns nil if commands cannot be run.
func newCommandRunner(rt *loadout.Runtime, dir string, own bool, approve approveChanges, id string, active func() []session.ActiveSkill) func(context.Context, []string, time.Duration) (*workspace.CommandResult, error) {
	if !rt.RunsScripts() || errors.Is(rt.CheckWorkspace(dir), loadout.ErrWorkspace) {
		return nil
	}
	return func(ctx context.Context, args []string, timeout time.Duration) (*workspace.CommandResult, error) {
		ran, err := rt.Command(ctx, loadout.Command{Args: args, Folder: dir, Writable: true, Direct: own, ApproveChanges: approve, Skills: active(), Session: id, Timeout: timeout})
		if err != nil {
			return nil, err
		}
		out := &workspace.CommandResult{ExitCode: ran.ExitCode, Stdout: ran.Stdout, Stderr: ran.Stderr}
		switch {
		case ran.Killed:
			out.Notes = append(out.Notes, "stopped: "+string(ran.Reason))
		case ran.Truncated:
			out.Notes = append(out.Notes, "output truncated")
		}
		out.Notes = append(out.Notes, ran.Notes...)
		return out, nil
	}
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
