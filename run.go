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

// Run describes a script run.
type Run struct {
	Skill  string // reference to the skill
	Script string // path inside the skill, or the script's name if unique
	Args   []string
	Stdin  io.Reader
	Inputs []Input // files and directories to copy to /work/in

	// Principal is the principal of the run; the zero value means
	// [Scripts.Principal]. ByUser is set if the user typed the command, which
	// approves this run.
	Principal policy.Principal
	ByUser    bool
	Session   string

	// Folder is the handle of a working folder, as returned by an earlier run.
	// If it is "", NewFolder creates a working folder.
	Folder    string
	NewFolder bool
	// OutputDir is the directory for the files in /work/out. It is created if
	// necessary. It is ignored if the run has a working folder.
	OutputDir string
	// Workspace is the absolute path of a user's directory. The script can
	// read it, and can write to it if that was approved.
	Workspace string
	// WriteWorkspace grants write access to the workspace, and HostNetwork
	// full access to the machine's network. Set them only if the user typed
	// the command.
	WriteWorkspace, HostNetwork bool
	// Secrets are values for this run, in addition to those of [Scripts].
	Secrets []sandbox.Secret
	Timeout time.Duration // limited by Bounds; 0 means that limit

	// Stdout and Stderr receive the output as it is written. If the user typed
	// the command, the output is not truncated. Both may be nil.
	Stdout, Stderr io.Writer
	Progress       func(what string) // receives progress messages; may be nil
}

// Input is a file or directory that is copied to /work/in.
type Input struct {
	// Name is the path relative to /work/in.
	Name string
	// FS contains the file or directory at Path.
	FS   fs.FS
	Path string
}

// TextInput returns an input file with the given content.
func TextInput(name string, data []byte) Input {
	return Input{Name: name, FS: execution.TextFile(data), Path: "data"}
}

// RunResult is the result of a run. Its JSON form is the stable output format
// of run --json.
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
	// UnsavedFiles is the number of files that the script wrote outside
	// /work/out. They were not saved.
	UnsavedFiles int      `json:"left,omitempty"`
	Notes        []string `json:"notes,omitempty"` // for users, for example about denied permissions
}

// Run runs a skill script in the sandbox and waits for it to finish. A script
// that fails or is killed is not an error. The error is a [*RefusedError] if
// policy denies the run, or a catalog error if the skill is not found. Other
// errors report that the script, its interpreter, its packages or the sandbox
// is missing. In these cases nothing ran, and there is no result. If ctx is
// done during the run or the files cannot be saved, Run returns both a result
// and an error. [Options.Approve] is called before a run is refused.
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

// RunCommand runs a host command in a sandbox, to show users what scripts can
// see. It uses only the files, streams and timeout of run.
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

// runResult converts a result to its stable format. It returns nil if r is nil.
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

// validUTF8 returns b as a string and replaces invalid UTF-8, which JSON cannot
// represent.
func validUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// Command is a host command to run in the sandbox on a user's folder. It starts
// in that folder.
type Command struct {
	Args     []string
	Folder   string // absolute; must not contain Loadout's own state
	Writable bool   // whether the command may write to Folder, except to names that make other programs run code, such as .git
	Timeout  time.Duration
	Stdout   io.Writer // also receives the output; may be nil
	Stderr   io.Writer
}

// Command runs a command without network access, secrets or the user's
// environment. Of the user's files, the sandbox contains only the folder. A
// command that fails or is killed is not an error; an error means that nothing
// ran. The error matches [ErrWorkspace] if the folder is not accepted. Command
// does not ask for approval.
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
