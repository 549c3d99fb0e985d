package loadout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// Run runs a script of a skill in the sandbox and waits for its end. A script
// that fails, or is ended, is a result. The error is a [*RefusedError] where
// policy says no, one of the catalog where there is no such skill, and one that
// says what is missing where the script, its interpreter, its packages or the
// sandbox are; nothing has run then, and there is no result. Where a script ran
// and ctx ended, or its files could not be kept, the error comes with the result.
func (r *Runtime) Run(ctx context.Context, run Run) (*Ran, error) {
	if !r.RunsScripts() {
		return nil, ErrNoScripts
	}
	if run.Principal == (policy.Principal{}) {
		run.Principal = r.scripts.principal()
	}
	j := &job{rt: r, scripts: r.scripts, run: run}
	defer j.close()
	if err := j.open(ctx); err != nil {
		return nil, err
	}
	ctx, release, err := j.permit(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := j.plan(); err != nil {
		return nil, err
	}
	ran, err := j.execute(ctx)
	if ran != nil {
		j.recordEnd(ctx, ran)
	}
	if cause := context.Cause(ctx); err != nil && ran == nil && errors.Is(cause, sandbox.ErrDisabled) { // before it began
		return nil, j.refuse(ctx, cause)
	}
	return ran, err
}

// recordEnd keeps how the run ended. That it began is recorded before; where this
// cannot be, the run has been all the same.
func (j *job) recordEnd(ctx context.Context, ran *Ran) {
	if j.scripts.Audit == nil {
		return
	}
	err := j.scripts.Audit.Append(context.WithoutCancel(ctx), policy.Record{
		Principal: j.run.Principal, Action: "ran", Subject: policy.Digest(ran.Digest), Name: ran.Skill, Decision: policy.Allowed, Reason: string(ran.Reason),
		Details: map[string]string{"script": ran.Script, "backend": ran.Backend, "exit_code": strconv.Itoa(ran.ExitCode), "denied_hosts": strings.Join(ran.DeniedHosts, " ")},
	})
	if err != nil {
		ran.Notes = append(ran.Notes, "how it ended could not be recorded: "+err.Error())
	}
}

// job is one run on its way.
type job struct {
	rt      *Runtime
	scripts *Scripts
	run     Run

	entry    *catalog.Entry
	skill    *skill.Skill
	parts    []part    // the skill is the last, after what it needs
	files    *verified // of the skill, for what is decided by them
	script   string
	how      *script.Plan
	asked    policy.Request
	effect   policy.Bounds
	inject   []policy.Injection
	host     bool // the machine's network
	granted  *policy.Grant
	notes    []string
	closers  []func() error
	packages *install.Packages
	service  *service     // what is served; nil for a run to an end
	project  *Project     // whose command is served, in place of a skill
	check    func() error // asks whether that is trusted still, and ends it where not
}

// part is a skill whose files the sandbox gets.
type part struct {
	entry    *catalog.Entry
	bundle   *skill.Bundle
	manifest skill.Manifest
}

func (j *job) close() {
	for _, c := range slices.Backward(j.closers) {
		c()
	}
}

func (j *job) progress(format string, args ...any) {
	if j.run.Progress != nil {
		j.run.Progress(fmt.Sprintf(format, args...))
	}
}

func (j *job) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// open finds the skill, the script, and all files that will be in the sandbox.
func (j *job) open(ctx context.Context) error {
	if err := j.openSkill(ctx); err != nil {
		return err
	}
	return j.find(j.run.Script)
}

// find finds the script that a name stands for.
func (j *job) find(name string) error {
	var err error
	j.script, err = script.Find(j.files, j.own().manifest, name)
	return j.unchanged(err)
}

// openSkill finds the skill and all files that will be in the sandbox.
func (j *job) openSkill(ctx context.Context) error {
	e, err := j.rt.catalog.Resolve(ctx, j.run.Skill)
	if err != nil {
		return err
	}
	order, err := j.rt.catalog.Snapshot().LoadOrder(e)
	if err != nil {
		return err
	}
	j.entry = e
	var src []byte
	if j.skill, src, err = j.rt.catalog.Read(ctx, e); err != nil {
		return err
	}
	for _, e := range order {
		b, err := j.rt.catalog.Open(ctx, e)
		if err != nil {
			return err
		}
		j.closers = append(j.closers, b.Close)
		m, err := j.rt.catalog.WholeManifest(ctx, e)
		if err != nil {
			return err
		}
		j.parts = append(j.parts, part{e, b, m})
	}
	own := j.own()
	if err := sameText(own.manifest, src); err != nil {
		return fmt.Errorf("skill %s: %w", e.Name, err)
	}
	j.files = &verified{fsys: own.bundle.FS, files: own.manifest}
	return nil
}

// unchanged is err, or that a file on which it may rest is not the one that the
// manifest names.
func (j *job) unchanged(err error) error {
	if j.files.changed != nil {
		err = j.files.changed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.owner(), err)
	}
	return nil
}

// sameText reports whether what was read of a SKILL.md, and decides on what the
// skill is given, is in the manifest that an approval names.
func sameText(m skill.Manifest, src []byte) error {
	hash := skill.Hash(src)
	for _, f := range m {
		if skill.IsFileName(f.Path) && f.SHA256 == hash {
			return nil
		}
	}
	return &sandbox.ChangedError{Tree: sandbox.SkillDir, Path: skill.FileName}
}

func (j *job) own() *part { return &j.parts[len(j.parts)-1] }

// digest is the one that was approved, of the skill or the project's configuration.
func (j *job) digest() string {
	if j.project != nil {
		return string(j.project.Digest)
	}
	return j.own().manifest.Digest()
}

// needs are the dependencies as an approval names them.
func (j *job) needs() []policy.Need {
	var out []policy.Need
	for _, p := range j.parts[:len(j.parts)-1] {
		out = append(out, policy.Need{Name: p.entry.Name, Digest: policy.Digest(p.manifest.Digest())})
	}
	return out
}

// plan finds out how to run the script.
func (j *job) plan() error {
	host := script.Host{}
	if j.scripts.Getenv != nil {
		host = script.HostOf(j.scripts.Getenv)
	}
	var err error
	if j.how, err = script.Resolve(j.files, j.script, host); err != nil || j.files.changed != nil {
		return j.unchanged(err)
	}
	if j.how.Kind == script.WASM && j.scripts.Command == "" {
		return fmt.Errorf("skill %s: %s is WebAssembly: %w", j.entry.Name, j.script, ErrNoScripts)
	}
	return nil
}

// execute prepares the sandbox and runs the script in it.
func (j *job) execute(ctx context.Context) (*Ran, error) {
	if j.how.Needs != nil {
		var err error
		if j.packages, err = j.install(ctx); err != nil {
			return nil, fmt.Errorf("skill %s: %s: %w", j.entry.Name, j.script, err)
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
	cmd, err := j.command(ctx, spec)
	if err != nil {
		return nil, err
	}
	j.progress("running %s", j.script)
	out, err := execute(ctx, b, j.scripts.Folders, &j.run, spec, cmd)
	if out != nil {
		out.Skill, out.Script, out.Digest = j.entry.Name, j.script, j.digest()
		out.Notes = append(j.notes, out.Notes...)
		if name := undeclared(j.how, out); name != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("it needs the package that has the module %s, and does not say so: name it in a requirements.txt, or in a # /// script block", name))
		}
	}
	if err != nil {
		return out, fmt.Errorf("run %s of skill %s: %w", j.script, j.entry.Name, err)
	}
	return out, nil
}

// missingModule is how Python says that a package is not there.
var missingModule = pattern.New(`ModuleNotFoundError: No module named '([A-Za-z0-9_]+)`)

// undeclared is the module that a script missed, where it names no packages.
func undeclared(how *script.Plan, out *Ran) string {
	if how.Kind != script.Python || how.Needs != nil || out.ExitCode == 0 {
		return ""
	}
	if m := missingModule().FindStringSubmatch(out.Stderr); m != nil {
		return m[1]
	}
	return ""
}

// RunCommand runs a command of this machine in a sandbox, for people who want
// to see what scripts see. Of the run its files, streams and times count.
func RunCommand(ctx context.Context, b sandbox.Backend, args []string, run Run) (*Ran, error) {
	spec := &sandbox.Spec{}
	run.Typed = true
	var err error
	if spec.Trees, err = inputTrees(run.Inputs); err != nil {
		return nil, err
	}
	out, err := execute(ctx, b, "", &run, spec, &sandbox.Cmd{Args: args, Timeout: run.Timeout})
	if err != nil {
		return out, fmt.Errorf("run %s: %w", args[0], err)
	}
	return out, nil
}

// execute runs a command and keeps its files.
func execute(ctx context.Context, b sandbox.Backend, folders string, run *Run, spec *sandbox.Spec, cmd *sandbox.Cmd) (*Ran, error) {
	files, err := newOutlet(ctx, run, folders, spec)
	if err != nil {
		return nil, err
	}
	res, err := sandbox.Run(ctx, b, spec, cmd, &sandbox.RunOptions{
		Stdin: run.Stdin, Stdout: run.Stdout, Stderr: run.Stderr, Whole: run.Typed && run.Stdout != nil, Collect: files.collect})
	switch {
	case err != nil:
		files.discard()
		if res == nil {
			return nil, err
		}
		files.handle, res.Files = "", nil
	default:
		if err = files.keep(res); err != nil {
			err = fmt.Errorf("keep its files: %w", err)
		}
	}
	out := &Ran{
		ExitCode: res.ExitCode, Stdout: text(res.Stdout), Stderr: text(res.Stderr), DurationMS: res.Duration.Milliseconds(), Killed: res.Killed,
		Truncated: res.Truncated, Reason: res.Reason, Detail: res.Detail, Backend: res.Backend, Tier: int(res.Tier), Limits: res.Enforced,
		DeniedHosts: append([]string{}, res.Denied...), Files: append([]sandbox.File{}, res.Files...), Folder: files.handle, Left: files.left,
	}
	if files.hidden > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d of its files were not handed over, as their names begin with a dot", files.hidden))
	}
	if res.Tier == sandbox.Limited {
		out.Notes = append(out.Notes, "it ran without isolation, as was allowed for this digest")
	}
	return out, err
}

// text is output as JSON can hold it.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// backend is the back end that this run has: one that chooses is asked now.
func (j *job) backend(ctx context.Context) (sandbox.Backend, error) {
	if c, ok := j.scripts.Sandbox.(interface {
		Choose(context.Context) (sandbox.Backend, *sandbox.Report, error)
	}); ok {
		b, _, err := c.Choose(ctx)
		return b, err
	}
	return j.scripts.Sandbox, nil
}

// spec is the sandbox of this run.
func (j *job) spec(ctx context.Context, tier sandbox.Tier) (*sandbox.Spec, error) {
	s := &sandbox.Spec{Env: map[string]string{}, Limits: j.limits(), Digest: j.digest()}
	for _, p := range j.parts {
		at := sandbox.SkillDir
		if p.entry != j.entry {
			at = sandbox.NeedsDir + "/" + strings.ReplaceAll(p.entry.Name, "/", "_")
		}
		s.Trees = append(s.Trees, tree(at, p.bundle.FS, p.manifest))
	}
	inputs, err := inputTrees(j.run.Inputs)
	if err != nil {
		return nil, err
	}
	s.Trees = append(s.Trees, inputs...)
	if j.service != nil {
		s.Trees = append(s.Trees, j.service.trees()...)
	}
	for _, p := range j.how.Prefixes {
		s.Mounts = append(s.Mounts, sandbox.Mount{Host: p, Path: p})
	}
	if j.run.Workspace != "" {
		if err := j.rt.CheckWorkspace(j.run.Workspace); err != nil {
			return nil, err
		}
		mountWorkspace(s, j.run.Workspace, j.effect.WorkspaceWrite)
	}
	if len(j.how.Bin) > 0 {
		s.Env["PATH"] = strings.Join(j.how.Bin, ":") + ":/usr/local/bin:/usr/bin:/bin"
	}
	maps.Copy(s.Env, j.how.Env)
	if j.packages != nil {
		s.Mounts = append(s.Mounts, j.packages.Mounts...)
		maps.Copy(s.Env, j.packages.Env)
	}
	if j.how.Kind == script.Python && j.project == nil {
		// Scripts that import each other by way of the skill's own directory are
		// meant to be started from there.
		s.Env["PYTHONPATH"] = strings.TrimPrefix(s.Env["PYTHONPATH"]+":"+sandbox.SkillDir, ":")
	}
	return s, j.network(ctx, s, tier)
}

// tree is a skill as a tree of files.
func tree(at string, fsys fs.FS, m skill.Manifest) sandbox.Tree {
	t := sandbox.Tree{Path: at, FS: fsys}
	for _, f := range m {
		t.Files = append(t.Files, sandbox.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256, Exec: f.Script})
	}
	return t
}

// nodeProcesses is how many times as many threads Node is given, which has some
// of its own.
const nodeProcesses = 2

// limits are those of the sandbox's defaults that the bounds change. See
// [Runtime.ask] for why none is wider than the operator's, or the default.
func (j *job) limits() sandbox.Limits {
	l := sandbox.DefaultLimits()
	b := j.effect
	if b.MemoryMB > 0 {
		l.Memory = int64(b.MemoryMB) << 20
	}
	if b.Seconds > 0 {
		l.Wall = time.Duration(b.Seconds) * time.Second
		l.CPU = l.Wall
	}
	if j.how.Kind == script.Node || j.how.Kind == script.TypeScript {
		l.Processes *= nodeProcesses
	}
	if b.Processes > 0 && (j.scripts.Bounds.Processes > 0 || b.Processes < l.Processes) {
		l.Processes = b.Processes
	}
	if b.DiskMB > 0 {
		l.Work = int64(b.DiskMB) << 20
		l.FileSize = min(l.Work, max(l.FileSize, l.Work/2))
	}
	if t := j.run.Timeout; t > 0 && t < l.Wall {
		l.Wall = t
	}
	if j.service != nil {
		l.Wall, l.CPU = endless, endless
	}
	return l
}

// network gives the sandbox what was granted of hosts and secrets.
func (j *job) network(ctx context.Context, s *sandbox.Spec, tier sandbox.Tier) error {
	added := map[string]bool{}
	secrets, err := j.secrets(ctx)
	if err != nil {
		return err
	}
	for _, in := range j.inject {
		sec, ok := secrets[in.Secret]
		if !ok {
			continue
		}
		// Approved was that the proxy adds it; code never gets it in place of that.
		added[in.Secret] = true
		if j.host || !policy.MatchHost(j.effect.Network, in.Host, in.Port) {
			j.note("secret %s is not added to requests to %s, which do not go through our proxy", in.Secret, in.Pattern())
			continue
		}
		s.Network.Inject = append(s.Network.Inject, sandbox.Injection{Host: in.Pattern(), Header: in.Header, Prefix: in.Prefix, Secret: sec})
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if !added[name] { // what the proxy adds, code need not hold
			s.Secrets = append(s.Secrets, secrets[name])
		}
	}
	switch {
	case tier == sandbox.Limited: // it cannot be kept from it
		s.Network.Mode = sandbox.HostNetwork
	case j.host:
		s.Network.Mode = sandbox.HostNetwork
		j.note("it had all of this machine's network")
	case len(j.effect.Network) > 0:
		s.Network.Mode, s.Network.Allow = sandbox.ProxyNetwork, j.effect.Network
		s.Network.Private, s.Network.Log = j.scripts.Private, j.scripts.Logger
	}
	return nil
}

// secrets are the values of the secrets that were granted.
func (j *job) secrets(ctx context.Context) (map[string]sandbox.Secret, error) {
	out := map[string]sandbox.Secret{}
	for _, s := range j.run.Secrets {
		out[s.Name] = s
	}
	for _, name := range j.effect.Secrets {
		if _, ok := out[name]; ok {
			continue
		}
		value, err := j.scripts.secret(ctx, policy.Digest(j.digest()), name)
		if err != nil {
			return nil, fmt.Errorf("secret %s for %s: %w", name, j.owner(), err)
		}
		if value == "" {
			j.note("secret %s is not set", name)
			continue
		}
		out[name] = sandbox.NewSecret(name, value)
	}
	return out, nil
}

// command is what runs in the sandbox.
func (j *job) command(ctx context.Context, s *sandbox.Spec) (*sandbox.Cmd, error) {
	file := path.Join(sandbox.SkillDir, j.script)
	if j.how.Kind == script.WASM {
		return j.module(ctx, s, file)
	}
	return &sandbox.Cmd{Args: j.how.Command(file, j.run.Args...)}, nil
}
