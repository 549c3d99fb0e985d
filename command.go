package loadout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// Command is a command of this machine that runs in the sandbox on a folder of
// the user. It starts in that folder.
type Command struct {
	Args     []string
	Folder   string // absolute; must not contain Loadout's own state
	Writable bool   // whether it may write to Folder, except to top-level names that are [IsProtected]
	Timeout  time.Duration
	Stdout   io.Writer // also receives the output; may be nil
	Stderr   io.Writer
}

// Command runs a command without network, secrets and the user's environment.
// The sandbox gets the folder and no other files of the user. A command that
// fails or is killed is a result; an error means that nothing ran. The error
// matches [ErrWorkspace] if the folder is not accepted. Command asks for no
// approval.
func (r *Runtime) Command(ctx context.Context, c Command) (*RunResult, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("run a command: no program named")
	}
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	if err := r.CheckWorkspace(c.Folder); err != nil {
		return nil, err
	}
	spec := &sandbox.Spec{}
	mountWorkspace(spec, c.Folder, c.Writable)
	run := &Run{ByUser: true, Stdout: c.Stdout, Stderr: c.Stderr}
	out, err := execute(ctx, r.scripts.Sandbox, "", run, spec, &sandbox.Cmd{Args: c.Args, Dir: sandbox.WorkspaceDir, Timeout: c.Timeout})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	return out, nil
}
