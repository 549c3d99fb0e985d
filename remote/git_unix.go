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

// apart starts a command in a session of its own, so that there is no terminal that
// it could ask on, and has the end of its context end all that it started.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// tiedScript bounds the memory of a command, runs it, and kills its group when the
// third file is closed at the other end, which the end of this program does however
// it comes. A bound that is lower already stays; without any nothing is run. When the
// command has ended, what it left in the group is asked to end, and so is what waits
// for us: no process is left that others would have to reap.
const tiedScript = `ulimit -d "$1" 2>/dev/null
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

// startTied starts a command by tiedScript.
func startTied(cmd *exec.Cmd, memory int64) (io.Closer, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	tied := []string{"sh", "-c", tiedScript, "sh", strconv.FormatInt(memory>>10, 10), cmd.Path}
	cmd.Path, cmd.Args = "/bin/sh", append(tied, cmd.Args[1:]...)
	cmd.ExtraFiles = []*os.File{r}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// isOurs reports whether a file is of the user whom we run as.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
