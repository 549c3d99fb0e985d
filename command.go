package loadout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// Command is a command of this machine that runs in the sandbox on a folder of the
// person, which is where it starts.
type Command struct {
	Args     []string
	Folder   string // absolute; what Loadout decides by is in none that is accepted
	Writable bool   // it may write there, but not to what is [Guarded] at its top already
	Timeout  time.Duration
	Stdout   io.Writer // besides the result; may be nil
	Stderr   io.Writer
}

// Command runs a command. It has no network, no secrets and no environment of the
// person; the folder is given to it, and nothing else of theirs. A command that
// fails, or is ended, is a result; an error says that nothing ran. It matches
// [ErrWorkspace] where the folder is not accepted. Nobody is asked: whoever calls it
// has leave.
func (r *Runtime) Command(ctx context.Context, c Command) (*Ran, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("run a command: it has no words")
	}
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	if err := r.CheckWorkspace(c.Folder); err != nil {
		return nil, err
	}
	spec := &sandbox.Spec{}
	mountWorkspace(spec, c.Folder, c.Writable)
	run := &Run{Typed: true, Stdout: c.Stdout, Stderr: c.Stderr}
	out, err := execute(ctx, r.scripts.Sandbox, "", run, spec, &sandbox.Cmd{Args: c.Args, Dir: sandbox.WorkspaceDir, Timeout: c.Timeout})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	return out, nil
}
