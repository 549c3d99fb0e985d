package remote

import (
	"io"
	"os/exec"
)

// gitMemory is how much memory each process of git may have, and each that it starts,
// where the system can bound it: on Linux by RLIMIT_DATA, on Windows by a job.
// Elsewhere the system bounds what it will of the former, which may be nothing. A
// server can have git take any amount: by a list of branches without end, by a pack
// that says it has billions of objects, by a few bytes that unfold to gigabytes.
const gitMemory = 1 << 30

// gitProcess is a command of git that runs. It ends, and all that it started and that
// is still in its session, with its context, and also when this program is killed.
type gitProcess struct {
	*exec.Cmd
	tie io.Closer // what ties it to us: it ends when this is closed
}

// startGit starts a command that apart was told of.
func startGit(cmd *exec.Cmd, memory int64) (*gitProcess, error) {
	tie, err := startTied(cmd, memory)
	if err != nil {
		return nil, err
	}
	return &gitProcess{cmd, tie}, nil
}

// Wait waits for the end of the command. It has to be called.
func (p *gitProcess) Wait() error {
	err := p.Cmd.Wait()
	p.tie.Close()
	return err
}
