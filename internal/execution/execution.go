// Package execution runs code from skills and projects in a sandbox.
//
// [Runner.Run] runs one script and waits for it. [Runner.Serve] starts a
// long-lived command, such as an MCP server. Each step has a small type:
// openedSkill opens the files, authorizer decides, planner selects the
// interpreter, installer installs packages, specBuilder describes the sandbox,
// and collector saves the output files. Start reading at Runner.Run.
//
// The package never prompts the user. It starts code only if the policy allows
// it and the decision could be recorded.
package execution

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/heldchange"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

var (
	// ErrNoScripts is returned if the host program is not configured to run
	// scripts.
	ErrNoScripts = errors.New("cannot run scripts: no sandbox configured")
	// ErrNoServers is returned if the host program is not configured to start
	// MCP servers from skills.
	ErrNoServers = errors.New("cannot start MCP servers of skills: not configured")
)

// ServiceNeeds lists what an approval of a skill must cover for the servers of
// the skill.
type ServiceNeeds struct {
	Installs  bool          // a server needs a package to be installed
	Variables []policy.Need // platform values and their targets: see [decision.VariableNeed]
}

// Options configures a [Runner].
type Options struct {
	Catalog *catalog.Catalog
	Sandbox sandbox.Backend
	Grants  policy.Store
	Audit   func(ctx context.Context, r policy.Record) error // if nil, decisions are not recorded
	Bounds  policy.Bounds                                    // operator's limit for all skills
	Host    script.Host                                      // machine whose interpreters are used
	// Packages configures package installation. If nil, programs that need
	// packages are rejected.
	Packages *packages.Options
	// CommandPackages lists Python requirements for all commands; see
	// [Runner.RunCommand].
	CommandPackages []string
	// Failures remembers failed installations for commands; nil remembers none.
	Failures *InstallFailures
	// Services reports what the approval of a skill's servers must cover. It
	// returns an error if the skill's servers cannot be read, and
	// [ErrNoServers] if servers are disabled.
	Services func(*catalog.Entry, *skill.Skill) (ServiceNeeds, error)
	// Secret returns the value of a skill's secret, or "" if the secret is not
	// set.
	Secret        func(ctx context.Context, skill policy.Digest, name string) (string, error)
	ProtectedDirs []string // directories that a workspace must not overlap
	// HeldChanges stores changes to steering files if no user can be asked
	// about them; nil stores none.
	HeldChanges *heldchange.Store
	// DirectWorkspace lets code that may write to the workspace do so directly
	// if the sandbox does not support overlays.
	DirectWorkspace bool
	Executable      string // program that runs WebAssembly; "" rejects WebAssembly scripts
	CacheDir        string // "" disables the cache
	PrivateNetworks []netip.Prefix
	Logger          *slog.Logger // logs decisions about network connections
	// Principal is the principal of callers that have none.
	Principal policy.Principal
	// Approve asks the user to approve the skill of a refused operation. If it
	// returns nil, the operation is attempted again; otherwise its error is
	// returned. If Approve is nil, the user is not asked.
	Approve func(ctx context.Context, e *RefusedError, a Attempt) error
	// Refused converts a refusal to the host program's error; nil keeps it.
	Refused func(e *RefusedError) error
}

// A Runner runs code from skills and projects. It is safe for concurrent use. A
// nil Runner runs nothing.
type Runner struct {
	opts      Options
	auth      *authorizer
	installer installer
	wasm      *wasmRunner
}

// New returns a Runner with the given options.
func New(o Options) *Runner {
	if o.Grants == nil {
		o.Grants = policy.NewMemoryStore()
	}
	return &Runner{
		opts:      o,
		auth:      &authorizer{catalog: o.Catalog, grants: o.Grants, audit: o.Audit, limit: o.Bounds, sandbox: o.Sandbox, services: o.Services},
		installer: installer{o.Packages},
		wasm:      &wasmRunner{executable: o.Executable, cacheDir: o.CacheDir, sandbox: o.Sandbox},
	}
}

// Request describes a run of a skill script.
type Request struct {
	Skill     string // name or reference of the skill
	Script    string // path in the skill, or a base name that is unique in it
	Args      []string
	Inputs    []Input
	Caller    Caller
	Streams   Streams
	Output    Output
	Workspace string            // user's directory to mount; "" for none
	Agree     Agree             // asks about changes to the workspace; may be nil
	Env       map[string]string // variables that the interpreter and packages do not set
	Secrets   []sandbox.Secret  // secrets in addition to those of the runner
	Timeout   time.Duration     // reduced to the time limit in the bounds; 0 means that limit
	Progress  Progress
}

// Progress is called with a message for each step that prepares a run. It may
// be nil.
type Progress func(what string)

// Run runs a script of a skill and waits for it to finish. A script that fails
// or is killed is reported in the result, not as an error. If the policy denies
// the run, and the user does not approve it when asked, the error is a
// [*RefusedError] or the result of [Options.Refused]. Without a sandbox, it is
// [ErrNoScripts]. If ctx is done during the run, or the output files cannot be
// saved, Run returns both a result and an error.
func (r *Runner) Run(ctx context.Context, req *Request) (*Result, error) {
	if !r.hasSandbox() {
		return nil, ErrNoScripts
	}
	with := *req
	with.Caller = r.caller(req.Caller)
	return withApproval(ctx, r, Attempt{req.Skill, req.Script, with.Caller}, func() (*Result, error) { return r.run(ctx, &with) })
}

// run is like Run, but does not ask for approval.
func (r *Runner) run(ctx context.Context, req *Request) (*Result, error) {
	s, err := openSkill(ctx, r.opts.Catalog, req.Skill)
	if err != nil {
		return nil, err
	}
	defer s.close()
	file, err := s.findScript(req.Script)
	if err != nil {
		return nil, err
	}
	a, err := r.auth.authorize(ctx, s, req.Caller)
	if err != nil {
		return nil, err
	}
	defer a.release()
	p, err := r.planner(s.owner, s).planRun(file, req.Args)
	if err != nil {
		return nil, err
	}
	res, err := r.runScript(a.ctx, s, a, p, req)
	if res != nil {
		r.recordEnd(a.ctx, req.Caller, res)
	}
	if cause := context.Cause(a.ctx); err != nil && res == nil && errors.Is(cause, execute.ErrDisabled) { // before the start
		return nil, a.revokedError(a.ctx, cause)
	}
	return res, err
}

// runScript prepares the sandbox and runs the script in it.
func (r *Runner) runScript(ctx context.Context, s *openedSkill, a *authorization, p *program, req *Request) (*Result, error) {
	if err := r.installer.install(ctx, p, s.files, req.Progress); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.label, p.script, err)
	}
	backend, err := r.chooseBackend(ctx)
	if err != nil {
		return nil, err
	}
	b := &specBuilder{opts: &r.opts, owner: s.owner, skill: s, program: p, auth: a, inputs: req.Inputs, trees: providerTrees(p.files), workspace: req.Workspace, env: req.Env, secrets: req.Secrets, timeout: req.Timeout}
	spec, err := b.build(ctx, backend.Tier())
	if err != nil {
		return nil, err
	}
	cmd, err := r.scriptCommand(ctx, b, spec, req.Progress)
	if err != nil {
		return nil, err
	}
	req.Progress.report("running %s", p.script)
	ws := &workspace{dir: req.Workspace, access: b.access(), agree: req.Agree, store: r.opts.HeldChanges, by: b.owner.name}
	res, err := runInSandbox(ctx, backend, spec, cmd, req.Streams, req.Output, ws)
	if res != nil {
		res.Skill, res.Script, res.Digest = s.name, p.script, s.digest
		res.Notes = slices.Concat(a.notes, b.notes, res.Notes, missingModuleNote(p.plan, res))
	}
	if err != nil {
		return res, fmt.Errorf("run %s of %s: %w", p.script, s.label, err)
	}
	return res, nil
}

// recordEnd records the end of a run in the audit log. If that fails, it adds a
// note to the result, because the script has already run.
func (r *Runner) recordEnd(ctx context.Context, c Caller, res *Result) {
	if r.opts.Audit == nil {
		return
	}
	err := r.opts.Audit(context.WithoutCancel(ctx), policy.Record{
		Principal: c.Principal, Action: "ran", Subject: res.Digest, Name: res.Skill, Decision: policy.Allow, Reason: string(res.Reason),
		Details: map[string]string{"script": res.Script, "backend": res.Backend, "exit_code": strconv.Itoa(res.ExitCode), "denied_hosts": strings.Join(res.Denied, " ")},
	})
	if err != nil {
		res.Notes = append(res.Notes, "end of the run not recorded: "+err.Error())
	}
}

// hasSandbox reports whether the runner can start commands. r may be nil.
func (r *Runner) hasSandbox() bool { return r != nil && r.opts.Sandbox != nil }

// caller returns c with the default principal if it has none.
func (r *Runner) caller(c Caller) Caller {
	if c.Principal == (policy.Principal{}) {
		c.Principal = r.opts.Principal
	}
	return c
}

// planner returns a planner for the owner's programs. s is nil for a project.
func (r *Runner) planner(o owner, s *openedSkill) *planner {
	return &planner{owner: o, skill: s, host: r.opts.Host, runsWASM: r.opts.Executable != ""}
}

// chooseBackend returns the sandbox backend for a run. A configured backend
// that chooses among others is replaced with its current choice.
func (r *Runner) chooseBackend(ctx context.Context) (sandbox.Backend, error) {
	if c, ok := r.opts.Sandbox.(interface {
		Choose(context.Context) (sandbox.Backend, *sandbox.Report, error)
	}); ok {
		b, _, err := c.Choose(ctx)
		return b, err
	}
	return r.opts.Sandbox, nil
}

// scriptCommand returns the command that runs the script in the sandbox.
func (r *Runner) scriptCommand(ctx context.Context, b *specBuilder, spec *sandbox.Spec, progress Progress) (*sandbox.Cmd, error) {
	p := b.program
	if p.argv != nil {
		return &sandbox.Cmd{Args: p.argv}, nil
	}
	if p.plan.Kind != script.WASM {
		return &sandbox.Cmd{Args: p.plan.Command(path.Join(b.skill.dir(), p.script), p.args...)}, nil
	}
	f, _ := b.skill.main().manifest.Find(p.script) // planScript found the script in the manifest
	return r.wasm.command(ctx, spec, wasmModule{dir: b.skill.dir(), script: p.script, hash: f.SHA256, args: p.args, unlimited: b.service}, progress)
}

func (p Progress) report(format string, args ...any) {
	if p != nil {
		p(fmt.Sprintf(format, args...))
	}
}
