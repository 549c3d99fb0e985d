package remote

import (
	"io"
	"os/exec"
)

// gitMemory is the default memory limit in bytes of each git process and its
// children. Linux enforces it with RLIMIT_DATA, and Windows with a job object.
// Other systems may ignore it. Without a limit, a server could make git use any
// amount of memory: with an endless list of branches, a pack that claims
// billions of objects, or a few bytes that expand to gigabytes.
const gitMemory = 1 << 30

// gitProcess is a running git command. It and its children are killed when its
// context is done or when this program exits.
type gitProcess struct {
	*exec.Cmd
	lifeline io.Closer // closing it kills the process
}

// startGit starts a command prepared by detach.
func startGit(cmd *exec.Cmd, memory int64) (*gitProcess, error) {
	tie, err := startSupervised(cmd, memory)
	if err != nil {
		return nil, err
	}
	return &gitProcess{cmd, tie}, nil
}

// Wait waits for the command to exit. It must be called once.
func (p *gitProcess) Wait() error {
	err := p.Cmd.Wait()
	p.lifeline.Close()
	return err
}
