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

// Project is a directory whose own configuration says what is started. Nobody has
// looked at the files beside that configuration, so a command of it is given the
// directory to read, as [sandbox.WorkspaceDir], and nothing else: no network, no
// secrets, no variables but those of the configuration.
type Project struct {
	Dir    string        // an absolute path
	Name   string        // whose command it is, for people; "" is by Dir
	Sub    string        // where in it the command begins, with slashes; "" is Dir
	Digest policy.Digest // of the configuration
	// Check is nil as long as a person trusts the configuration as it was when the
	// command was read; the error says what they can do. It is asked before the
	// start, before anything is written to the command, and every two seconds, by
	// several goroutines.
	Check func(ctx context.Context) error
}

// trustInterval is how often trust is asked for while nobody calls.
const trustInterval = 2 * time.Second

// only is what counts of a service of the project.
func (p *Project) only(s Service) Service {
	return Service{Project: p, Command: s.Command, Env: s.Env, Redact: s.Redact, Principal: s.Principal, Session: s.Session, Progress: s.Progress, Workspace: p.Dir}
}

// owner is whose command it is, for people.
func (j *job) owner() string {
	switch {
	case j.project == nil:
		return "skill " + j.entry.Name
	case j.project.Name != "":
		return j.project.Name
	}
	return "project " + j.project.Dir
}

// name is owner for records.
func (j *job) name() string {
	if j.project == nil {
		return j.entry.Name
	}
	return cmp.Or(j.project.Name, j.project.Dir)
}

// directory is where a service begins.
func (j *job) directory() string {
	if j.project != nil {
		return path.Join(sandbox.WorkspaceDir, j.project.Sub)
	}
	return sandbox.SkillDir
}

// openProject checks what does not depend on trust.
func (j *job) openProject(context.Context) error {
	p := j.project
	if j.files = new(verified); p.Check == nil {
		return errors.New("serve a command of a project: nobody says whether it is trusted")
	}
	if p.Sub != "" && !filepath.IsLocal(filepath.FromSlash(p.Sub)) {
		return fmt.Errorf("%s: %q is not inside it", j.owner(), p.Sub)
	}
	return j.rt.CheckWorkspace(p.Dir)
}

// trusted is permit for a project: the decision was made when a person trusted it.
func (j *job) trusted(ctx context.Context) (context.Context, func(), error) {
	if err := j.project.Check(ctx); err != nil {
		return nil, nil, j.distrusted(ctx, err)
	}
	if err := j.recordTrust(ctx, policy.Allowed, "its configuration is trusted"); err != nil {
		return nil, nil, err
	}
	j.effect = j.rt.within(policy.Bounds{})
	if err := j.isolated(ctx); err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	j.check = func() error {
		err := j.project.Check(held)
		if err != nil && held.Err() == nil {
			cancel(fmt.Errorf("%w: %w", sandbox.ErrDisabled, err))
		}
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { j.watch(held) })
	return held, func() { cancel(nil); watching.Wait() }, nil
}

// watch asks for trust now and then, until it is withdrawn or held ends.
func (j *job) watch(held context.Context) {
	tick := time.NewTicker(trustInterval)
	defer tick.Stop()
	for {
		select {
		case <-held.Done():
			return
		case <-tick.C:
			_ = j.check() // which ends it
		}
	}
}

// distrusted is the answer where a project is not trusted, or not any more.
func (j *job) distrusted(ctx context.Context, why error) error {
	if err := j.recordTrust(context.WithoutCancel(ctx), policy.Denied, why.Error()); err != nil {
		return err
	}
	return fmt.Errorf("its command is not started: %w", why)
}

// recordTrust keeps a decision, as [job.decided] does for skills.
func (j *job) recordTrust(ctx context.Context, decision, reason string) error {
	if j.scripts.Audit == nil {
		return nil
	}
	err := j.scripts.Audit.Append(ctx, policy.Record{Principal: j.run.Principal, Action: "run", Subject: j.project.Digest, Name: j.name(), Decision: decision, Reason: reason,
		Details: map[string]string{"origin": "project", "command": j.service.name()}})
	if err != nil {
		return fmt.Errorf("record the decision to start %s: %w", j.service.name(), err)
	}
	return nil
}

// planInProject finds out how to start a command of a project: a file of it by its
// path, or a program of this machine.
func (j *job) planInProject() error {
	s := j.service
	program := s.words[0]
	own := strings.HasPrefix(program, sandbox.WorkspaceDir+"/")
	if s.program() == "uv" {
		return fmt.Errorf("%s: %w", j.owner(), &CommandError{"uv", "what it would install is not in the configuration: write uvx PACKAGE==VERSION, or python3 and a file of the project"})
	}
	if !strings.Contains(program, "/") || path.IsAbs(program) && !own {
		return j.interpreter(s.program(), s.words[1:])
	}
	if !own {
		program = path.Join(j.directory(), program)
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
	j.how = &script.Plan{Kind: script.Other, Interpreter: program, Env: map[string]string{}}
	s.argv = append([]string{program}, s.words[1:]...)
	return nil
}
