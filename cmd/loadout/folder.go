package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/workspace"
)

// dataDir is where an agent keeps what it makes, "" where there is no place for it.
func (a *app) dataDir() string {
	if d := a.getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "loadout")
	}
	if h := a.home(); h != "" {
		return filepath.Join(h, ".local", "share", "loadout")
	}
	return ""
}

// nobody is the user that sandboxes of root have.
const nobody = 65534

// chatFolder is the folder that an agent works on, and the rules for it: the one that
// the person named, where it asks before it changes something, or one of the
// conversation's own.
func (a *app) chatFolder(named, id string) (dir string, rules policy.Rules, err error) {
	if dir, err = workspaceDir(named); err != nil {
		return "", rules, err
	}
	list := []string{"allow mcp.workspace.read_file", "allow mcp.workspace.list_files"}
	if dir == "" {
		data := a.dataDir()
		if data == "" {
			return "", rules, fail(exitMissing, "name one with --workspace, or set XDG_DATA_HOME", "there is no place for a working folder")
		}
		dir = filepath.Join(data, "chats", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", rules, err
		}
		if os.Geteuid() == 0 { // commands are another user's then, whose the folder has to be
			if err := os.Chown(dir, nobody, nobody); err != nil {
				return "", rules, err
			}
		}
		list = []string{"ask mcp.workspace." + workspace.SaveSkill, "allow mcp.workspace.*"}
	}
	rules, problems := policy.ParseRules(list)
	if len(problems) > 0 {
		return "", rules, fmt.Errorf("rules for the working folder: %s", problems[0])
	}
	return dir, rules, nil
}

// projectDir is the project whose skills a conversation may add to: the folder that
// the person named, else the working directory; "" is none, where the person said
// which skills there are.
func (a *app) projectDir(named string) string {
	if named != "" {
		dir, _ := workspaceDir(named) // which was looked at before
		return dir
	}
	dir, err := os.Getwd()
	if err != nil || len(a.skills) > 0 {
		return ""
	}
	return dir
}

// shellCommands runs commands of an agent in the sandbox, on its folder.
func shellCommands(rt *loadout.Runtime, dir string) func(context.Context, []string, time.Duration) (*workspace.Ran, error) {
	if !rt.RunsScripts() || errors.Is(rt.CheckWorkspace(dir), loadout.ErrWorkspace) {
		return nil
	}
	return func(ctx context.Context, args []string, timeout time.Duration) (*workspace.Ran, error) {
		ran, err := rt.Command(ctx, loadout.Command{Args: args, Folder: dir, Writable: true, Timeout: timeout})
		if err != nil {
			return nil, err
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
