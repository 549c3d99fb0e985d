package loadout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// endless is the time that a service has. Its other limits are those of a
// script.
const endless = math.MaxInt32 * time.Second

// Service asks for one long-lived command of a skill or a project, such as an MCP
// server that speaks on standard input and output.
type Service struct {
	Skill string // reference to the skill, "" for a command of a project
	// Project, where it is not nil, has the command in its own configuration. It is
	// started in the directory of the project; of the other fields only Command, Env,
	// Principal, Session and Progress count.
	Project *Project
	// Digest, where it is not empty, is the one that the skill has to have: the
	// command was read from the skill as it was then.
	Digest policy.Digest
	// Command is the program and its arguments. The program is a path inside the
	// skill, an interpreter or another program of this machine (python3, node),
	// or npx or uvx with a package. No shell reads it. The folder of the skill is
	// the working directory, and may be written ${SKILL_DIR} or {baseDir}.
	Command []string
	Env     map[string]string // values may name the folder too
	// Files are put into [ServiceDir], read-only and by base name: for a program
	// that the caller brings for the skill.
	Files map[string][]byte
	// Hosts narrows the hosts that the skill asked for and was granted; nil is
	// all of these.
	Hosts []string
	// Redact are values that it is told in another way, as in Env: what it says does
	// not have them.
	Redact []sandbox.Secret

	// Principal is for whom it runs, the zero value for the person who runs this
	// program. Typed says that a person typed the command, as in [Run].
	Principal policy.Principal
	Typed     bool
	Session   string

	// Workspace is a directory of the person, as in [Run].
	Workspace string
	Progress  func(what string) // is told what is being done; may be nil
}

// ServiceDir is where [Service.Files] are in the sandbox.
const ServiceDir = sandbox.NeedsDir + "/.loadout"

// Serve starts a long-lived command of a skill or a project in the sandbox. It asks
// for the same leave as [Runtime.Run], or [Project.Check], and the command ends when
// leave is withdrawn. ctx bounds the start only; close what is returned.
//
// Memory, processes and disk are bounded as in a run; time is not. The error is a
// [*RefusedError] where policy says no, a [*CommandError] where the command is
// none that can be served, a [*ServersError] or [ErrNoServers] where the servers of
// the skill cannot be told, one of the catalog where there is no such skill, and
// one that says what is missing where the program, its packages or the sandbox
// are.
func (r *Runtime) Serve(ctx context.Context, s Service) (*Served, error) {
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	if s.Principal == (policy.Principal{}) {
		s.Principal = r.scripts.principal()
	}
	if s.Project != nil {
		s = s.Project.only(s)
	}
	j := &job{rt: r, scripts: r.scripts, service: &service{asked: s}, project: s.Project, run: Run{Skill: s.Skill, Principal: s.Principal, Typed: s.Typed, Session: s.Session,
		Workspace: s.Workspace, Progress: s.Progress}}
	defer j.close() // a sandbox has copies
	// What is started outlives ctx, and its start does not.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	begun := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	served, err := j.serve(life)
	if !begun() && err == nil {
		served.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		end(nil)
		return nil, err
	}
	return served, nil
}

// serve is Serve with a ctx for all of the service's life.
func (j *job) serve(ctx context.Context) (*Served, error) {
	open, permit, refuse := j.openServed, j.permit, j.refuse
	if j.project != nil {
		open, permit, refuse = j.openProject, j.trusted, j.distrusted
	}
	if err := open(ctx); err != nil {
		return nil, err
	}
	if err := j.service.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", j.owner(), err)
	}
	held, release, err := permit(ctx)
	if err != nil {
		return nil, err
	}
	if hosts := j.service.asked.Hosts; hosts != nil {
		j.effect.Network = policy.Intersect(j.effect, policy.Bounds{Network: hosts}).Network
	}
	served, err := j.start(held)
	if err != nil {
		defer release()
		if cause := context.Cause(held); errors.Is(cause, sandbox.ErrDisabled) {
			return nil, refuse(ctx, cause)
		}
		return nil, err
	}
	served.hold(held, release)
	return served, nil
}

// openServed finds the skill, as it was when its command was read.
func (j *job) openServed(ctx context.Context) error {
	if err := j.openSkill(ctx); err != nil {
		return err
	}
	if was, now := j.service.asked.Digest, policy.Digest(j.digest()); was != "" && was != now {
		return fmt.Errorf("skill %s changed since its command was read: it was %s and is %s", j.entry.Name, was.Short(), now.Short())
	}
	_, err := j.rt.services(j.entry, j.skill)
	return err
}

// start prepares the sandbox and starts the command in it.
func (j *job) start(ctx context.Context) (*Served, error) {
	if err := j.planService(); err != nil {
		return nil, err
	}
	if j.how.Needs != nil {
		var err error
		if j.packages, err = j.install(ctx); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", j.owner(), j.service.name(), err)
		}
	}
	b, err := j.backend(ctx)
	if err != nil {
		return nil, err
	}
	spec, err := j.spec(ctx, b.Tier())
	if err != nil {
		return nil, err
	}
	cmd, err := j.serviceCommand(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", j.owner(), j.service.name(), err)
	}
	if b.Tier() == sandbox.Limited {
		j.note("it runs without isolation, as was allowed for this digest")
	}
	j.progress("starting %s", j.service.name())
	box, err := b.Start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("serve %s of %s: %w", j.service.name(), j.owner(), err)
	}
	p, err := box.Exec(ctx, cmd)
	if err != nil {
		box.Close()
		return nil, fmt.Errorf("serve %s of %s: %w", j.service.name(), j.owner(), err)
	}
	s := &Served{Digest: j.digest(), Backend: b.Name(), Package: j.service.built, Notes: j.notes, box: box, process: p, ended: make(chan struct{}),
		stderr: tail{most: maxStderr}}
	if j.project == nil {
		s.Skill = j.entry.Name
	} else {
		s.check = j.check
	}
	s.secrets = slices.Concat(j.service.asked.Redact, spec.Secrets)
	for _, in := range spec.Network.Inject {
		s.secrets = append(s.secrets, in.Secret)
	}
	s.stdout = p.Stdout()
	if len(s.secrets) > 0 {
		s.stdout = newHiding(s.stdout, s.secrets)
	}
	s.record = func(reason string) { j.recordServed(s, reason) }
	return s, nil
}

// recordServed keeps how a service ended. That it began is recorded before.
func (j *job) recordServed(s *Served, reason string) {
	if j.scripts.Audit == nil {
		return
	}
	details := map[string]string{"command": j.service.name(), "backend": s.Backend, "exit_code": strconv.Itoa(s.exit.Code), "denied_hosts": strings.Join(s.box.State().Denied, " ")}
	if p := s.Package; p != nil {
		details["package"], details["integrity"] = p.Name+"@"+p.Version, p.Integrity
	}
	j.scripts.Audit.Append(context.Background(), policy.Record{ // nobody is left to be told
		Principal: j.run.Principal, Action: "served", Subject: policy.Digest(s.Digest), Name: j.name(), Decision: policy.Allowed, Reason: reason, Details: details})
}

const (
	maxStderr = 64 << 10
	// closeGrace is how long a service has to end after its input did.
	closeGrace = 2 * time.Second
)

// Served is a running service. Read and Write are its standard output and input;
// one goroutine may read while another writes, and all else is safe for
// concurrent use. Close it when done, also when it has ended by itself.
type Served struct {
	Skill   string   // "" for a command of a project
	Digest  string   // of the skill, or the configuration of the project, that was started
	Backend string   // of the sandbox
	Package *Package // what npx or uvx started; nil for what the skill has itself
	Notes   []string // for people, as of what was not granted

	box     sandbox.Sandbox
	process sandbox.Process
	stdout  io.Reader
	secrets []sandbox.Secret
	held    context.Context // ends when leave is withdrawn
	record  func(reason string)
	check   func() error // before each write; nil asks nothing

	ended chan struct{} // closed when the command has ended
	exit  sandbox.Exit  // before ended is closed
	err   error

	closing sync.Once
	closed  sync.Once
	boxErr  error
	asked   chan struct{} // closed by Close
	drained chan struct{} // closed when all of standard error was read, after ended

	stderr tail
}

// hold watches over the service until it has ended.
func (s *Served) hold(held context.Context, release func()) {
	s.held, s.asked, s.drained = held, make(chan struct{}), make(chan struct{})
	unwatch := context.AfterFunc(held, func() {
		s.process.Kill()
		s.closeBox()
	})
	var reading sync.WaitGroup
	reading.Go(func() { io.Copy(&s.stderr, s.process.Stderr()) })
	go func() {
		s.exit = s.process.Wait()
		unwatch()
		s.err = s.cause()
		reason := string(s.exit.Reason)
		if s.err == nil {
			reason = "closed"
		} else if errors.Is(s.err, sandbox.ErrDisabled) {
			reason = string(sandbox.Disabled)
		}
		s.record(reason)
		release()
		close(s.ended)
		reading.Wait()
		close(s.drained)
	}()
}

// cause is why it ended: nothing where it was closed.
func (s *Served) cause() error {
	if cause := context.Cause(s.held); errors.Is(cause, sandbox.ErrDisabled) {
		return fmt.Errorf("it was ended: %w", cause)
	}
	select {
	case <-s.asked:
		return nil
	default:
	}
	why := fmt.Sprintf("it ended by itself with exit code %d", s.exit.Code)
	switch {
	case s.exit.Detail != "":
		why = "it was ended: " + s.exit.Detail
	case s.exit.Signal != "":
		why = "it ended by signal " + s.exit.Signal
	}
	return errors.New(why)
}

// Read reads from standard output. At its end the error is [io.EOF], and
// [sandbox.ErrDisabled] where leave was withdrawn.
func (s *Served) Read(b []byte) (int, error) {
	n, err := s.stdout.Read(b)
	if err != nil {
		if cause := context.Cause(s.held); errors.Is(cause, sandbox.ErrDisabled) {
			err = cause
		}
	}
	return n, err
}

// Write writes to standard input. To a command of a project nothing is written once
// its configuration is not trusted any more.
func (s *Served) Write(b []byte) (int, error) {
	if s.check != nil {
		if err := s.check(); err != nil {
			return 0, err
		}
	}
	return s.process.Stdin().Write(b)
}

// Close ends the service: its input ends, it has two seconds, and then it and all
// that it started is killed. It waits for the end.
func (s *Served) Close() error {
	s.closing.Do(func() {
		close(s.asked)
		s.process.Stdin().Close()
		patience := time.NewTimer(closeGrace)
		defer patience.Stop()
		select {
		case <-s.ended:
		case <-patience.C:
			s.process.Kill()
			s.closeBox()
		}
	})
	<-s.ended
	err := s.closeBox()
	<-s.drained
	return err
}

// closeBox removes the sandbox, with what the command left running in it.
func (s *Served) closeBox() error {
	s.closed.Do(func() {
		s.boxErr = s.box.Close()
		io.Copy(io.Discard, s.process.Stdout()) // what nobody read, up to the end that is there now
	})
	return s.boxErr
}

// Stderr is the last of what it wrote to standard error, at most 64 KiB, with
// secrets replaced.
func (s *Served) Stderr() string {
	return strings.ToValidUTF8(string(sandbox.Redact(s.stderr.bytes(), s.secrets...)), "\uFFFD")
}

// Done is closed when the service has ended.
func (s *Served) Done() <-chan struct{} { return s.ended }

// Err is why the service ended: [sandbox.ErrDisabled] where leave was withdrawn.
// It is nil while it runs, and where it was closed.
func (s *Served) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}
