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

	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// noTimeLimit is the time limit of a service. Its other limits are those of a
// script.
const noTimeLimit = math.MaxInt32 * time.Second

// Service describes a long-lived command of a skill or a project, such as an
// MCP server on standard input and output.
type Service struct {
	Skill string // reference to the skill; "" for a command of a project
	// Project, if not nil, is the project whose configuration contains the
	// command. The command starts in the directory of the project. Of the other
	// fields, only Command, Env, Redact, Principal, Session and Progress are
	// used.
	Project *Project
	// Digest, if not empty, is the required digest of the skill: the digest at
	// the time the command was read.
	Digest policy.Digest
	// Command is the program and its arguments. The program is a path inside
	// the skill, an interpreter or another program of this machine (python3,
	// node), or npx or uvx with a package. It does not run in a shell. The
	// working directory is that of the skill, which may be written as
	// ${SKILL_DIR} or {baseDir}.
	Command []string
	Env     map[string]string // values may contain the skill's directory too
	// Files are added to [ServiceDir], read-only and by base name. They are for
	// a program that the caller provides for the skill.
	Files map[string][]byte
	// Hosts limits the hosts that were requested and granted; nil means all of
	// them.
	Hosts []string
	// Redact are additional secret values, for example from Env. They are
	// removed from the output of the service.
	Redact []sandbox.Secret

	// Principal is the principal of the service; the zero value is that of
	// [Scripts]. ByUser is set if the user typed the command, as in [Run].
	Principal policy.Principal
	ByUser    bool
	Session   string

	// Workspace is a directory of the user, as in [Run].
	Workspace string
	Progress  func(what string) // receives progress messages; may be nil
}

// ServiceDir is the directory of [Service.Files] in the sandbox.
const ServiceDir = sandbox.NeedsDir + "/.loadout"

// Serve starts a long-lived command of a skill or a project in the sandbox. It
// requires the same approval as [Runtime.Run], or the trust that
// [Project.Check] reports. The command is killed when the permission is
// revoked. ctx limits only the start; the caller must close the service.
//
// Memory, processes and disk are limited as in a run; time is not. The error is
// a [*RefusedError] if policy denies the start, a [*CommandError] if the
// command cannot be served, a [*ServersError] or [ErrNoServers] if the servers
// of the skill cannot be read, or an error of the catalog if the skill is not
// found. Other errors say that the program, its packages or the sandbox is
// missing.
func (r *Runtime) Serve(ctx context.Context, s Service) (*RunningService, error) {
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	if s.Principal == (policy.Principal{}) {
		s.Principal = r.scripts.principal()
	}
	if s.Project != nil {
		s = s.Project.only(s)
	}
	j := &job{rt: r, scripts: r.scripts, service: &service{asked: s}, project: s.Project, run: Run{Skill: s.Skill, Principal: s.Principal, ByUser: s.ByUser, Session: s.Session,
		Workspace: s.Workspace, Progress: s.Progress}}
	defer j.close() // the sandbox has copies
	// The service outlives ctx, but its start does not.
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

// serve is like Serve, with a ctx for the whole life of the service.
func (j *job) serve(ctx context.Context) (*RunningService, error) {
	open, permit, refuse := j.openService, j.authorize, j.refusal
	if j.project != nil {
		open, permit, refuse = j.openProject, j.authorizeProject, j.projectRefusal
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
		j.effective.Network = policy.Intersect(j.effective, policy.Bounds{Network: hosts}).Network
	}
	served, err := j.start(held)
	if err != nil {
		defer release()
		if cause := context.Cause(held); errors.Is(cause, sandbox.ErrDisabled) {
			return nil, refuse(ctx, cause)
		}
		return nil, err
	}
	served.watch(held, release)
	return served, nil
}

// openService finds the skill and checks that it has not changed since its
// command was read.
func (j *job) openService(ctx context.Context) error {
	if err := j.openSkill(ctx); err != nil {
		return err
	}
	if was, now := j.service.asked.Digest, policy.Digest(j.digest()); was != "" && was != now {
		return fmt.Errorf("skill %s changed since its command was read: it was %s and is %s", j.entry.Name, was.Short(), now.Short())
	}
	_, err := j.rt.requestedServices(j.entry, j.skill)
	return err
}

// start prepares the sandbox and starts the command in it.
func (j *job) start(ctx context.Context) (*RunningService, error) {
	if err := j.planService(); err != nil {
		return nil, err
	}
	if j.scriptPlan.Needs != nil {
		var err error
		if j.packages, err = j.installPackages(ctx); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", j.owner(), j.service.name(), err)
		}
	}
	b, err := j.chooseBackend(ctx)
	if err != nil {
		return nil, err
	}
	spec, err := j.sandboxSpec(ctx, b.Tier())
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
	s := &RunningService{Digest: j.digest(), Backend: b.Name(), Package: j.service.built, Notes: j.notes, box: box, process: p, ended: make(chan struct{}),
		stderr: tailBuffer{most: maxStderr}}
	if j.project == nil {
		s.Skill = j.entry.Name
	} else {
		s.check = j.checkTrust
	}
	s.secrets = slices.Concat(j.service.asked.Redact, spec.Secrets)
	for _, in := range spec.Network.Inject {
		s.secrets = append(s.secrets, in.Secret)
	}
	s.stdout = p.Stdout()
	if len(s.secrets) > 0 {
		s.stdout = redact.Lines(s.stdout, func(line []byte) []byte { return sandbox.Redact(line, s.secrets...) })
	}
	s.record = func(reason string) { j.recordServed(s, reason) }
	return s, nil
}

// recordServed records the end of a service. Its start is already recorded.
func (j *job) recordServed(s *RunningService, reason string) {
	if j.scripts.Audit == nil {
		return
	}
	details := map[string]string{"command": j.service.name(), "backend": s.Backend, "exit_code": strconv.Itoa(s.exit.Code), "denied_hosts": strings.Join(s.box.State().Denied, " ")}
	if p := s.Package; p != nil {
		details["package"], details["integrity"] = p.Name+"@"+p.Version, p.Integrity
	}
	j.scripts.Audit.Append(context.Background(), policy.Record{ // no caller is left to get an error
		Principal: j.run.Principal, Action: "served", Subject: policy.Digest(s.Digest), Name: j.recordName(), Decision: policy.VerdictAllow, Reason: reason, Details: details})
}

const (
	maxStderr = 64 << 10
	// closeGrace is the time that a service has to exit after its input is closed.
	closeGrace = 2 * time.Second
)

// RunningService is a running service. Read and Write access its standard
// output and input. One goroutine may read while another writes; all other
// methods are safe for concurrent use. The caller must close it, even after it
// has ended.
type RunningService struct {
	Skill   string   // "" for a command of a project
	Digest  string   // digest of the started skill, or of the project's configuration
	Backend string   // name of the sandbox back end
	Package *Package // package that npx or uvx started; nil for other commands
	Notes   []string // for users, for example about permissions not granted

	box     sandbox.Sandbox
	process sandbox.Process
	stdout  io.Reader
	secrets []sandbox.Secret
	held    context.Context // ends when the permission is revoked
	record  func(reason string)
	check   func() error // called before each write; may be nil

	ended chan struct{} // closed when the command has ended
	exit  sandbox.Exit  // set before ended is closed
	err   error

	closing sync.Once
	closed  sync.Once
	boxErr  error
	asked   chan struct{} // closed by Close
	drained chan struct{} // closed when all of standard error was read, after ended

	stderr tailBuffer
}

// watch monitors the service until it has ended.
func (s *RunningService) watch(held context.Context, release func()) {
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
		s.err = s.endReason()
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

// endReason returns why the service ended, or nil if it was closed.
func (s *RunningService) endReason() error {
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

// Read reads from standard output. At the end it returns [io.EOF], or an error
// that matches [sandbox.ErrDisabled] if the permission was revoked.
func (s *RunningService) Read(b []byte) (int, error) {
	n, err := s.stdout.Read(b)
	if err != nil {
		if cause := context.Cause(s.held); errors.Is(cause, sandbox.ErrDisabled) {
			err = cause
		}
	}
	return n, err
}

// Write writes to standard input. For a command of a project, it fails once the
// configuration is no longer trusted.
func (s *RunningService) Write(b []byte) (int, error) {
	if s.check != nil {
		if err := s.check(); err != nil {
			return 0, err
		}
	}
	return s.process.Stdin().Write(b)
}

// Close closes the input of the service and waits up to two seconds. It then
// kills the service and its child processes, and waits for the end.
func (s *RunningService) Close() error {
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

// closeBox removes the sandbox and kills the processes left in it.
func (s *RunningService) closeBox() error {
	s.closed.Do(func() {
		s.boxErr = s.box.Close()
		io.Copy(io.Discard, s.process.Stdout()) // discard unread output, up to its current end
	})
	return s.boxErr
}

// Stderr returns the last 64 KiB of standard error, with secrets redacted.
func (s *RunningService) Stderr() string {
	return strings.ToValidUTF8(string(sandbox.Redact(s.stderr.bytes(), s.secrets...)), "\uFFFD")
}

// Done returns a channel that is closed when the service has ended.
func (s *RunningService) Done() <-chan struct{} { return s.ended }

// Err returns why the service ended; the error matches [sandbox.ErrDisabled] if
// the permission was revoked. It is nil while the service runs and after it was
// closed.
func (s *RunningService) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}
