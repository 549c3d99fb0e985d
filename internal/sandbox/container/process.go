package container

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// Shell scripts to run in containers. They are constant; variable parts are
// passed as arguments.
const (
	// existsScript checks whether a program exists.
	existsScript = `case $0 in */*) [ -f "$0" ] && [ -x "$0" ];; *) command -v -- "$0" >/dev/null;; esac`
	// startScript records the PID of a command and executes it.
	startScript = `echo "$$" >"$0" && unset PWD OLDPWD SHLVL _ && exec "$@"`
	// killScript kills the process group of a command. killAllScript kills all
	// processes of the user that runs commands.
	killScript    = `read -r p <"$0" && { kill -9 -- "-$p" || kill -9 "$p"; }`
	killAllScript = `kill -9 -1`
)

// killTimeout is the maximum time for the client to notice that its command was
// killed.
const killTimeout = 5 * time.Second

// process is a command in a container, with its attached client.
type process struct {
	s        *instance
	id       string
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	stdout   io.ReadCloser
	stderr   io.ReadCloser
	started  time.Time
	done     chan struct{}
	exit     sandbox.Exit
	killOnce sync.Once
	killed   atomic.Bool // killed by this program
}

var _ sandbox.Process = (*process)(nil)

func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.Reader     { return pipeReader{p.stdout} }
func (p *process) Stderr() io.Reader     { return pipeReader{p.stderr} }

// pipeReader is a reader that is closed at EOF.
type pipeReader struct{ r io.ReadCloser }

func (o pipeReader) Read(b []byte) (int, error) {
	n, err := o.r.Read(b)
	if err != nil {
		o.r.Close()
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}

// Wait waits until the command has exited and returns its exit status.
func (p *process) Wait() sandbox.Exit {
	<-p.done
	return p.exit
}

// Exec implements [sandbox.Sandbox]. The client program of the container engine,
// such as docker, runs until the command ends.
func (s *instance) Exec(ctx context.Context, cmd *sandbox.Cmd) (sandbox.Process, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return nil, errors.New("sandbox: empty command")
	}
	dir := cmd.Dir
	if dir == "" {
		dir = mountpoint.Work
	}
	if err := s.checkProgram(ctx, cmd.Args[0], dir); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.next++
	p := &process{s: s, id: stateDir + "/" + strconv.Itoa(s.next), done: make(chan struct{})}
	s.mu.Unlock()
	args := []string{"exec", "-i", "--user", user, "--workdir", dir}
	env, files, err := environmentArguments(prepare.Environment(s.spec, cmd, nil))
	if err != nil {
		return nil, err
	}
	args = append(append(args, env...), s.name, "sh", "-c", startScript, p.id)
	p.cmd = s.engine.command(context.Background(), append(args, cmd.Args...)...)
	p.cmd.ExtraFiles = files
	err = p.start()
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// checkProgram returns an error if a program does not exist. The client does
// not distinguish a missing program from the program's own exit code.
func (s *instance) checkProgram(ctx context.Context, program, dir string) error {
	key := program
	if strings.Contains(program, "/") && program[0] != '/' {
		key = dir + "/" + program
	}
	s.mu.Lock()
	known := s.known[key]
	s.mu.Unlock()
	if known {
		return nil
	}
	_, err := s.engine.call(ctx, nil, "exec", "--user", user, "--workdir", dir, "--env", "PATH=/usr/local/bin:/usr/bin:/bin", s.name, "sh", "-c", existsScript, program)
	switch code := exitCode(err); {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case code == 1 || code == 126 || code == 127: // the engine uses 126 and 127, for example for a missing directory
		return &sandbox.StartError{Program: program, Err: errors.New("program not found in the image, or not executable")}
	default:
		return err
	}
	s.mu.Lock()
	s.known[key] = true
	s.mu.Unlock()
	return nil
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	return -1
}

func (p *process) start() error {
	var theirs [3]*os.File
	defer func() {
		for _, f := range theirs {
			f.Close() // may be nil
		}
	}()
	var ours [3]*os.File
	fail := func(err error) error {
		for _, f := range ours {
			f.Close()
		}
		return err
	}
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		if theirs[i], ours[i] = w, r; i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	p.stdin, p.stdout, p.stderr = ours[0], ours[1], ours[2]
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.closed {
		return fail(errors.New("sandbox has ended"))
	}
	if err := p.cmd.Start(); err != nil {
		return fail(err)
	}
	p.started = time.Now()
	p.s.running[p] = true
	go p.wait()
	return nil
}

func (p *process) wait() {
	err := p.cmd.Wait()
	code := 0
	if err != nil {
		code = exitCode(err)
	}
	p.exit = sandbox.Exit{Code: code, Reason: sandbox.Exited}
	l := prepare.Limits(p.s.spec)
	if p.killed.Load() {
		code = -1 // it does not matter whether the command exited first
	}
	switch code {
	case 0:
		p.exit.Reason = sandbox.OK
	case -1: // the command or the client was killed
		p.exit.Code, p.exit.Signal = 137, "SIGKILL"
	case 137:
		p.exit.Signal = "SIGKILL"
		if out, err := p.s.engine.call(context.Background(), nil, "inspect", "--format", "{{.State.OOMKilled}}", p.s.name); err == nil && out == "true" {
			p.exit.Reason, p.exit.Detail = sandbox.OOM, "memory limit exceeded ("+strconv.FormatInt(l.Memory>>20, 10)+" MiB)"
		} else if time.Since(p.started) >= l.CPU/time.Duration(runtime.NumCPU()) { // the engine does not report why a process was killed
			p.exit.Reason, p.exit.Detail = sandbox.CPU, "killed, probably because of the CPU time limit ("+l.CPU.String()+")"
		}
	case 152:
		p.exit.Signal, p.exit.Reason, p.exit.Detail = "SIGXCPU", sandbox.CPU, "CPU time limit exceeded ("+l.CPU.String()+")"
	case 153:
		p.exit.Signal, p.exit.Reason, p.exit.Detail = "SIGXFSZ", sandbox.FileSize, "file size limit exceeded ("+strconv.FormatInt(l.FileSize>>20, 10)+" MiB)"
	case 159:
		p.exit.Signal, p.exit.Reason, p.exit.Detail = "SIGSYS", sandbox.Denied, "forbidden system call"
	case 143:
		p.exit.Signal = "SIGTERM"
	}
	p.stdin.Close()
	p.s.mu.Lock()
	delete(p.s.running, p)
	p.s.mu.Unlock()
	close(p.done)
}

// Kill kills the command inside the container, because the command outlives the
// client. If that fails, Kill kills the container.
func (p *process) Kill() {
	p.killOnce.Do(func() {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		if p.s.closed || !p.s.running[p] {
			return
		}
		script := []string{"sh", "-c", killScript, p.id}
		if len(p.s.running) == 1 {
			script = []string{"sh", "-c", killAllScript}
		}
		p.killed.Store(true)
		p.s.calls.Go(func() { p.runKill(script) })
	})
}

func (p *process) runKill(script []string) {
	ctx := context.Background()
	p.s.engine.call(ctx, nil, append([]string{"exec", "--user", user, p.s.name}, script...)...) // an error does not matter, only whether the command exits
	t := time.NewTimer(killTimeout)
	defer t.Stop()
	select {
	case <-p.done:
		return
	case <-t.C:
	}
	p.s.engine.call(ctx, nil, "kill", p.s.name)
	t.Reset(killTimeout)
	select {
	case <-p.done:
	case <-t.C:
		p.cmd.Process.Kill()
	}
}

// maxLine is slightly less than the maximum line length of a client's
// environment file.
const maxLine = 32 << 10

// environmentArguments passes environment variables to the client in a file, so
// that they do not appear in process arguments. Only variables that such a file
// cannot represent become arguments.
func environmentArguments(vars []string) (args []string, files []*os.File, err error) {
	var lines strings.Builder
	for _, kv := range vars {
		if environmentFile == "" || strings.ContainsAny(kv, "\n\r") || strings.TrimSpace(kv) != kv || kv[0] == '#' || len(kv) > maxLine {
			args = append(args, "--env", kv)
			continue
		}
		lines.WriteString(kv + "\n")
	}
	if lines.Len() == 0 {
		return args, nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	go func() {
		io.WriteString(w, lines.String()) // returns when the client has read the text or has exited
		w.Close()
	}()
	return append(args, "--env-file", environmentFile), []*os.File{r}, nil
}
