package loadout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// Project is a directory with its own configuration of commands. The files
// beside that configuration were not reviewed. Therefore a command gets only
// read access to the directory, as [sandbox.WorkspaceDir]: no network, no
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

// trustInterval is the time between checks of trust in a running service.
const trustInterval = 2 * time.Second

// only returns s with only the fields that apply to a project.
func (p *Project) only(s Service) Service {
	return Service{Project: p, Command: s.Command, Env: s.Env, Redact: s.Redact, Principal: s.Principal, Session: s.Session, Progress: s.Progress, Workspace: p.Dir}
}

// owner returns the display name of the command's owner.
func (j *job) owner() string {
	switch {
	case j.project == nil:
		return "skill " + j.entry.Name
	case j.project.Name != "":
		return j.project.Name
	}
	return "project " + j.project.Dir
}

// recordName returns the owner for audit records.
func (j *job) recordName() string {
	if j.project == nil {
		return j.entry.Name
	}
	return cmp.Or(j.project.Name, j.project.Dir)
}

// workingDir returns the working directory of a service in the sandbox.
func (j *job) workingDir() string {
	if j.project != nil {
		return path.Join(sandbox.WorkspaceDir, j.project.Subdir)
	}
	return sandbox.SkillDir
}

// openProject checks the requirements that do not depend on trust.
func (j *job) openProject(context.Context) error {
	p := j.project
	if j.files = new(verifiedFS); p.Check == nil {
		return errors.New("serve a command of a project: nobody says whether it is trusted")
	}
	if p.Subdir != "" && !filepath.IsLocal(filepath.FromSlash(p.Subdir)) {
		return fmt.Errorf("%s: %q is not inside it", j.owner(), p.Subdir)
	}
	return j.rt.CheckWorkspace(p.Dir)
}

// authorizeProject is like authorize for a project: the user decided by
// trusting its configuration.
func (j *job) authorizeProject(ctx context.Context) (context.Context, func(), error) {
	if err := j.project.Check(ctx); err != nil {
		return nil, nil, j.projectRefusal(ctx, err)
	}
	if err := j.recordTrust(ctx, policy.VerdictAllow, "its configuration is trusted"); err != nil {
		return nil, nil, err
	}
	j.effective = j.rt.withinBounds(policy.Bounds{})
	if err := j.checkIsolation(ctx); err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	j.checkTrust = func() error {
		err := j.project.Check(held)
		if err != nil && held.Err() == nil {
			cancel(fmt.Errorf("%w: %w", sandbox.ErrDisabled, err))
		}
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { j.watchTrust(held) })
	return held, func() { cancel(nil); watching.Wait() }, nil
}

// watchTrust checks trust periodically, until it is revoked or held ends.
func (j *job) watchTrust(held context.Context) {
	tick := time.NewTicker(trustInterval)
	defer tick.Stop()
	for {
		select {
		case <-held.Done():
			return
		case <-tick.C:
			_ = j.checkTrust() // cancels held on failure
		}
	}
}

// projectRefusal returns the error for a project that is not or no longer
// trusted.
func (j *job) projectRefusal(ctx context.Context, why error) error {
	if err := j.recordTrust(context.WithoutCancel(ctx), policy.VerdictDeny, why.Error()); err != nil {
		return err
	}
	return fmt.Errorf("its command is not started: %w", why)
}

// recordTrust records a trust decision, as [job.recordDecision] does for
// skills.
func (j *job) recordTrust(ctx context.Context, decision, reason string) error {
	if j.scripts.Audit == nil {
		return nil
	}
	err := j.scripts.Audit.Append(ctx, policy.Record{Principal: j.run.Principal, Action: "run", Subject: j.project.Digest, Name: j.recordName(), Decision: decision, Reason: reason,
		Details: map[string]string{"origin": "project", "command": j.service.name()}})
	if err != nil {
		return fmt.Errorf("record the decision to start %s: %w", j.service.name(), err)
	}
	return nil
}

// planInProject determines how to start a command of a project: a file of the
// project, or a program of this machine.
func (j *job) planInProject() error {
	s := j.service
	program := s.words[0]
	own := strings.HasPrefix(program, sandbox.WorkspaceDir+"/")
	if s.program() == "uv" {
		return fmt.Errorf("%s: %w", j.owner(), &CommandError{"uv", "what it would install is not in the configuration: write uvx PACKAGE==VERSION, or python3 and a file of the project"})
	}
	if !strings.Contains(program, "/") || path.IsAbs(program) && !own {
		return j.planInterpreter(s.program(), s.words[1:])
	}
	if !own {
		program = path.Join(j.workingDir(), program)
	}
	name := strings.TrimPrefix(program, sandbox.WorkspaceDir+"/")
	inside := filepath.IsLocal(filepath.FromSlash(name))
	if inside {
		_, err := os.Stat(filepath.Join(j.project.Dir, filepath.FromSlash(name)))
		inside = err == nil
	}
	if !inside {
		return fmt.Errorf("%s: %w", j.owner(), &CommandError{s.words[0], "there is no such file in the project: write a path inside it, or the name of a program"})
	}
	j.scriptPlan = &script.Plan{Kind: script.Other, Interpreter: program, Env: map[string]string{}}
	s.argv = append([]string{program}, s.words[1:]...)
	return nil
}
