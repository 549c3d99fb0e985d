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

	"github.com/loadout-dev/loadout/sandbox"
)

// The scripts that are run in containers: constant, with what varies as
// arguments.
const (
	// there is whether a program is.
	there = `case $0 in */*) [ -f "$0" ] && [ -x "$0" ];; *) command -v -- "$0" >/dev/null;; esac`
	// begin notes the number of a command, and becomes it.
	begin = `echo "$$" >"$0" && unset PWD OLDPWD SHLVL _ && exec "$@"`
	// endOne ends a command's process group, endAll everything of its user.
	endOne = `read -r p <"$0" && { kill -9 -- "-$p" || kill -9 "$p"; }`
	endAll = `kill -9 -1`
)

// grace is how long the client may take to see that a command was killed.
const grace = 5 * time.Second

// process is one command, with the client that is attached to it.
type process struct {
	s      *box
	id     string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr io.ReadCloser
	began  time.Time
	done   chan struct{}
	exit   sandbox.Exit
	killed sync.Once
	ours   atomic.Bool // we ended it
}

var _ sandbox.Process = (*process)(nil)

func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.Reader     { return output{p.stdout} }
func (p *process) Stderr() io.Reader     { return output{p.stderr} }

// output closes itself when everything was read.
type output struct{ r io.ReadCloser }

func (o output) Read(b []byte) (int, error) {
	n, err := o.r.Read(b)
	if err != nil {
		o.r.Close()
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}

// Wait waits for the end of the command.
func (p *process) Wait() sandbox.Exit {
	<-p.done
	return p.exit
}

// Exec starts a command.
func (s *box) Exec(ctx context.Context, cmd *sandbox.Cmd) (sandbox.Process, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return nil, errors.New("sandbox: a command without a program")
	}
	dir := cmd.Dir
	if dir == "" {
		dir = sandbox.WorkDir
	}
	if err := s.find(ctx, cmd.Args[0], dir); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.next++
	p := &process{s: s, id: stateDir + "/" + strconv.Itoa(s.next), done: make(chan struct{})}
	s.mu.Unlock()
	args := []string{"exec", "-i", "--user", user, "--workdir", dir}
	env, files, err := environment(s.spec.Environment(cmd, sandbox.SamePath))
	if err != nil {
		return nil, err
	}
	args = append(append(args, env...), s.name, "sh", "-c", begin, p.id)
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

// find makes sure that a program is there, as the client does not tell that it
// is not from what the program says.
func (s *box) find(ctx context.Context, program, dir string) error {
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
	_, err := s.engine.call(ctx, nil, "exec", "--user", user, "--workdir", dir, "--env", "PATH=/usr/local/bin:/usr/bin:/bin", s.name, "sh", "-c", there, program)
	switch code := exitCode(err); {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case code == 1 || code == 126 || code == 127: // the latter from the engine, as for a directory that is not there
		return &sandbox.StartError{Program: program, Err: errors.New("no such program in the image, or it may not be executed")}
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
			f.Close() // of nil too
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
		return fail(errors.New("the sandbox has ended"))
	}
	if err := p.cmd.Start(); err != nil {
		return fail(err)
	}
	p.began = time.Now()
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
	l := p.s.spec.Limits.WithDefaults()
	if p.ours.Load() {
		code = -1 // whether it was faster cannot be told, and does not matter
	}
	switch code {
	case 0:
		p.exit.Reason = sandbox.OK
	case -1: // or the client was killed
		p.exit.Code, p.exit.Signal = 137, "SIGKILL"
	case 137:
		p.exit.Signal = "SIGKILL"
		if out, err := p.s.engine.call(context.Background(), nil, "inspect", "--format", "{{.State.OOMKilled}}", p.s.name); err == nil && out == "true" {
			p.exit.Reason, p.exit.Detail = sandbox.OOM, "it used more than "+strconv.FormatInt(l.Memory>>20, 10)+" MiB of memory"
		} else if time.Since(p.began) >= l.CPU/time.Duration(runtime.NumCPU()) { // the engine does not tell
			p.exit.Reason, p.exit.Detail = sandbox.CPU, "it was ended from outside, most likely as it used more than "+l.CPU.String()+" of processor time"
		}
	case 152:
		p.exit.Signal, p.exit.Reason, p.exit.Detail = "SIGXCPU", sandbox.CPU, "it used more than "+l.CPU.String()+" of processor time"
	case 153:
		p.exit.Signal, p.exit.Reason, p.exit.Detail = "SIGXFSZ", sandbox.FileSize, "it wrote a file of more than "+strconv.FormatInt(l.FileSize>>20, 10)+" MiB"
	case 159:
		p.exit.Signal, p.exit.Reason, p.exit.Detail = "SIGSYS", sandbox.Denied, "it made a system call that is not allowed here"
	case 143:
		p.exit.Signal = "SIGTERM"
	}
	p.stdin.Close()
	p.s.mu.Lock()
	delete(p.s.running, p)
	p.s.mu.Unlock()
	close(p.done)
}

// Kill ends the command in the container, which does not end with the client.
// Where that cannot be done, the container is killed.
func (p *process) Kill() {
	p.killed.Do(func() {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		if p.s.closed || !p.s.running[p] {
			return
		}
		script := []string{"sh", "-c", endOne, p.id}
		if len(p.s.running) == 1 {
			script = []string{"sh", "-c", endAll}
		}
		p.ours.Store(true)
		p.s.calls.Go(func() { p.end(script) })
	})
}

func (p *process) end(script []string) {
	ctx := context.Background()
	p.s.engine.call(ctx, nil, append([]string{"exec", "--user", user, p.s.name}, script...)...) // what counts is whether it has ended
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
		return
	case <-t.C:
	}
	p.s.engine.call(ctx, nil, "kill", p.s.name)
	t.Reset(grace)
	select {
	case <-p.done:
	case <-t.C:
		p.cmd.Process.Kill()
	}
}

// longestLine is what clients read of a file as one line, with room to spare.
const longestLine = 32 << 10

// environment gives the client the variables of a command. They go through a
// file, so that nobody sees them who sees the arguments of processes; only those
// that no such file can have are arguments.
func environment(vars []string) (args []string, files []*os.File, err error) {
	var lines strings.Builder
	for _, kv := range vars {
		if environmentFile == "" || strings.ContainsAny(kv, "\n\r") || strings.TrimSpace(kv) != kv || kv[0] == '#' || len(kv) > longestLine {
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
		io.WriteString(w, lines.String()) // ends when the client has read it, or has gone
		w.Close()
	}()
	return append(args, "--env-file", environmentFile), []*os.File{r}, nil
}
