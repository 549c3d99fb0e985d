package loadout

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// Run describes one run of a script.
type Run struct {
	Skill  string // reference to the skill
	Script string // path inside the skill, or the unique name of a script
	Args   []string
	Stdin  io.Reader
	Inputs []Input // files and directories for /work/in

	// Principal is the principal of the run; the zero value is that of
	// [Scripts]. ByUser is set if the user typed the command, which approves
	// this run.
	Principal policy.Principal
	ByUser    bool
	Session   string

	// Folder is the handle of a working folder, as returned by an earlier run.
	// NewFolder creates a working folder if Folder is "".
	Folder    string
	NewFolder bool
	// OutputDir is a directory for the files in /work/out. It is created if
	// necessary, and not used with a working folder.
	OutputDir string
	// Workspace is the absolute path of a user's directory. The script may read
	// it, and may write to it if that was approved.
	Workspace string
	// WriteWorkspace and HostNetwork are granted by a user who typed the
	// command: write access to the workspace, and full access to the machine's
	// network.
	WriteWorkspace, HostNetwork bool
	// Secrets are values for this run, in addition to those of [Scripts].
	Secrets []sandbox.Secret
	Timeout time.Duration // limited by the bounds; 0 means the limit

	// Stdout and Stderr receive the output as it is written. It is complete if
	// the user typed the command. Both may be nil.
	Stdout, Stderr io.Writer
	Progress       func(what string) // receives progress messages; may be nil
}

// Input is a file or a directory that a run gets below /work/in.
type Input struct {
	// Name is the path below /work/in.
	Name string
	// FS and Path are the source of the input.
	FS   fs.FS
	Path string
}

// TextInput returns an input with the given content.
func TextInput(name string, data []byte) Input {
	return Input{Name: name, FS: execution.TextFile(data), Path: "data"}
}

// RunResult is the result of a run, in the stable format of run --json.
type RunResult struct {
	ExitCode    int               `json:"exit_code"`
	Stdout      string            `json:"stdout"`
	Stderr      string            `json:"stderr"`
	DurationMS  int64             `json:"duration_ms"`
	Killed      bool              `json:"killed"`
	Truncated   bool              `json:"truncated"`
	Reason      sandbox.Reason    `json:"reason"`
	Detail      string            `json:"detail,omitempty"` // details of the reason
	Backend     string            `json:"backend"`
	Tier        int               `json:"tier"`
	Limits      map[string]string `json:"limits"` // enforced limits and how they are enforced
	DeniedHosts []string          `json:"denied_hosts"`
	Digest      string            `json:"digest"`
	Files       []sandbox.File    `json:"files"`
	Skill       string            `json:"skill"`
	Script      string            `json:"script"`
	Folder      string            `json:"folder,omitempty"` // handle of the working folder
	// UnsavedFiles is the number of files that the script wrote to its working
	// directory outside /work/out. They were not saved.
	UnsavedFiles int      `json:"left,omitempty"`
	Notes        []string `json:"notes,omitempty"` // for users, for example about permissions not granted
}

// Run runs a script of a skill in the sandbox and waits for its end. A script
// that fails or is killed returns a result. The error is a [*RefusedError] if
// policy denies the run, or an error of the catalog if the skill is not found.
// Other errors say that the script, its interpreter, its packages or the
// sandbox is missing. In these cases nothing ran, and there is no result. If
// ctx ended during the run, or the files could not be saved, both the result
// and the error are returned. [Options.Approve] is asked before a refusal.
func (r *Runtime) Run(ctx context.Context, run Run) (*RunResult, error) {
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	c := r.scripts.caller(run.Principal, run.Session)
	c.ByUser, c.WriteWorkspace, c.HostNetwork = run.ByUser, run.WriteWorkspace, run.HostNetwork
	req := &execution.Request{
		Skill: run.Skill, Script: run.Script, Args: run.Args, Inputs: run.inputs(), Caller: c, Streams: run.streams(run.ByUser),
		Output:    execution.Output{FolderDir: r.scripts.FolderDir, Folder: run.Folder, NewFolder: run.NewFolder, Dir: run.OutputDir},
		Workspace: run.Workspace, Secrets: run.Secrets, Timeout: run.Timeout, Progress: run.Progress,
	}
	return withApproval(ctx, r, run.Skill, run.Script, c, func() (*RunResult, error) {
		out, err := r.runner().Run(ctx, req)
		return runResult(out), refused(err)
	})
}

// RunCommand runs a command of this machine in a sandbox, to show users what
// scripts can see. From run it uses only the files, streams and times.
func RunCommand(ctx context.Context, b sandbox.Backend, args []string, run Run) (*RunResult, error) {
	out, err := execution.RunCommand(ctx, b, &execution.Command{Args: args, Inputs: run.inputs(), Streams: run.streams(true), Timeout: run.Timeout,
		Output: execution.Output{Folder: run.Folder, NewFolder: run.NewFolder, Dir: run.OutputDir}})
	return runResult(out), err
}

func (run *Run) inputs() []execution.Input {
	var out []execution.Input
	for _, in := range run.Inputs {
		out = append(out, execution.Input(in))
	}
	return out
}

func (run *Run) streams(unlimited bool) execution.Streams {
	return execution.Streams{Stdin: run.Stdin, Stdout: run.Stdout, Stderr: run.Stderr, Unlimited: unlimited}
}

// runResult returns a result in its stable format, or nil if there is none.
func runResult(r *execution.Result) *RunResult {
	if r == nil {
		return nil
	}
	return &RunResult{
		ExitCode: r.ExitCode, Stdout: validUTF8(r.Stdout), Stderr: validUTF8(r.Stderr), DurationMS: r.Duration.Milliseconds(), Killed: r.Killed,
		Truncated: r.Truncated, Reason: r.Reason, Detail: r.Detail, Backend: r.Backend, Tier: int(r.Tier), Limits: r.Enforced,
		DeniedHosts: append([]string{}, r.Denied...), Digest: string(r.Digest), Files: append([]sandbox.File{}, r.Files...), Skill: r.Skill, Script: r.Script,
		Folder: r.Folder, UnsavedFiles: r.UnsavedFiles, Notes: r.Notes,
	}
}

// validUTF8 returns output in a form that JSON can hold.
func validUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// Command is a command of this machine that runs in the sandbox on a folder of
// the user. It starts in that folder.
type Command struct {
	Args     []string
	Folder   string // absolute; must not contain Loadout's own state
	Writable bool   // whether it may write to Folder, except to names that make other programs run code, such as .git
	Timeout  time.Duration
	Stdout   io.Writer // also receives the output; may be nil
	Stderr   io.Writer
}

// Command runs a command without network, secrets and the user's environment.
// The sandbox gets the folder and no other files of the user. A command that
// fails or is killed is a result; an error means that nothing ran. The error
// matches [ErrWorkspace] if the folder is not accepted. Command asks for no
// approval.
func (r *Runtime) Command(ctx context.Context, c Command) (*RunResult, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("run a command: no program named")
	}
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	if err := r.CheckWorkspace(c.Folder); err != nil {
		return nil, err
	}
	out, err := execution.RunCommand(ctx, r.scripts.Sandbox, &execution.Command{Args: c.Args, Timeout: c.Timeout, Workspace: c.Folder, Writable: c.Writable,
		Streams: execution.Streams{Stdout: c.Stdout, Stderr: c.Stderr, Unlimited: true}})
	if err != nil {
		return nil, err
	}
	return runResult(out), nil
}
