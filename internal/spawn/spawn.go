// Package spawn starts the commands of a person's own MCP servers as plain
// processes: in a process group of their own, with little in their environment,
// and so that nothing of them is left, however the program ends. What a skill
// or a project brings does not come here: it runs in a sandbox.
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

	"github.com/loadout-dev/loadout/upstream"
)

// DefaultGrace is how long each step of ending a process waits.
const DefaultGrace = 2 * time.Second

// Options are the choices for a [Spawner].
type Options struct {
	// Environ is the environment to choose from; nil is that of this process.
	Environ []string
	// Grace is how long a process has to end after its input was closed, and again
	// after SIGTERM; 0 is [DefaultGrace].
	Grace time.Duration
}

// A Spawner starts processes. It needs no Close: what it keeps for them ends with
// the last one. It is safe for concurrent use.
type Spawner struct {
	environ []string
	grace   time.Duration
	keeper  keeper
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

// Start starts the command of a server. The process sees PATH, HOME and their
// like of our environment, and the variables that c names; its working directory
// is c.Dir, or ours. ctx bounds the start only.
//
// When the process ends, whatever is left in its group is killed. When this
// program is killed, the group is killed too: on Linux the process at once, and
// the rest of the group on Unix by a shell that waits for our end. A descendant
// that moves to another session escapes; only a sandbox holds such a one.
func (s *Spawner) Start(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	env := environment(s.environ, c.Env)
	path, err := lookup(c.Command, c.Dir, env)
	if err != nil {
		return nil, err
	}
	if c.Dir != "" {
		if i, err := os.Stat(c.Dir); err != nil || !i.IsDir() {
			return nil, fmt.Errorf("its working directory %s is no directory", c.Dir)
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
	if err := s.keeper.start(p); err != nil {
		closeAll()
		if e := errors.Unwrap(err); e != nil && errors.As(err, new(*os.PathError)) {
			err = e
		}
		return nil, fmt.Errorf("the command %q cannot be started: %w", c.Command, err)
	}
	for _, i := range []int{0, 3, 5} {
		files[i].Close()
	}
	p.work.Go(func() { p.ring.fill(p.stderr) })
	go p.reap(&s.keeper) // Close waits for it: ended
	return p, nil
}

// lookup finds a command as a shell with the environment and directory of the
// process would.
func lookup(command, dir string, env []string) (string, error) {
	if strings.ContainsRune(command, '/') || strings.ContainsRune(command, filepath.Separator) {
		path := command
		if !filepath.IsAbs(path) && dir != "" {
			path = filepath.Join(dir, path)
		}
		found, err := exec.LookPath(path)
		if err != nil {
			if path != command {
				return "", fmt.Errorf("there is no command %q in %s, where it starts; give its full path, or say where with cwd: %w", command, dir, bare(err))
			}
			return "", fmt.Errorf("there is no command %q: %w", command, err)
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
			continue // a directory relative to wherever we are started is nobody's wish
		}
		if found, err := exec.LookPath(filepath.Join(d, command)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no command %q on the PATH; install it, or give its full path: %w", command, exec.ErrNotFound)
}

// bare is an error of the system without the path, which is said already.
func bare(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// process is a running command.
type process struct {
	cmd    *exec.Cmd
	group  group
	grace  time.Duration
	stdin  *os.File // ours: the writing end
	stdout *os.File
	stderr *os.File
	ring   ring
	work   sync.WaitGroup // the reader of stderr

	mu     sync.Mutex // of signals, against the number of the group being free
	reaped bool

	closing sync.Once
	ended   chan struct{} // closed when it is reaped, its group killed and stderr read
	how     string        // set before ended is closed
}

var _ upstream.Process = (*process)(nil)

// Read reads what it writes to standard output.
func (p *process) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if err != nil && errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// Write writes to its standard input.
func (p *process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Stderr is the last 64 KiB of standard error.
func (p *process) Stderr() string { return p.ring.String() }

// Exited says how it ended, in words for a person; "" while it runs.
func (p *process) Exited() string {
	select {
	case <-p.ended:
		return p.how
	default:
		return ""
	}
}

// Close ends it: its input is closed; after a grace it is asked to end, with its
// group; after another one the group is killed. It returns when the process is
// reaped. It may be called more than once, at once too.
func (p *process) Close() error {
	p.closing.Do(func() {
		p.stdin.Close()
		if !p.within() {
			p.signal(p.group.terminate)
			if !p.within() {
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

func (p *process) within() bool {
	t := time.NewTimer(p.grace)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		return false
	}
}

// reap waits for the end, kills what is left of the group while its number is
// still taken, and reads the rest of standard error.
func (p *process) reap(k *keeper) {
	awaited, err := p.group.await(p.cmd)
	p.signal(p.group.kill)
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if !awaited {
		err = p.cmd.Wait()
	}
	p.group.close()
	k.ended(p)
	// Who left the group may still hold the pipe; nobody waits for that one.
	t := time.AfterFunc(p.grace, func() { p.stderr.Close() })
	p.work.Wait()
	t.Stop()
	p.stderr.Close()
	p.how = "ended (status 0)"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		p.how = "ended: " + exit.Error()
	} else if err != nil {
		p.how = "ended: " + err.Error()
	}
	close(p.ended)
}
