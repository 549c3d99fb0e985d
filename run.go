package loadout

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/session"
)

// Run describes a script run. Skill and Script are required.
type Run struct {
	Skill  string // reference to the skill
	Script string // path inside the skill, or the script's name if unique
	Args   []string
	Stdin  io.Reader // nil means no input; a Read may outlast the run
	// Inputs are files and directories to copy to /work/in, at most 10,000
	// files with 512 MiB in total.
	Inputs []Input

	// Principal is the principal of the run; the zero value means
	// [Scripts.Principal]. ByUser is set if the user typed the command. The run
	// then needs no other approval if the principal is a user.
	Principal policy.Principal
	ByUser    bool
	Session   string // session ID, for grants that are valid in one session
	// Skills are the skills of the conversation, as [session.Session.SkillsInContext]
	// returns them. If one of them is a skill of an MCP server that is not
	// approved, no script runs, because its text might have led the model to run
	// the script. Skills is ignored if ByUser is set.
	Skills []session.ActiveSkill

	// Folder is the handle of a working folder, as returned by an earlier run.
	// If it is "", NewFolder creates a working folder. Runs with the same
	// folder wait for each other. A folder may be removed seven days after its
	// last use.
	Folder    string
	NewFolder bool
	// OutputDir is the directory for the files in /work/out. It is created if
	// necessary. Files whose path begins with a dot, or is not valid in a
	// skill's archive, are not saved. OutputDir
	// is ignored if the run has a working folder.
	OutputDir string
	// Workspace is the absolute path of a user's directory. The script can
	// read it, and can write to it if that was approved; see [HeldChange] for
	// the files that then still need approval, and [Runtime.CheckWorkspace].
	Workspace string
	// WriteWorkspace grants write access to the workspace, and HostNetwork
	// full access to the machine's network. Set them only if the user typed
	// the command. They are ignored unless ByUser is set.
	WriteWorkspace, HostNetwork bool
	// ApproveChanges asks the user whether to apply the changes to files in the
	// workspace that configure programs or agents, such as CLAUDE.md. The
	// answer applies to all of them. If ApproveChanges is nil, they are not
	// applied.
	ApproveChanges func(ctx context.Context, changes []HeldChange) (bool, error)
	// Env is added to the script's environment. The variables of the sandbox,
	// the interpreter and installed packages take precedence.
	Env map[string]string
	// Secrets are values for this run, in addition to those of [Scripts].
	Secrets []sandbox.Secret
	Timeout time.Duration // limited by Bounds; 0 means that limit

	// Stdout and Stderr receive the output as it is written, with secrets
	// redacted. With ByUser or FullOutput, it is not truncated.
	// Both may be nil. A writer that is used for both must be safe for
	// concurrent use.
	Stdout, Stderr io.Writer
	FullOutput     bool
	Progress       func(what string) // receives progress messages; may be nil
}

// Input is a file or directory that is copied to /work/in. Symbolic links and
// special files below a directory are skipped.
type Input struct {
	// Name is the path relative to /work/in; see [fs.ValidPath]. Two inputs
	// must not have files with the same path.
	Name string
	// FS contains the file or directory at Path. If it is nil, the input is a file
	// with the content Data, which must not be modified during the run.
	FS   fs.FS
	Path string
	Data []byte
}

// RunResult is the result of a run. Its JSON form is the stable output format
// of run --json.
type RunResult struct {
	ExitCode    int               `json:"exit_code"`
	Stdout      string            `json:"stdout"`      // up to 1 MiB, with secrets redacted and invalid UTF-8 replaced
	Stderr      string            `json:"stderr"`      // like Stdout
	DurationMS  int64             `json:"duration_ms"` // in milliseconds
	Killed      bool              `json:"killed"`      // whether the script did not exit by itself
	Truncated   bool              `json:"truncated"`   // whether output beyond the limit was dropped
	Reason      sandbox.Reason    `json:"reason"`
	Detail      string            `json:"detail,omitempty"` // details of the reason
	Backend     string            `json:"backend"`          // name of the sandbox backend
	Tier        int               `json:"tier"`             // tier of the sandbox; see [sandbox.Tier]
	Limits      map[string]string `json:"limits"`           // how each limit is enforced, "" if it is not
	DeniedHosts []string          `json:"denied_hosts"`     // never nil
	Digest      string            `json:"digest"`           // digest of the skill's files; "" for a host command
	Files       []sandbox.File    `json:"files"`            // files in /work/out, or in the whole working folder, with paths relative to it; never nil
	Skill       string            `json:"skill"`            // name of the skill; "" for a host command
	Script      string            `json:"script"`           // path inside the skill; "" for a host command
	Folder      string            `json:"folder,omitempty"` // handle of the working folder
	// UnsavedFiles is the number of files that the script wrote outside
	// /work/out. They were not saved.
	UnsavedFiles int `json:"left,omitempty"`
	// HeldChanges are changes to the workspace that were not applied, because
	// the user did not approve them.
	HeldChanges []HeldChange `json:"held_changes,omitempty"`
	Notes       []string     `json:"notes,omitempty"` // for users, for example about denied permissions
}

// Run runs a skill script in the sandbox and waits for it to finish. A script
// that fails or is killed is not an error. Before Run refuses a run that an
// approval would allow, it calls [Options.Approve].
//
// The error is a [*RefusedError] if policy denies the run, and [ErrNoScripts]
// if the runtime has no sandbox. If the skill cannot be read, Run returns the
// error of [Runtime.Fetch]. If the folder or the workspace cannot be used, the
// error matches [ErrNoFolder] or [ErrWorkspace]. Other errors report that the
// script, its interpreter, its packages or the sandbox is missing. In these
// cases the script did not run, and there is no result. If ctx is done during
// the run or the files cannot be saved, Run returns both a result and an error.
// If the permission is revoked during the run, the script is killed, with the
// reason [sandbox.Disabled].
func (r *Runtime) Run(ctx context.Context, run Run) (*RunResult, error) {
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	c := execution.Caller{Principal: run.Principal, Session: run.Session, ByUser: run.ByUser, WriteWorkspace: run.WriteWorkspace, HostNetwork: run.HostNetwork}
	if err := r.checkServedRun(ctx, run.Skill, run.Script, c); err != nil {
		return nil, err
	}
	if !run.ByUser {
		if err := r.CheckCode(ctx, run.Skills, run.Principal, run.Session); err != nil {
			return nil, err
		}
	}
	req := &execution.Request{
		Skill: run.Skill, Script: run.Script, Args: run.Args, Inputs: executionInputs(run.Inputs), Caller: c,
		Streams:   execution.Streams{Stdin: run.Stdin, Stdout: run.Stdout, Stderr: run.Stderr, Unlimited: run.ByUser || run.FullOutput},
		Output:    execution.Output{FolderDir: r.scripts.FolderDir, Folder: run.Folder, NewFolder: run.NewFolder, Dir: run.OutputDir},
		Workspace: run.Workspace, Agree: approveChanges(run.ApproveChanges), Env: run.Env, Secrets: run.Secrets, Timeout: run.Timeout, Progress: run.Progress,
	}
	out, err := r.Runner().Run(ctx, req)
	return runResult(out), err
}

// executionInputs converts inputs to those of package execution.
func executionInputs(inputs []Input) []execution.Input {
	var out []execution.Input
	for _, in := range inputs {
		if in.FS == nil {
			in.FS, in.Path = execution.TextFile(in.Data), "data"
		}
		out = append(out, execution.Input{Name: in.Name, FS: in.FS, Path: in.Path})
	}
	return out
}

// runResult converts a result to its stable format. It returns nil if r is nil.
func runResult(r *execution.Result) *RunResult {
	if r == nil {
		return nil
	}
	return &RunResult{
		ExitCode: r.ExitCode, Stdout: validUTF8(r.Stdout), Stderr: validUTF8(r.Stderr), DurationMS: r.Duration.Milliseconds(), Killed: r.Killed,
		Truncated: r.Truncated, Reason: r.Reason, Detail: r.Detail, Backend: r.Backend, Tier: int(r.Tier), Limits: r.Enforced,
		DeniedHosts: append([]string{}, r.Denied...), Digest: string(r.Digest), Files: append([]sandbox.File{}, r.Files...), Skill: r.Skill, Script: r.Script,
		Folder: r.Folder, UnsavedFiles: r.UnsavedFiles, HeldChanges: heldChanges(r.HeldChanges), Notes: r.Notes,
	}
}

// validUTF8 returns b as a string and replaces invalid UTF-8, which JSON cannot
// represent.
func validUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// Command is a host command to run in the sandbox, usually on a user's folder.
// Only Args is required.
type Command struct {
	Args []string // program and arguments
	// Inputs, Stdin and OutputDir are like those of [Run].
	Inputs    []Input
	Stdin     io.Reader
	OutputDir string
	// Folder is the absolute path of the folder in which the command starts. It
	// must not contain Loadout's own state. If it is "", the command starts in
	// an empty /work.
	Folder   string
	Writable bool // whether the command may write to Folder, as a script may write to [Run.Workspace]
	// Direct lets the command change a writable Folder immediately and without
	// approval, except files that make other programs run code, such as those
	// in .git. It is for a folder that users do not work in.
	Direct bool
	// ApproveChanges is like that of [Run].
	ApproveChanges func(ctx context.Context, changes []HeldChange) (bool, error)
	// Skills are the skills of a conversation, as [session.Session.SkillsInContext]
	// returns them. The command can read their files in /needs/NAME and, if they
	// are approved, run their scripts and import their Python packages; see
	// [Packages]. Of other skills, only documents and data in plain text are
	// there, and nothing if SKILL.md changed after the load. A skill whose files change while they are
	// copied is left out. The command does not get what a skill was granted, such
	// as network access. Revoking the approval of a skill kills the command, with
	// the reason [sandbox.Disabled]. The files of skills of MCP servers are not
	// there, and such a skill must be approved for any command to run.
	Skills []session.ActiveSkill
	// Principal and Session are like those of [Run]. They determine which of
	// the skills are approved.
	Principal policy.Principal
	Session   string
	Timeout   time.Duration // 0 means one minute, a negative value no timeout
	Stdout    io.Writer     // also receives the output, without limit; may be nil
	Stderr    io.Writer     // like Stdout
}

// Command runs a command without network access, secrets or the user's
// environment. The sandbox contains none of the user's files except the folder,
// the inputs and the files of skills. A command that fails, is killed or cannot
// be started is not an error. If ctx is done during the run or the files cannot
// be saved, Command returns both a result and an error. Other errors mean that
// nothing ran. The error is a [*RefusedError] if an active skill of an MCP server
// is not approved. The error matches [ErrWorkspace] if the folder is not accepted,
// and [ErrNoScripts] if the runtime has no sandbox. Command does not ask for
// approval, and records a decision only for each approved skill. [Scripts.Bounds]
// do not apply, but the default [sandbox.Limits] do.
func (r *Runtime) Command(ctx context.Context, c Command) (*RunResult, error) {
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	if c.Folder != "" {
		if err := r.CheckWorkspace(c.Folder); err != nil {
			return nil, err
		}
	}
	access := execution.ReadOnly
	switch {
	case c.Writable && c.Direct:
		access = execution.Direct
	case c.Writable && r.scripts.DirectWorkspace:
		access = execution.OverlayOrDirect
	case c.Writable:
		access = execution.Overlay
	}
	if err := r.CheckCode(ctx, c.Skills, c.Principal, c.Session); err != nil {
		return nil, err
	}
	var skills []execution.ActiveSkill
	for _, a := range c.Skills {
		if !isServed(a.Skill) { // the files of others are fetched one by one, when they are read
			skills = append(skills, execution.ActiveSkill{Name: a.Skill.Name, Key: a.Skill.Key(), Digest: a.Digest})
		}
	}
	out, err := r.newRunner(nil).RunCommand(ctx, &execution.Command{
		Args: c.Args, Skills: skills, Caller: execution.Caller{Principal: c.Principal, Session: c.Session}, Inputs: executionInputs(c.Inputs), Timeout: c.Timeout, Output: execution.Output{Dir: c.OutputDir},
		Workspace: c.Folder, Access: access, Agree: approveChanges(c.ApproveChanges), HeldChanges: r.scripts.heldChanges(),
		Streams: execution.Streams{Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Unlimited: true}})
	return runResult(out), err
}
