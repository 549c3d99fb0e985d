package loadout

import (
	"context"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// Service describes a long-lived command of a skill or a project, such as an
// MCP server on stdio.
type Service struct {
	Skill string // reference to the skill; "" for a project's command
	// Project, if not nil, is the project whose configuration contains the
	// command. The command starts in the project's directory. Of the other
	// fields, only Command, Env, Redact, Principal, Session and Progress are
	// used.
	Project *Project
	// Digest, if not empty, is the digest that the skill must have: its digest
	// when the command was read.
	Digest policy.Digest
	// Command is the program and its arguments. It is not interpreted by a
	// shell. The program is a path inside the skill, an interpreter or another
	// host program (python3, node), or npx or uvx with a package. The working
	// directory is the skill's directory, which may be written as ${SKILL_DIR}
	// or {baseDir}.
	Command []string
	Env     map[string]string // environment variables; values may refer to the skill's directory too
	// Files are added to /needs/.loadout, read-only. The keys are base names.
	// They hold a program that the caller supplies for the skill.
	Files map[string][]byte
	// Hosts restricts the hosts that the service may reach to a subset of
	// those requested and granted; nil means all of them, and an empty slice
	// none.
	Hosts []string
	// Redact lists additional secrets, for example from Env. Their values are
	// replaced in the output of the service if they have at least six bytes.
	Redact []sandbox.Secret

	// Principal is the principal of the service; the zero value means
	// [Scripts.Principal]. ByUser is set if the user typed the command, as in
	// [Run].
	Principal policy.Principal
	ByUser    bool
	Session   string // session ID, as in [Run]

	// Workspace is the user's directory, as in [Run].
	Workspace string
	Progress  func(what string) // receives progress messages; may be nil
}

// Project is a directory with its own configuration of commands. The files next
// to the configuration were not reviewed. Therefore a command can only read the
// directory, as /workspace. It has no network access, no secrets, and no
// variables except those in the configuration.
type Project struct {
	Dir    string        // absolute path; see [Runtime.CheckWorkspace]
	Name   string        // display name of the command's owner; "" means Dir
	Subdir string        // working directory of the command relative to Dir, with slashes; "" means Dir
	Digest policy.Digest // digest of the configuration
	// Check returns an error if the user no longer trusts the configuration as
	// it was when the command was read. The error says what the user can do.
	// Check is called before the start, before each write to the command, and
	// every two seconds. It must be safe for concurrent use and not nil.
	Check func(ctx context.Context) error
}

// Serve starts a long-lived command of a skill or a project in the sandbox. It
// requires the same approval as [Runtime.Run], or a project that passes
// [Project.Check]. The command is killed if the permission is revoked. ctx
// applies only to the start; the caller must close the service.
//
// Memory, processes and disk space are limited as for a run, but not the
// running time. The error is a [*RefusedError] if policy denies the start of a
// skill's command. It is a [*ServersError] if the skill's servers cannot be
// read, and that of [Runtime.Fetch] if the skill cannot be read. It wraps that
// of [Project.Check], and matches [ErrWorkspace] if the project's directory is
// not accepted. It is [ErrNoScripts] if the runtime has no sandbox. Other
// errors report that the command cannot be served, or that the program, its
// packages or the sandbox is missing.
func (r *Runtime) Serve(ctx context.Context, s Service) (*RunningService, error) {
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	req := &execution.ServiceRequest{Skill: s.Skill, Digest: s.Digest, Command: s.Command, Env: s.Env, Files: s.Files, Hosts: s.Hosts, Redact: s.Redact,
		Caller: r.scripts.caller(s.Principal, s.Session), Workspace: s.Workspace, Progress: s.Progress}
	req.Caller.ByUser = s.ByUser
	if p := s.Project; p != nil {
		req = &execution.ServiceRequest{Project: (*execution.Project)(p), Command: s.Command, Env: s.Env, Redact: s.Redact,
			Caller: r.scripts.caller(s.Principal, s.Session), Workspace: p.Dir, Progress: s.Progress}
	}
	v, err := withApproval(ctx, r, s.Skill, "", req.Caller, func() (*execution.Service, error) {
		v, err := r.runner().Serve(ctx, req)
		return v, refused(err)
	})
	if err != nil {
		return nil, err
	}
	return &RunningService{Skill: v.Skill, Digest: string(v.Digest), Backend: v.Backend, Package: packageOf(v.Package), Notes: v.Notes, service: v}, nil
}

// RunningService is a running service. Read reads its standard output, and
// Write writes to its standard input. One goroutine may read while another
// writes; all other methods are safe for concurrent use. The caller must read
// the output, or the service may block. The caller must close the service, even
// after it has exited.
type RunningService struct {
	Skill   string   // "" for a project's command
	Digest  string   // digest of the started skill, or of the project's configuration
	Backend string   // name of the sandbox backend
	Package *Package // package that npx or uvx started; nil for other commands
	Notes   []string // for users, for example about denied permissions

	service *execution.Service
}

// Read reads from standard output, with secrets redacted. At the end it returns
// [io.EOF], or an error that matches [sandbox.ErrDisabled] if the permission
// was revoked.
func (s *RunningService) Read(b []byte) (int, error) { return s.service.Read(b) }

// Write writes to standard input. For a project's command, it returns the error
// of [Project.Check] once the configuration is no longer trusted.
func (s *RunningService) Write(b []byte) (int, error) { return s.service.Write(b) }

// Close closes the standard input of the service. If the service does not exit
// within two seconds, Close kills it and its child processes and waits for them
// to exit. It may be called more than once. The error reports that the sandbox
// could not be removed.
func (s *RunningService) Close() error { return s.service.Close() }

// Stderr returns the last 64 KiB of standard error, with secrets redacted.
func (s *RunningService) Stderr() string { return s.service.Stderr() }

// Done returns a channel that is closed when the service has exited.
func (s *RunningService) Done() <-chan struct{} { return s.service.Done() }

// Err returns the reason why the service exited. It is nil while the service
// runs, and if it exited because of Close. The error matches
// [sandbox.ErrDisabled] if the permission was revoked.
func (s *RunningService) Err() error { return s.service.Err() }
