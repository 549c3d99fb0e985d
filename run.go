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
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// Run runs a script of a skill in the sandbox and waits for its end. A script
// that fails or is killed returns a result. The error is a [*RefusedError] if
// policy denies the run, or an error of the catalog if the skill is not found.
// Other errors say that the script, its interpreter, its packages or the
// sandbox is missing. In these cases nothing ran, and there is no result. If
// ctx ended during the run, or the files could not be saved, both the result
// and the error are returned.
func (r *Runtime) Run(ctx context.Context, run Run) (*RunResult, error) {
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
	ctx, release, err := j.authorize(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := j.planScript(); err != nil {
		return nil, err
	}
	ran, err := j.execute(ctx)
	if ran != nil {
		j.recordEnd(ctx, ran)
	}
	if cause := context.Cause(ctx); err != nil && ran == nil && errors.Is(cause, sandbox.ErrDisabled) { // before the start
		return nil, j.refusal(ctx, cause)
	}
	return ran, err
}

// recordEnd records the end of a run. A failure becomes a note of the result,
// because the script has already run.
func (j *job) recordEnd(ctx context.Context, ran *RunResult) {
	if j.scripts.Audit == nil {
		return
	}
	err := j.scripts.Audit.Append(context.WithoutCancel(ctx), policy.Record{
		Principal: j.run.Principal, Action: "ran", Subject: policy.Digest(ran.Digest), Name: ran.Skill, Decision: policy.VerdictAllow, Reason: string(ran.Reason),
		Details: map[string]string{"script": ran.Script, "backend": ran.Backend, "exit_code": strconv.Itoa(ran.ExitCode), "denied_hosts": strings.Join(ran.DeniedHosts, " ")},
	})
	if err != nil {
		ran.Notes = append(ran.Notes, "how it ended could not be recorded: "+err.Error())
	}
}

// job is one run in progress.
type job struct {
	rt      *Runtime
	scripts *Scripts
	run     Run

	entry         *catalog.Entry
	skill         *skill.Skill
	parts         []part      // the skill is last, after its dependencies
	files         *verifiedFS // the skill's files, for decisions based on them
	script        string
	scriptPlan    *script.Plan
	policyRequest policy.Request
	effective     policy.Bounds
	inject        []policy.Injection
	hostNetwork   bool // use the machine's network
	granted       *policy.Grant
	notes         []string
	closers       []func() error
	packages      *packages.Packages
	service       *service     // service to start; nil for a script run
	project       *Project     // project of the command, instead of a skill
	checkTrust    func() error // checks trust in the project, and cancels the service if it is revoked
}

// part is a skill whose files are in the sandbox.
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

// open finds the skill, the script and all files for the sandbox.
func (j *job) open(ctx context.Context) error {
	if err := j.openSkill(ctx); err != nil {
		return err
	}
	return j.findScript(j.run.Script)
}

// findScript finds a script by its path or name.
func (j *job) findScript(name string) error {
	var err error
	j.script, err = script.Find(j.files, j.mainPart().manifest, name)
	return j.checkUnchanged(err)
}

// openSkill finds the skill and all files for the sandbox.
func (j *job) openSkill(ctx context.Context) error {
	e, err := j.rt.catalog.Resolve(ctx, j.run.Skill)
	if err != nil {
		return err
	}
	order, err := j.rt.catalog.LoadOrder(ctx, e)
	if err != nil {
		return err
	}
	last := order[len(order)-1]
	j.entry, j.skill = e, last.Skill
	for _, l := range order {
		b, err := j.rt.catalog.Open(ctx, l.Entry)
		if err != nil {
			return err
		}
		j.closers = append(j.closers, b.Close)
		m, err := j.rt.catalog.CompleteManifest(ctx, l.Entry)
		if err != nil {
			return err
		}
		j.parts = append(j.parts, part{l.Entry, b, m})
	}
	own := j.mainPart()
	if err := checkInManifest(own.manifest, last.Source); err != nil {
		return fmt.Errorf("skill %s: %w", e.Name, err)
	}
	j.files = &verifiedFS{fsys: own.bundle.FS, files: own.manifest}
	return nil
}

// checkUnchanged returns an error if a file differs from the manifest, since
// err may be a consequence of that. Otherwise it returns err with the owner.
func (j *job) checkUnchanged(err error) error {
	if j.files.changed != nil {
		err = j.files.changed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.owner(), err)
	}
	return nil
}

// checkInManifest reports an error unless src, the parsed SKILL.md, is in the
// manifest. The manifest is part of an approval, and SKILL.md decides what a
// skill may do.
func checkInManifest(m skill.Manifest, src []byte) error {
	hash := skill.Hash(src)
	for _, f := range m {
		if skill.IsFileName(f.Path) && f.SHA256 == hash {
			return nil
		}
	}
	return &sandbox.ChangedError{Tree: sandbox.SkillDir, Path: skill.FileName}
}

func (j *job) mainPart() *part { return &j.parts[len(j.parts)-1] }

// digest returns the approved digest, of the skill or the project's
// configuration.
func (j *job) digest() string {
	if j.project != nil {
		return string(j.project.Digest)
	}
	return j.mainPart().manifest.Digest()
}

// needs returns the dependencies as an approval lists them.
func (j *job) needs() []policy.Need {
	var out []policy.Need
	for _, p := range j.parts[:len(j.parts)-1] {
		out = append(out, policy.Need{Name: p.entry.Name, Digest: policy.Digest(p.manifest.Digest())})
	}
	return out
}

// planScript determines how to run the script.
func (j *job) planScript() error {
	host := script.Host{}
	if j.scripts.Getenv != nil {
		host = script.HostOf(j.scripts.Getenv)
	}
	var err error
	if j.scriptPlan, err = script.Resolve(j.files, j.script, host); err != nil || j.files.changed != nil {
		return j.checkUnchanged(err)
	}
	if j.scriptPlan.Kind == script.WASM && j.scripts.Executable == "" {
		return fmt.Errorf("skill %s: %s is WebAssembly: %w", j.entry.Name, j.script, ErrNoScripts)
	}
	return nil
}

// execute prepares the sandbox and runs the script in it.
func (j *job) execute(ctx context.Context) (*RunResult, error) {
	if j.scriptPlan.Needs != nil {
		var err error
		if j.packages, err = j.installPackages(ctx); err != nil {
			return nil, fmt.Errorf("skill %s: %s: %w", j.entry.Name, j.script, err)
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
	cmd, err := j.scriptCommand(ctx, spec)
	if err != nil {
		return nil, err
	}
	j.progress("running %s", j.script)
	out, err := execute(ctx, b, j.scripts.FolderDir, &j.run, spec, cmd)
	if out != nil {
		out.Skill, out.Script, out.Digest = j.entry.Name, j.script, j.digest()
		out.Notes = append(j.notes, out.Notes...)
		if name := missingModuleName(j.scriptPlan, out); name != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("it needs the package that has the module %s, and does not say so: name it in a requirements.txt, or in a # /// script block", name))
		}
	}
	if err != nil {
		return out, fmt.Errorf("run %s of skill %s: %w", j.script, j.entry.Name, err)
	}
	return out, nil
}

// missingModule matches Python's error for a missing package.
var missingModule = lazyregexp.New(`ModuleNotFoundError: No module named '([A-Za-z0-9_]+)`)

// missingModuleName returns the module that was missing, if the script declares
// no packages.
func missingModuleName(how *script.Plan, out *RunResult) string {
	if how.Kind != script.Python || how.Needs != nil || out.ExitCode == 0 {
		return ""
	}
	if m := missingModule().FindStringSubmatch(out.Stderr); m != nil {
		return m[1]
	}
	return ""
}

// RunCommand runs a command of this machine in a sandbox, to show users what
// scripts can see. From run it uses only the files, streams and times.
func RunCommand(ctx context.Context, b sandbox.Backend, args []string, run Run) (*RunResult, error) {
	spec := &sandbox.Spec{}
	run.ByUser = true
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

// execute runs a command and saves its files.
func execute(ctx context.Context, b sandbox.Backend, folders string, run *Run, spec *sandbox.Spec, cmd *sandbox.Cmd) (*RunResult, error) {
	files, err := newRunOutput(ctx, run, folders, spec)
	if err != nil {
		return nil, err
	}
	res, err := sandbox.Run(ctx, b, spec, cmd, &sandbox.RunOptions{
		Stdin: run.Stdin, Stdout: run.Stdout, Stderr: run.Stderr, Unlimited: run.ByUser && run.Stdout != nil, Collect: files.collect})
	switch {
	case err != nil:
		files.discard()
		if res == nil {
			return nil, err
		}
		files.handle, res.Files = "", nil
	default:
		if err = files.commit(res); err != nil {
			err = fmt.Errorf("keep its files: %w", err)
		}
	}
	out := &RunResult{
		ExitCode: res.ExitCode, Stdout: validUTF8(res.Stdout), Stderr: validUTF8(res.Stderr), DurationMS: res.Duration.Milliseconds(), Killed: res.Killed,
		Truncated: res.Truncated, Reason: res.Reason, Detail: res.Detail, Backend: res.Backend, Tier: int(res.Tier), Limits: res.Enforced,
		DeniedHosts: append([]string{}, res.Denied...), Files: append([]sandbox.File{}, res.Files...), Folder: files.handle, UnsavedFiles: files.unsaved,
	}
	if files.hidden > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d of its files were not handed over, as their names begin with a dot", files.hidden))
	}
	if res.Tier == sandbox.Limited {
		out.Notes = append(out.Notes, "it ran without isolation, as was allowed for this digest")
	}
	return out, err
}

// validUTF8 returns output in a form that JSON can hold.
func validUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// chooseBackend returns the back end of this run. A choosing back end decides
// now.
func (j *job) chooseBackend(ctx context.Context) (sandbox.Backend, error) {
	if c, ok := j.scripts.Sandbox.(interface {
		Choose(context.Context) (sandbox.Backend, *sandbox.Report, error)
	}); ok {
		b, _, err := c.Choose(ctx)
		return b, err
	}
	return j.scripts.Sandbox, nil
}

// sandboxSpec returns the specification of the sandbox.
func (j *job) sandboxSpec(ctx context.Context, tier sandbox.Tier) (*sandbox.Spec, error) {
	s := &sandbox.Spec{Env: map[string]string{}, Limits: j.limits(), Digest: j.digest()}
	for _, p := range j.parts {
		at := sandbox.SkillDir
		if p.entry != j.entry {
			at = sandbox.NeedsDir + "/" + strings.ReplaceAll(p.entry.Name, "/", "_")
		}
		s.Trees = append(s.Trees, skillTree(at, p.bundle.FS, p.manifest))
	}
	inputs, err := inputTrees(j.run.Inputs)
	if err != nil {
		return nil, err
	}
	s.Trees = append(s.Trees, inputs...)
	if j.service != nil {
		s.Trees = append(s.Trees, j.service.trees()...)
	}
	for _, p := range j.scriptPlan.Prefixes {
		s.Mounts = append(s.Mounts, sandbox.Mount{Host: p, Path: p})
	}
	if j.run.Workspace != "" {
		if err := j.rt.CheckWorkspace(j.run.Workspace); err != nil {
			return nil, err
		}
		mountWorkspace(s, j.run.Workspace, j.effective.WorkspaceWrite)
	}
	if len(j.scriptPlan.Bin) > 0 {
		s.Env["PATH"] = strings.Join(j.scriptPlan.Bin, ":") + ":/usr/local/bin:/usr/bin:/bin"
	}
	maps.Copy(s.Env, j.scriptPlan.Env)
	if j.packages != nil {
		s.Mounts = append(s.Mounts, j.packages.Mounts...)
		maps.Copy(s.Env, j.packages.Env)
	}
	if j.scriptPlan.Kind == script.Python && j.project == nil {
		// Scripts that import each other through the skill's directory expect
		// to be started from there.
		s.Env["PYTHONPATH"] = strings.TrimPrefix(s.Env["PYTHONPATH"]+":"+sandbox.SkillDir, ":")
	}
	return s, j.configureNetwork(ctx, s, tier)
}

// skillTree returns the files of a skill as a tree.
func skillTree(at string, fsys fs.FS, m skill.Manifest) sandbox.Tree {
	t := sandbox.Tree{Path: at, FS: fsys}
	for _, f := range m {
		t.Files = append(t.Files, sandbox.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256, Exec: f.Script})
	}
	return t
}

// nodeProcesses multiplies the process limit for Node, which starts its own
// threads.
const nodeProcesses = 2

// limits returns the default limits of the sandbox, adjusted by the bounds.
// [Runtime.requestedBounds] ensures that none exceeds the operator's limit or
// the default.
func (j *job) limits() sandbox.Limits {
	l := sandbox.DefaultLimits()
	b := j.effective
	if b.MemoryMB > 0 {
		l.Memory = int64(b.MemoryMB) << 20
	}
	if b.Seconds > 0 {
		l.Wall = time.Duration(b.Seconds) * time.Second
		l.CPU = l.Wall
	}
	if j.scriptPlan.Kind == script.Node || j.scriptPlan.Kind == script.TypeScript {
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
		l.Wall, l.CPU = noTimeLimit, noTimeLimit
	}
	return l
}

// configureNetwork gives the sandbox the granted hosts and secrets.
func (j *job) configureNetwork(ctx context.Context, s *sandbox.Spec, tier sandbox.Tier) error {
	added := map[string]bool{}
	secrets, err := j.secretValues(ctx)
	if err != nil {
		return err
	}
	for _, in := range j.inject {
		sec, ok := secrets[in.Secret]
		if !ok {
			continue
		}
		// Only injection by the proxy was approved, so the code never gets the
		// secret instead.
		added[in.Secret] = true
		if j.hostNetwork || !policy.MatchHost(j.effective.Network, in.Host, in.Port) {
			j.note("secret %s is not added to requests to %s, which do not go through our proxy", in.Secret, in.Pattern())
			continue
		}
		s.Network.Inject = append(s.Network.Inject, sandbox.Injection{Host: in.Pattern(), Header: in.Header, Prefix: in.Prefix, Secret: sec})
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if !added[name] { // code needs no secrets that the proxy adds
			s.Secrets = append(s.Secrets, secrets[name])
		}
	}
	switch {
	case tier == sandbox.Limited: // this tier cannot restrict the network
		s.Network.Mode = sandbox.HostNetwork
	case j.hostNetwork:
		s.Network.Mode = sandbox.HostNetwork
		j.note("it had all of this machine's network")
	case len(j.effective.Network) > 0:
		s.Network.Mode, s.Network.Allow = sandbox.ProxyNetwork, j.effective.Network
		s.Network.Private, s.Network.Log = j.scripts.PrivateNetworks, j.scripts.Logger
	}
	return nil
}

// secretValues returns the values of the granted secrets.
func (j *job) secretValues(ctx context.Context) (map[string]sandbox.Secret, error) {
	out := map[string]sandbox.Secret{}
	for _, s := range j.run.Secrets {
		out[s.Name] = s
	}
	for _, name := range j.effective.Secrets {
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

// scriptCommand returns the command that runs the script in the sandbox.
func (j *job) scriptCommand(ctx context.Context, s *sandbox.Spec) (*sandbox.Cmd, error) {
	file := path.Join(sandbox.SkillDir, j.script)
	if j.scriptPlan.Kind == script.WASM {
		return j.wasmCommand(ctx, s, file)
	}
	return &sandbox.Cmd{Args: j.scriptPlan.Command(file, j.run.Args...)}, nil
}
