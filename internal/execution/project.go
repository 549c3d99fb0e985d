package execution

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
)

// Project is a directory with a configuration that defines commands. Only the
// configuration is trusted, so the commands can read the directory, mounted at
// /workspace, but not change it. They have no network access, no secrets, and
// only the environment variables in the configuration.
type Project struct {
	Dir    string        // absolute path
	Name   string        // display name of the command's owner; "" means Dir
	Subdir string        // slash-separated working directory relative to Dir; "" means Dir
	Digest policy.Digest // digest of the configuration
	// Check returns nil while the user trusts the configuration that the
	// command was read from. Its error says what the user can do. It is called
	// before the command starts, before each write to it, and every two seconds
	// while it runs. It must be safe for concurrent use.
	Check func(ctx context.Context) error
}

// trustInterval is the interval between trust checks while a service runs.
const trustInterval = 2 * time.Second

// projectTarget is the target of a request to start a project's command.
type projectTarget struct {
	owner
	r *Runner
	p *Project
}

// openProject returns the target for a project. It checks all requirements
// except trust.
func (r *Runner) openProject(p *Project) (target, error) {
	if p.Check == nil {
		return nil, fmt.Errorf("start command of project %q: Project.Check is nil", p.Dir)
	}
	t := projectTarget{owner{cmp.Or(p.Name, "project "+p.Dir), cmp.Or(p.Name, p.Dir), p.Digest}, r, p}
	if p.Subdir != "" && !filepath.IsLocal(filepath.FromSlash(p.Subdir)) {
		return nil, fmt.Errorf("%s: working directory %q is outside the project", t.label, p.Subdir)
	}
	return t, CheckWorkspace(p.Dir, r.opts.ProtectedDirs...)
}

func (t projectTarget) identity() owner      { return t.owner }
func (t projectTarget) opened() *openedSkill { return nil }
func (t projectTarget) close()               {}

func (t projectTarget) workingDir() string { return path.Join(mountpoint.Workspace, t.p.Subdir) }

// authorize checks whether the user trusts the project's configuration.
func (t projectTarget) authorize(ctx context.Context, c Caller, cmd *command) (*authorization, error) {
	a := &authorization{bounds: reduceBounds(policy.Bounds{}, t.r.opts.Bounds)}
	a.revokedError = func(ctx context.Context, cause error) error {
		if err := t.record(context.WithoutCancel(ctx), c, cmd, policy.Deny, cause.Error()); err != nil {
			return err
		}
		return fmt.Errorf("command not started: %w", cause)
	}
	if err := t.p.Check(ctx); err != nil {
		return nil, a.revokedError(ctx, err)
	}
	if err := t.record(ctx, c, cmd, policy.Allow, "its configuration is trusted"); err != nil {
		return nil, err
	}
	if err := checkIsolation(ctx, t.r.opts.Sandbox, t.owner, a.bounds.MinTier); err != nil {
		return nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	a.check = func() error {
		err := t.p.Check(held)
		if err != nil && held.Err() == nil {
			cancel(fmt.Errorf("%w: %w", execute.ErrDisabled, err))
		}
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { watchTrust(held, a.check) })
	a.ctx, a.release = held, func() { cancel(nil); watching.Wait() }
	return a, nil
}

// watchTrust calls check periodically until ctx is done. check must cancel
// ctx if the project is no longer trusted.
func watchTrust(ctx context.Context, check func() error) {
	tick := time.NewTicker(trustInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = check()
		}
	}
}

// record records a trust decision, like [authorizer.recordDecision] for skills.
func (t projectTarget) record(ctx context.Context, c Caller, cmd *command, decision, reason string) error {
	if t.r.opts.Audit == nil {
		return nil
	}
	err := t.r.opts.Audit(ctx, policy.Record{Principal: c.Principal, Action: "run", Subject: t.digest, Name: t.name, Decision: decision, Reason: reason,
		Details: map[string]string{"origin": "project", "command": cmd.name()}})
	if err != nil {
		return fmt.Errorf("record decision to start %s: %w", cmd.name(), err)
	}
	return nil
}

// plan returns the program that starts a project's command: a package, a file
// in the project, or a host program.
func (t projectTarget) plan(c *command) (*program, error) {
	p := t.r.planner(t.owner, nil)
	if c.pkg != nil {
		return p.planPackage(c.pkg)
	}
	word := c.words[0]
	own := strings.HasPrefix(word, mountpoint.Workspace+"/")
	if c.program() == "uv" {
		return nil, fmt.Errorf("%s: %w", t.label, &CommandError{"uv", "packages to install are not in the configuration: write uvx PACKAGE==VERSION, or python3 and a file of the project"})
	}
	if !strings.Contains(word, "/") || path.IsAbs(word) && !own {
		return p.planInterpreter(c.program(), c.words[1:])
	}
	if !own {
		word = path.Join(t.workingDir(), word)
	}
	if !t.hasFile(strings.TrimPrefix(word, mountpoint.Workspace+"/")) {
		return nil, fmt.Errorf("%s: %w", t.label, &CommandError{c.words[0], "file not found in the project: write a path in the project, or the name of a program"})
	}
	plan := &script.Plan{Kind: script.Other, Interpreter: word, Env: map[string]string{}}
	return &program{plan: plan, argv: append([]string{word}, c.words[1:]...)}, nil
}

func (t projectTarget) hasFile(name string) bool {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) {
		return false
	}
	_, err := os.Stat(filepath.Join(t.p.Dir, local))
	return err == nil
}
