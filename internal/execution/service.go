package execution

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// ServiceRequest describes a skill's or project's long-lived command.
type ServiceRequest struct {
	Skill   string   // name or reference of the skill; "" for a project's command
	Project *Project // nil for a skill's command
	// Digest is the required digest of the skill. If empty, any digest is
	// accepted.
	Digest  policy.Digest
	Command []string          // program and arguments
	Env     map[string]string // values may contain variables for the skill directory
	// Files are added to [provider.Dir] as read-only files. The keys are base
	// names.
	Files map[string][]byte
	// Hosts restricts the granted hosts further. If nil, all granted hosts are
	// allowed.
	Hosts     []string
	Redact    []sandbox.Secret // redacted in the output, in addition to the sandbox's secrets
	Caller    Caller
	Workspace string // user's directory to mount; "" for none
	Progress  Progress
}

// target is the skill or project whose command is started.
type target interface {
	identity() owner
	opened() *openedSkill // nil for a project
	workingDir() string   // path in the sandbox
	authorize(ctx context.Context, c Caller, cmd *command) (*authorization, error)
	plan(cmd *command) (*program, error)
	close()
}

var (
	_ target = skillTarget{}
	_ target = projectTarget{}
)

// skillTarget is the target of a request to start a skill's command.
type skillTarget struct {
	*openedSkill
	r *Runner
}

func (t skillTarget) identity() owner      { return t.owner }
func (t skillTarget) opened() *openedSkill { return t.openedSkill }
func (t skillTarget) workingDir() string   { return mountpoint.Skill }

func (t skillTarget) authorize(ctx context.Context, c Caller, _ *command) (*authorization, error) {
	return t.r.auth.authorize(ctx, t.openedSkill, c)
}

func (t skillTarget) plan(c *command) (*program, error) {
	return t.r.planner(t.owner, t.openedSkill).planCommand(c)
}

// Serve starts a long-lived command in the sandbox. The command is killed when
// its permission is revoked. ctx applies only to the start. The caller must
// close the service. If the policy denies the start, and the user does not
// approve the skill when asked, the error is a [*RefusedError] or the result of
// [Options.Refused]. If the command is not supported, it is a [*CommandError].
// Without a sandbox, it is [ErrNoScripts]. If [Project.Check] fails, the error
// wraps the error from it.
//
// Memory, processes and disk space are limited as for a run, but not the running
// time.
func (r *Runner) Serve(ctx context.Context, req *ServiceRequest) (*Service, error) {
	if !r.hasSandbox() {
		return nil, ErrNoScripts
	}
	with := *req
	with.Caller = r.caller(req.Caller)
	if with.Project != nil {
		with.Skill, with.Digest, with.Workspace, with.Files, with.Hosts = "", "", with.Project.Dir, nil, nil
	}
	return withApproval(ctx, r, Attempt{Skill: with.Skill, Caller: with.Caller}, func() (*Service, error) { return r.serveFrom(ctx, &with) })
}

// serveFrom is like Serve, but does not ask for approval.
func (r *Runner) serveFrom(ctx context.Context, req *ServiceRequest) (*Service, error) {
	// The service outlives ctx, but the start must not.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	begun := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	served, err := r.serve(life, req)
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

// serve is like Serve, but the service also ends when ctx is done.
func (r *Runner) serve(ctx context.Context, req *ServiceRequest) (*Service, error) {
	t, err := r.openTarget(ctx, req)
	if err != nil {
		return nil, err
	}
	defer t.close() // the sandbox has copies of the files
	c, err := parseCommand(req.Command)
	if err == nil {
		err = checkFileNames(req.Files)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.identity().label, err)
	}
	a, err := t.authorize(ctx, req.Caller, c)
	if err != nil {
		return nil, err
	}
	if req.Hosts != nil {
		a.bounds.Network = a.bounds.Intersect(policy.Bounds{Network: req.Hosts}).Network
	}
	served, err := r.start(t, a, c, req)
	if err != nil {
		defer a.release()
		if cause := context.Cause(a.ctx); errors.Is(cause, execute.ErrDisabled) {
			return nil, a.revokedError(ctx, cause)
		}
		return nil, err
	}
	served.watch(a.ctx, a.release)
	return served, nil
}

// openTarget opens the requested project or skill. It returns an error if the
// skill has changed since its command was read.
func (r *Runner) openTarget(ctx context.Context, req *ServiceRequest) (target, error) {
	if req.Project != nil {
		return r.openProject(req.Project)
	}
	s, err := openSkill(ctx, r.opts.Catalog, req.Skill)
	if err != nil {
		return nil, err
	}
	if was := req.Digest; was != "" && was != s.digest {
		err = fmt.Errorf("skill %s changed since its command was read: digest was %s, is now %s", s.name, was.Short(), s.digest.Short())
	} else {
		_, err = r.opts.Services(s.entry, s.skill)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return skillTarget{s, r}, nil
}

// checkFileNames returns an error if a name is not a base name.
func checkFileNames(files map[string][]byte) error {
	for name := range files {
		if !fs.ValidPath(name) || strings.Contains(name, "/") || name == "." {
			return &CommandError{name, "not a base name"}
		}
	}
	return nil
}

// start prepares the sandbox and starts the command in it.
func (r *Runner) start(t target, a *authorization, c *command, req *ServiceRequest) (*Service, error) {
	ctx, o, s := a.ctx, t.identity(), t.opened()
	p, err := t.plan(c)
	if err != nil {
		return nil, err
	}
	var files fs.FS
	if s != nil {
		files = s.files
	}
	if err := r.installer.install(ctx, p, files, req.Progress); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", o.label, c.name(), err)
	}
	backend, err := r.chooseBackend(ctx)
	if err != nil {
		return nil, err
	}
	b := &specBuilder{opts: &r.opts, owner: o, skill: s, program: p, auth: a, trees: providerTrees(req.Files), workspace: req.Workspace, service: true}
	spec, err := b.build(ctx, backend.Tier())
	if err != nil {
		return nil, err
	}
	cmd, err := r.serviceCommand(ctx, t, b, spec, req)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", o.label, c.name(), err)
	}
	if backend.Tier() == sandbox.Limited {
		b.addNote("runs without isolation, as allowed for this digest")
	}
	req.Progress.report("starting %s", c.name())
	ws := &workspace{dir: req.Workspace, access: b.access(), store: r.opts.HeldChanges, by: o.name}
	box, process, err := startProcess(ctx, ws, backend, spec, cmd)
	if err != nil {
		return nil, fmt.Errorf("serve %s of %s: %w", c.name(), o.label, err)
	}
	if ws.isOverlay() {
		b.addNote("its changes to the workspace are applied when it stops, except those to files that configure programs or agents")
	}
	b.notes = append(b.notes, ws.notes...)
	v := &Service{workspace: ws, logger: r.opts.Logger, Digest: o.digest, Backend: backend.Name(), Package: p.installed, Notes: slices.Concat(a.notes, b.notes), box: box, process: process, check: a.check,
		ended: make(chan struct{}), stderr: tailBuffer{limit: maxStderr}}
	if s != nil {
		v.Skill = s.name
	}
	v.redactOutput(spec, req.Redact)
	v.recordEnd = func(reason string) { r.recordServiceEnd(v, o, c, req.Caller, reason) }
	return v, nil
}

func startProcess(ctx context.Context, ws *workspace, b sandbox.Backend, spec *sandbox.Spec, cmd *sandbox.Cmd) (sandbox.Sandbox, sandbox.Process, error) {
	box, err := ws.start(ctx, b, spec)
	if err != nil {
		return nil, nil, err
	}
	p, err := box.Exec(ctx, cmd)
	if err != nil {
		box.Close()
		return nil, nil, err
	}
	return box, p, nil
}

// redactOutput makes the service redact secrets from its output.
func (s *Service) redactOutput(spec *sandbox.Spec, more []sandbox.Secret) {
	s.secrets = slices.Concat(more, spec.Secrets)
	for _, in := range spec.Network.Inject {
		s.secrets = append(s.secrets, in.Secret)
	}
	s.stdout = s.process.Stdout()
	if len(s.secrets) > 0 {
		s.stdout = redact.Lines(s.stdout, func(line []byte) []byte { return execute.Redact(line, s.secrets...) })
	}
}

// providerTrees returns a tree with files in [provider.Dir], or nil if there are
// none.
func providerTrees(files map[string][]byte) []sandbox.Tree {
	if len(files) == 0 {
		return nil
	}
	t := sandbox.Tree{Path: provider.Dir, FS: memoryFS(files)}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		t.Files = append(t.Files, sandbox.File{Path: name, Size: int64(len(files[name])), SHA256: skillfile.Hash(files[name])})
	}
	return []sandbox.Tree{t}
}

// serviceCommand returns the command to run in the sandbox.
func (r *Runner) serviceCommand(ctx context.Context, t target, b *specBuilder, spec *sandbox.Spec, req *ServiceRequest) (*sandbox.Cmd, error) {
	p := b.program
	if p.pkg != nil {
		if err := p.resolvePackage(b.auth, t.identity().name); err != nil {
			return nil, err
		}
	}
	cmd, err := r.scriptCommand(ctx, b, spec, req.Progress)
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Timeout = t.workingDir(), -1
	cmd.Env = map[string]string{}
	for k, v := range req.Env {
		cmd.Env[k] = skillDirNames.Replace(v)
	}
	for _, kept := range []string{"PATH", "PYTHONPATH"} { // the interpreter and its packages are found through these
		if was := spec.Env[kept]; was != "" && cmd.Env[kept] != "" {
			cmd.Env[kept] = was + ":" + cmd.Env[kept]
		}
	}
	return cmd, nil
}

// resolvePackage finds the program in the installed packages. It returns an
// error if the package was not approved.
func (p *program) resolvePackage(a *authorization, skill string) error {
	built, argv, err := p.pkg.resolve(p.packages)
	if err != nil {
		return err
	}
	if err := a.checkPackage(skill, p.pkg, built); err != nil {
		return err
	}
	p.installed = built
	p.argv = slices.Concat(p.plan.Argv[:len(p.plan.Argv)-1], argv, p.pkg.args)
	return nil
}

// recordServiceEnd records the end of a service. The start has already been
// recorded.
func (r *Runner) recordServiceEnd(s *Service, o owner, c *command, caller Caller, reason string) {
	if r.opts.Audit == nil {
		return
	}
	details := map[string]string{"command": c.name(), "backend": s.Backend, "exit_code": strconv.Itoa(s.exit.Code), "denied_hosts": strings.Join(s.box.State().Denied, " ")}
	if p := s.Package; p != nil {
		details["package"], details["integrity"] = p.Name+"@"+p.Version, p.Integrity
	}
	r.opts.Audit(context.Background(), policy.Record{ // no caller is left to return an error to
		Principal: caller.Principal, Action: "served", Subject: s.Digest, Name: o.name, Decision: policy.Allow, Reason: reason, Details: details})
}
