// Package spawn starts the commands of the user's own MCP servers. Each process
// has its own process group and a minimal environment, and none outlives this
// program. Servers of skills and projects run in a sandbox instead.
package spawn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// DefaultGrace is the default value of [Options.Grace].
const DefaultGrace = 2 * time.Second

// Options configures a [Spawner].
type Options struct {
	// Environ is the environment from which processes inherit some variables.
	// Nil means the environment of this process.
	Environ []string
	// Grace is how long a process may take to exit after its input is closed,
	// and again after SIGTERM. Zero means [DefaultGrace].
	Grace time.Duration
}

// A Spawner starts processes. It is safe for concurrent use. It does not need
// to be closed.
type Spawner struct {
	environ []string
	grace   time.Duration
	starter starter
}

// New returns a Spawner. o may be nil.
func New(o *Options) *Spawner {
	s := &Spawner{grace: DefaultGrace}
	if o != nil {
		s.environ = o.Environ
		if o.Grace > 0 {
			s.grace = o.Grace
		}
	}
	if s.environ == nil {
		s.environ = os.Environ()
	}
	return s
}

var _ upstream.Spawner = (*Spawner)(nil).Start

// Start starts the command of a server. The process gets PATH, HOME and similar
// variables, and those in c.Env. Its working directory is c.Dir or, if that is
// "", the directory of this program. ctx applies only to the start.
//
// When the process exits, the rest of its group is killed. When this program is
// killed, Linux kills the process immediately, and on Unix a guard process
// kills the group. A descendant that moves to another session escapes; only a
// sandbox prevents that.
func (s *Spawner) Start(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	env := environment(s.environ, c.Env)
	path, err := lookPath(c.Command, c.Dir, env)
	if err != nil {
		return nil, err
	}
	if c.Dir != "" {
		if i, err := os.Stat(c.Dir); err != nil || !i.IsDir() {
			return nil, fmt.Errorf("working directory %s is not a directory", c.Dir)
		}
	}
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, err
		}
		files = append(files, r, w)
	}
	p := &process{
		grace:  s.grace,
		stdin:  files[1],
		stdout: files[2],
		stderr: files[4],
		ended:  make(chan struct{}),
	}
	p.cmd = &exec.Cmd{
		Path: path, Args: append([]string{c.Command}, c.Args...), Env: env, Dir: c.Dir,
		Stdin: files[0], Stdout: files[3], Stderr: files[5],
	}
	p.group.prepare(p.cmd)
	if err := s.starter.start(p); err != nil {
		closeAll()
		if e := errors.Unwrap(err); e != nil && errors.As(err, new(*os.PathError)) {
			err = e
		}
		return nil, fmt.Errorf("start command %q: %w", c.Command, err)
	}
	for _, i := range []int{0, 3, 5} {
		files[i].Close()
	}
	p.work.Go(func() { p.ring.readFrom(p.stderr) })
	go p.reap(&s.starter) // Close waits for it
	return p, nil
}

// lookPath finds a command as a shell would with the working directory and
// environment of the process.
func lookPath(command, dir string, env []string) (string, error) {
	if strings.ContainsRune(command, '/') || strings.ContainsRune(command, filepath.Separator) {
		path := command
		if !filepath.IsAbs(path) && dir != "" {
			path = filepath.Join(dir, path)
		}
		found, err := exec.LookPath(path)
		if err != nil {
			if path != command {
				return "", fmt.Errorf("command %q not found in its working directory %s; use its full path, or set cwd: %w", command, dir, fileerror.Cause(err))
			}
			return "", fmt.Errorf("command %q not found: %w", command, fileerror.Cause(err))
		}
		return filepath.Abs(found)
	}
	list := ""
	for _, e := range env {
		if name, v, _ := strings.Cut(e, "="); sameName(name, "PATH") {
			list = v
		}
	}
	for _, d := range filepath.SplitList(list) {
		if !filepath.IsAbs(d) {
			continue // never search a directory relative to the current one
		}
		if found, err := exec.LookPath(filepath.Join(d, command)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("command %q not found in PATH; install it, or use its full path: %w", command, exec.ErrNotFound)
}

// process is a running server process. It implements [upstream.Process].
type process struct {
	cmd    *exec.Cmd
	group  group
	grace  time.Duration
	stdin  *os.File // the write end
	stdout *os.File
	stderr *os.File
	ring   ring
	work   sync.WaitGroup // tracks the goroutine that reads stderr

	mu     sync.Mutex // prevents signals to a reused group ID
	reaped bool

	closing  sync.Once
	ended    chan struct{} // closed when the process is reaped, the group is killed and stderr is read
	exitText string        // set before ended is closed
}

var _ upstream.Process = (*process)(nil)

// Read reads from the standard output of the process.
func (p *process) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if err != nil && errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// Write writes to the standard input of the process.
func (p *process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Stderr returns the last 64 KiB of standard error.
func (p *process) Stderr() string { return p.ring.String() }

// Exited describes how the process exited, for display. It returns "" while the
// process runs.
func (p *process) Exited() string {
	select {
	case <-p.ended:
		return p.exitText
	default:
		return ""
	}
}

// Close stops the process. It closes the input, terminates the group after a
// grace period, and kills it after another grace period. It returns when the
// process has been reaped. It may be called more than once and concurrently.
func (p *process) Close() error {
	p.closing.Do(func() {
		p.stdin.Close()
		if !p.waitGrace() {
			p.signal(p.group.terminate)
			if !p.waitGrace() {
				p.signal(p.group.kill)
			}
		}
	})
	<-p.ended
	p.stdout.Close()
	return nil
}

func (p *process) signal(how func(*exec.Cmd)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		how(p.cmd)
	}
}

func (p *process) waitGrace() bool {
	t := time.NewTimer(p.grace)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		return false
	}
}

// reap waits until the process exits, kills the rest of its group before the
// group ID can be reused, and reads the rest of standard error.
func (p *process) reap(k *starter) {
	awaited, err := p.group.await(p.cmd)
	p.signal(p.group.kill)
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if !awaited {
		err = p.cmd.Wait()
	}
	p.group.close()
	k.remove(p)
	// Do not wait for descendants outside the group, which may still hold the
	// pipe.
	t := time.AfterFunc(p.grace, func() { p.stderr.Close() })
	p.work.Wait()
	t.Stop()
	p.stderr.Close()
	p.exitText = "ended (status 0)"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		p.exitText = "ended: " + exit.Error()
	} else if err != nil {
		p.exitText = "ended: " + err.Error()
	}
	close(p.ended)
}
