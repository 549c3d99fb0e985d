//go:build unix

package spawn

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guardScript reads the IDs of process groups. When its input is closed, which
// happens even if this program is killed, it kills these groups.
const guardScript = `trap '' HUP INT QUIT TERM
g=' '
while read -r op n; do
	case $op in
	+) g="$g$n " ;;
	-) case $g in *" $n "*) g="${g%% $n *} ${g#* $n }" ;; esac ;;
	esac
done
for n in $g; do kill -9 "-$n" 2>/dev/null; done
`

// guard is a shell that outlives this program long enough to kill its remaining
// process groups. On systems without /bin/sh it does nothing.
type guard struct {
	cmd *exec.Cmd
	in  *os.File
}

func newGuard(starts chan<- func()) *guard {
	r, w, err := os.Pipe()
	if err != nil {
		return &guard{}
	}
	defer r.Close()
	g := &guard{in: w, cmd: &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", guardScript}, Env: []string{}, Dir: "/", Stdin: r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}}
	if err := onThread(starts, g.cmd.Start); err != nil {
		w.Close()
		return &guard{}
	}
	return g
}

func (g *guard) add(group int) { g.send('+', group) }

func (g *guard) remove(group int) { g.send('-', group) }

// send writes one line. The pipe holds thousands of lines before send blocks.
func (g *guard) send(op rune, group int) {
	if g.in != nil {
		fmt.Fprintf(g.in, "%c %d\n", op, group)
	}
}

func (g *guard) close() {
	if g.in != nil {
		g.in.Close()
		g.cmd.Wait()
	}
}
