// Package detonation runs the scripts of a skill in a sandbox with decoy
// secrets, and reports what they do with them. Start with [Run].
//
// The scripts see none of the user's files, variables and hosts: the home
// directory and the environment contain decoys with random tokens, and the
// sandbox's proxy answers each request itself. So the package needs no network
// access. What scripts do without the proxy, such as raw connections, fails and
// is not observed. A script can also detect the decoys, and behave.
package detonation

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// Default limits; see [Options].
const (
	DefaultTimeout = 10 * time.Second
	DefaultScripts = 20
)

// minTier is the lowest tier of a sandbox that hides the user's files.
const minTier = sandbox.Confined

// Options configures [Run].
type Options struct {
	Backend sandbox.Backend
	Host    script.Host
	// Timeout limits all runs of one script together. The default is
	// [DefaultTimeout].
	Timeout time.Duration
	// Scripts is the maximum number of scripts to run. The default is
	// [DefaultScripts].
	Scripts int
}

// Report describes the runs of a skill's scripts.
type Report struct {
	Backend string    `json:"backend"` // "" if nothing was run
	Runs    []Attempt `json:"runs"`
	Skipped []Skipped `json:"skipped"` // scripts that were not run

	Findings []scan.Finding `json:"-"`
}

// Attempt is one run of a script.
type Attempt struct {
	Script   string   `json:"script"`
	Args     []string `json:"args"`
	ExitCode int      `json:"exit_code"`
	Reason   string   `json:"reason"` // of the exit, as in package sandbox
	// Hosts lists the requested hosts with ports, sorted.
	Hosts []string `json:"hosts"`
	// Incomplete is the reason why the run may not show what the script does,
	// or "".
	Incomplete string `json:"incomplete"`
}

// Skipped is a script that was not run.
type Skipped struct {
	Script string `json:"script"`
	Reason string `json:"reason"`
}

// detonator runs the scripts of one skill.
type detonator struct {
	*Options
	files    fs.FS
	manifest skill.Manifest
	decoys   *decoys
	hosts    map[string]bool // named in SKILL.md
	report   *Report
	findings map[findingKey]*evidence
}

// Run runs the scripts of a skill: each without arguments, with --help, and
// with an input file. source is the text of SKILL.md, and manifest lists the
// files. The error matches [*sandbox.UnavailableError] or
// [*sandbox.UnsupportedError] if no suitable sandbox is available, or is the
// cause of ctx.
func Run(ctx context.Context, files fs.FS, manifest skill.Manifest, s *skill.Skill, source []byte, o *Options) (*Report, error) {
	d := &detonator{Options: o, files: files, manifest: manifest, decoys: newDecoys(skillText(files, manifest)), hosts: namedHosts(source),
		report: &Report{Runs: []Attempt{}, Skipped: []Skipped{}}, findings: map[findingKey]*evidence{}}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Scripts <= 0 {
		o.Scripts = DefaultScripts
	}
	addShims(d.decoys.home)
	scripts := d.scripts()
	if len(scripts) > 0 {
		if err := d.checkBackend(ctx); err != nil {
			return nil, err
		}
	}
	for i, name := range scripts {
		if i >= o.Scripts {
			d.skip(name, fmt.Sprintf("too many scripts (limit %d)", o.Scripts))
			continue
		}
		if err := d.runScript(ctx, name, s.Requirements); err != nil {
			return nil, err
		}
	}
	d.report.Findings = d.collectFindings()
	return d.report, nil
}

// checkBackend returns an error if the backend does not hide the user's files on this
// machine.
func (d *detonator) checkBackend(ctx context.Context) error {
	probed, err := d.Backend.Probe(ctx)
	if err != nil {
		return err
	}
	if probed.Tier < minTier {
		return &sandbox.UnsupportedError{Backend: d.Backend.Name(), What: "running unapproved code: it does not hide the user's files", Fix: "see which backends do: loadout sandbox probe"}
	}
	return nil
}

// scripts returns the scripts of the skill, those in scripts/ first.
func (d *detonator) scripts() []string {
	all := script.Scripts(d.files, d.manifest)
	var first, others []string
	for _, name := range all {
		if strings.HasPrefix(name, "scripts/") {
			first = append(first, name)
		} else {
			others = append(others, name)
		}
	}
	return append(first, others...)
}

func (d *detonator) skip(name, reason string) {
	d.report.Skipped = append(d.report.Skipped, Skipped{name, reason})
}

// runScript runs a script with each list of arguments.
func (d *detonator) runScript(ctx context.Context, name string, requirements []string) error {
	plan, err := script.Resolve(d.files, name, d.Host, requirements...)
	switch {
	case err != nil:
		d.skip(name, err.Error())
		return nil
	case plan.Kind == script.WASM:
		d.skip(name, "WebAssembly modules are not run")
		return nil
	}
	deadline := time.Now().Add(d.Timeout)
	for _, args := range [][]string{{}, {"--help"}, {mountpoint.Work + "/" + inputFile}} {
		left := time.Until(deadline)
		if left < time.Second {
			d.skip(name+" "+strings.Join(args, " "), fmt.Sprintf("timeout of %v exceeded", d.Timeout))
			continue
		}
		if err := d.run(ctx, plan, args, left); err != nil {
			return err
		}
	}
	return nil
}

// run runs a script once, in its own sandbox.
func (d *detonator) run(ctx context.Context, plan *script.Plan, args []string, timeout time.Duration) error {
	w := &recorder{marker: "." + newToken()}
	spec := d.spec(plan, w, timeout)
	home := &homeChanges{before: d.decoys.home, after: map[string]bool{}}
	// The sandbox ends with the command, so a program in the background gets half a second.
	command := plan.Command(mountpoint.Skill+"/"+plan.Script, args...)
	cmd := &sandbox.Cmd{Args: append([]string{"/bin/sh", "-c", `"$@"; status=$?; sleep 0.5; exit $status`, "sh"}, command...)}
	box, err := d.Backend.Start(ctx, spec)
	if err != nil {
		return err
	}
	defer box.Close()
	res, err := execute.RunIn(ctx, box, spec, cmd, &execute.Options{Collect: home.add})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", plan.Script, err)
	}
	if err := box.Close(); err != nil { // waits for requests that are being answered
		return fmt.Errorf("end the sandbox of %s: %w", plan.Script, err)
	}
	d.report.Backend = d.Backend.Name()
	requests := w.all()
	at := Attempt{Script: plan.Script, Args: args, ExitCode: res.ExitCode, Reason: string(res.Reason), Hosts: requestedHosts(requests), Incomplete: incomplete(plan, res, home, w)}
	d.decoys.startRun(ctx)
	d.observe(&at, res, requests, home, w.marker)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d.decoys.cut && at.Incomplete == "" {
		at.Incomplete = "too much data to search"
	}
	d.report.Runs = append(d.report.Runs, at)
	return nil
}

// incomplete returns the reason why a run may not show what the script does.
func incomplete(plan *script.Plan, res *execute.Result, home *homeChanges, w *recorder) string {
	switch {
	case res.Reason == sandbox.Timeout || res.Killed || res.Reason == sandbox.StartFailed:
		return cmp.Or(res.Detail, string(res.Reason))
	case w.dropped:
		return "too many requests"
	case home.cut:
		return "too many or too large files"
	case res.Truncated:
		return "too much output"
	case !home.after[traceFile]:
		return "the record of replaced programs was deleted"
	case plan.Needs != nil && res.ExitCode != 0:
		return "packages of the script are not installed"
	case res.ExitCode == 127 || bytes.Contains(res.Stderr, []byte("ModuleNotFoundError")) || bytes.Contains(res.Stderr, []byte("Cannot find module")):
		return "a program or package is missing"
	}
	return ""
}

// spec returns the sandbox for one run.
func (d *detonator) spec(plan *script.Plan, w *recorder, timeout time.Duration) *sandbox.Spec {
	s := &sandbox.Spec{Env: maps.Clone(d.decoys.env), Limits: prepare.DefaultLimits(), Trees: append(d.decoys.trees(), sandbox.Tree{Path: mountpoint.Skill, FS: d.files, Files: treeFiles(d.manifest)}),
		Network: sandbox.Network{Allow: []string{"*"}, Answer: w.answer}}
	s.Limits.Wall, s.Limits.CPU, s.Limits.Output = timeout, max(timeout.Truncate(time.Second), time.Second), 256<<10
	if plan.Kind == script.Node || plan.Kind == script.TypeScript {
		s.Limits.Processes *= 2 // Node starts its own threads
		s.Env["NODE_OPTIONS"] = nodeOptions
	}
	for _, prefix := range plan.Prefixes {
		s.Mounts = append(s.Mounts, sandbox.Mount{Host: prefix, Path: prefix})
	}
	maps.Copy(s.Env, plan.Env)
	s.Env["PATH"] = strings.Join(append([]string{mountpoint.Work + "/" + shimDir}, plan.Bin...), ":") + ":/usr/local/bin:/usr/bin:/bin"
	if plan.Kind == script.Python {
		s.Env["PYTHONPATH"] = strings.TrimPrefix(s.Env["PYTHONPATH"]+":"+mountpoint.Skill, ":")
	}
	return s
}

func treeFiles(m skill.Manifest) []sandbox.File {
	out := make([]sandbox.File, len(m))
	for i, f := range m {
		out[i] = sandbox.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256, Exec: f.Script}
	}
	return out
}

// describe describes a run for the excerpt of a finding.
func (a *Attempt) describe() string {
	if len(a.Args) == 0 {
		return "without arguments"
	}
	return "with " + path.Base(a.Args[0])
}
