package loadout

import (
	"context"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

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
	// Files are added to /needs/.loadout, read-only and by base name. They are
	// for a program that the caller provides for the skill.
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

// Project is a directory with its own configuration of commands. The files
// beside that configuration were not reviewed. Therefore a command gets only
// read access to the directory, as /workspace: no network, no
// secrets, and no variables except those of the configuration.
type Project struct {
	Dir    string        // absolute path
	Name   string        // display name of the command's owner; "" means Dir
	Subdir string        // working directory of the command below Dir, with slashes; "" means Dir
	Digest policy.Digest // of the configuration
	// Check returns nil while the user trusts the configuration as it was when
	// the command was read. Its error says what the user can do. It is called
	// before the start, before each write to the command and every two seconds,
	// by several goroutines.
	Check func(ctx context.Context) error
}

// Serve starts a long-lived command of a skill or a project in the sandbox. It
// requires the same approval as [Runtime.Run], or the trust that
// [Project.Check] reports. The command is killed when the permission is
// revoked. ctx limits only the start; the caller must close the service.
//
// Memory, processes and disk are limited as in a run; time is not. The error is
// a [*RefusedError] if policy denies the start, a [*ServersError] or
// [ErrNoServers] if the servers of the skill cannot be read, or an error of the
// catalog if the skill is not found. Other errors say that the command cannot be
// served, or that the program, its packages or the sandbox is missing.
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

	service *execution.Service
}

// Read reads from standard output. At the end it returns [io.EOF], or an error
// that matches [sandbox.ErrDisabled] if the permission was revoked.
func (s *RunningService) Read(b []byte) (int, error) { return s.service.Read(b) }

// Write writes to standard input. For a command of a project, it fails once the
// configuration is no longer trusted.
func (s *RunningService) Write(b []byte) (int, error) { return s.service.Write(b) }

// Close closes the input of the service and waits up to two seconds. It then
// kills the service and its child processes, and waits for the end.
func (s *RunningService) Close() error { return s.service.Close() }

// Stderr returns the last 64 KiB of standard error, with secrets redacted.
func (s *RunningService) Stderr() string { return s.service.Stderr() }

// Done returns a channel that is closed when the service has ended.
func (s *RunningService) Done() <-chan struct{} { return s.service.Done() }

// Err returns why the service ended; the error matches [sandbox.ErrDisabled] if
// the permission was revoked. It is nil while the service runs and after it was
// closed.
func (s *RunningService) Err() error { return s.service.Err() }
