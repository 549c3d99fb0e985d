//go:build unix

package remote

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach prepares a command to start in its own session, so that it has no
// terminal to prompt on. When the context is done, the command and all its
// children are killed.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// supervisorScript limits the memory of a command, runs it, and kills its
// process group when the other end of the pipe at file descriptor 3 is closed.
// That happens even if this program is killed. An existing lower limit stays in
// effect. If no limit can be set, the command does not run. After the command
// has exited, the script terminates the rest of the group and the waiting
// shell, so that no other process has to reap them.
const supervisorScript = `ulimit -d "$1" 2>/dev/null
test "$(ulimit -d)" -le "$1" 2>/dev/null || { echo 'fatal: cannot limit the memory of git' >&2; exit 1; }
shift
{ read -r _ <&3; kill -9 "-$$"; } </dev/null >/dev/null 2>&1 &
exec 4<&0
"$@" <&4 3<&- 4<&- &
git=$!
exec </dev/null >/dev/null 2>&1 4<&-
wait $git
status=$?
trap '' TERM
kill -TERM "-$$"
wait
exit $status
`

// startSupervised starts a command under supervisorScript.
func startSupervised(cmd *exec.Cmd, memory int64) (io.Closer, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	tied := []string{"sh", "-c", supervisorScript, "sh", strconv.FormatInt(memory>>10, 10), cmd.Path}
	cmd.Path, cmd.Args = "/bin/sh", append(tied, cmd.Args[1:]...)
	cmd.ExtraFiles = []*os.File{r}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// isOwnFile reports whether a file belongs to the current user.
func isOwnFile(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
