package remote

import (
	"io"
	"os/exec"
)

// gitMemory is the memory limit of each git process and its children. Linux
// enforces it with RLIMIT_DATA and Windows with a job object. Other systems may
// ignore it. Without a limit, a server could make git use any amount: with an
// endless list of branches, a pack that claims billions of objects, or a few
// bytes that expand to gigabytes.
const gitMemory = 1 << 30

// gitProcess is a running git command. It ends together with its children when
// its context ends or when this program is killed.
type gitProcess struct {
	*exec.Cmd
	lifeline io.Closer // the process ends when this is closed
}

// startGit starts a command that was prepared by detach.
func startGit(cmd *exec.Cmd, memory int64) (*gitProcess, error) {
	tie, err := startSupervised(cmd, memory)
	if err != nil {
		return nil, err
	}
	return &gitProcess{cmd, tie}, nil
}

// Wait waits for the end of the command. It must be called.
func (p *gitProcess) Wait() error {
	err := p.Cmd.Wait()
	p.lifeline.Close()
	return err
}
