package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/loadout-dev/loadout/internal/heldchange"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// Streams are the standard streams of a run. Each may be nil.
type Streams struct {
	Stdin io.Reader
	// Stdout and Stderr receive the output as it is written.
	Stdout, Stderr io.Writer
	// Unlimited disables the output limit of Stdout, for a command that the
	// user typed.
	Unlimited bool
}

// Result is the outcome of a run.
type Result struct {
	*execute.Result
	Skill, Script string // "" for a host command
	Digest        policy.Digest
	Folder        string       // handle of the working folder, or ""
	UnsavedFiles  int          // number of files written outside /work/out
	HeldChanges   []HeldChange // changes to the workspace that were not applied without the user's agreement
	Notes         []string
}

// Command is a host command that runs in a sandbox.
type Command struct {
	Args    []string
	Inputs  []Input
	Streams Streams
	Output  Output
	Timeout time.Duration
	// Workspace is the user's directory in which the command starts, or "".
	Workspace string
	Access    Access // access to Workspace
	Agree     Agree  // may be nil
	// HeldChanges is as in [Options].
	HeldChanges *heldchange.Store

	// Skills are the active skills of the conversation, and Caller decides
	// which of them are approved.
	Skills []ActiveSkill
	Caller Caller
}

// runCommand runs a host command in a sandbox with the trees, mounts and
// environment in spec.
func runCommand(ctx context.Context, b sandbox.Backend, c *Command, spec *sandbox.Spec) (*Result, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("run command: missing program name")
	}
	cmd := &sandbox.Cmd{Args: c.Args, Timeout: c.Timeout}
	inputs, err := inputTrees(c.Inputs)
	if err != nil {
		return nil, err
	}
	spec.Trees = append(spec.Trees, inputs...)
	if c.Workspace != "" {
		mountWorkspace(spec, c.Workspace, c.Access)
		cmd.Dir = mountpoint.Workspace
	}
	res, err := runInSandbox(ctx, b, spec, cmd, c.Streams, c.Output, &workspace{dir: c.Workspace, access: c.Access, agree: c.Agree, store: c.HeldChanges})
	if err != nil {
		return res, fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	return res, nil
}

// runInSandbox runs a command in a sandbox, saves its output files and applies
// its changes to the workspace.
func runInSandbox(ctx context.Context, b sandbox.Backend, spec *sandbox.Spec, cmd *sandbox.Cmd, std Streams, out Output, ws *workspace) (*Result, error) {
	files, err := newCollector(ctx, out, spec)
	if err != nil {
		return nil, err
	}
	res, err := ws.run(ctx, b, spec, cmd, &execute.Options{
		Stdin: std.Stdin, Stdout: std.Stdout, Stderr: std.Stderr, Unlimited: std.Unlimited && std.Stdout != nil, Collect: files.collect})
	switch {
	case err != nil:
		files.discard()
		if res == nil {
			return nil, err
		}
		files.handle, res.Files = "", nil
	default:
		if err = files.commit(res); err != nil {
			err = fmt.Errorf("save files: %w", err)
		}
	}
	r := &Result{Result: res, Folder: files.handle, UnsavedFiles: files.unsaved, HeldChanges: ws.held, Notes: ws.notes}
	if files.hidden > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d files not saved: their names begin with a dot", files.hidden))
	}
	if files.unsafe > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d files not saved because of their names; the first is %s", files.unsafe, files.reason))
	}
	if res.Tier == sandbox.Limited {
		r.Notes = append(r.Notes, "ran without isolation, as allowed for this digest")
	}
	return r, err
}

// missingModule matches Python's error for a package that is not installed.
var missingModule = lazyregexp.New(`ModuleNotFoundError: No module named '([A-Za-z0-9_]+)`)

// missingModuleNote returns a note about a Python module that the script
// imports but that is not installed. It returns nil if every module was found,
// or if the script declares packages.
func missingModuleNote(plan *script.Plan, res *Result) []string {
	if plan.Kind != script.Python || plan.Needs != nil || res.ExitCode == 0 {
		return nil
	}
	m := missingModule.FindSubmatch(res.Stderr)
	if m == nil {
		return nil
	}
	return []string{fmt.Sprintf("module %s not found: declare its package in requirements.txt or in a # /// script block", m[1])}
}
