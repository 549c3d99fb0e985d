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

// detach starts a command in a session of its own, so that it has no terminal
// to prompt on. When the context ends, all its children end too.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// supervisorScript limits the memory of a command, runs it, and kills its process
// group when the other end of the third file is closed. That happens however
// this program ends. A lower existing limit stays. If no limit can be set, the
// command does not run. After the command has ended, the script terminates its
// remaining group and the waiting shell, so that no process is left for others
// to reap.
const supervisorScript = `ulimit -d "$1" 2>/dev/null
test "$(ulimit -d)" -le "$1" 2>/dev/null || { echo 'fatal: its memory cannot be bounded' >&2; exit 1; }
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

// startSupervised starts a command with tiedScript.
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
