package execution

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/script"
)

const (
	// maxInstallTime is how long a command waits for each installation.
	maxInstallTime = 5 * time.Minute
	// retryInstall is the time after which commands try a failed installation again.
	retryInstall = 5 * time.Minute
)

// pythonWord matches an argument that starts Python.
var pythonWord = lazyregexp.New(`\b(i?python|pypy|pytest|py|uv)[0-9.]*\b`)

// errNotRequested is returned for packages that are not installed if the command
// does not start Python itself.
var errNotRequested = errors.New(`only a command with the word "python" or ".py" installs them; run such a command first`)

// skillNeeds are Python packages that a skill declares in one place.
type skillNeeds struct {
	skill string
	needs *script.Needs
}

// addNeeds adds the Python packages that an approved skill declares.
func (v *commandView) addNeeds(s *openedSkill) {
	var python []string
	for _, f := range s.main().manifest {
		if path.Ext(f.Path) == ".py" {
			python = append(python, f.Path)
		}
	}
	if len(python) > maxPythonFiles {
		v.addNote("skill %s: only %d of %d Python files are searched for packages", s.name, maxPythonFiles, len(python))
		python = python[:maxPythonFiles]
	}
	all, err := script.PythonNeeds(s.files, python, s.skill.Requirements)
	if err = s.checkUnchanged(err); err != nil {
		v.addNote("packages not installed: %v", err)
		return
	}
	for _, n := range all {
		v.needs = append(v.needs, skillNeeds{s.name, n})
	}
}

// addPackages adds the Python packages that the configuration and approved skills
// name. It installs them if necessary and if the command starts Python. If that
// fails, it adds those that the configuration names. If that fails too, the
// command runs without packages.
func (v *commandView) addPackages() {
	var merged script.PythonMerge
	configured, err := script.DeclaredPython("configured packages", v.runner.opts.CommandPackages)
	if err == nil {
		err = merged.Add(configured)
	}
	if err != nil {
		v.addNote("packages not installed: %v", err)
	}
	first := merged.Needs()
	var failed []string // skills
	for _, n := range v.needs {
		if err := merged.Add(n.needs); err != nil && !slices.Contains(failed, n.skill) {
			failed = append(failed, n.skill)
			v.addNote("skill %s: some packages not installed: %s: %v", n.skill, n.needs.Source, err)
		}
	}
	all := merged.Needs()
	if all == nil {
		return
	}
	if err = v.ensurePackages(all); err == nil {
		return
	}
	v.addNote("packages not installed: %v", v.withoutHostPaths(err))
	if first != nil && first.Digest != all.Digest && v.ensurePackages(first) == nil {
		v.addNote("only the configured packages are installed")
	}
}

// ensurePackages adds packages to the view. It installs them only if the command
// starts Python, and not if that failed recently.
func (v *commandView) ensurePackages(needs *script.Needs) error {
	plan, err := script.ResolvePython(needs, v.runner.opts.Host)
	if err != nil {
		return err
	}
	b, err := v.runner.installer.builder(needs)
	if err != nil {
		return err
	}
	p, err := b.Lookup(needs, nil, plan)
	if err != nil {
		if !v.usesPython() {
			return errNotRequested
		}
		failures, key := v.runner.opts.Failures, needs.Digest+" "+plan.Argv[0]
		if err := failures.recent(key); err != nil {
			return fmt.Errorf("%w (tried at most every %v)", err, retryInstall)
		}
		ctx, cancel := context.WithTimeoutCause(v.ctx, maxInstallTime, fmt.Errorf("installation took longer than %v", maxInstallTime))
		defer cancel()
		p, err = b.Ensure(ctx, needs, nil, plan, v.logProgress)
		if v.ctx.Err() == nil { // otherwise, the command was cancelled
			failures.record(key, err)
		}
		if err != nil {
			return err
		}
	}
	v.plan, v.packages = plan, p
	return nil
}

// logProgress logs a step of an installation.
func (v *commandView) logProgress(what string) {
	if l := v.runner.opts.Logger; l != nil {
		l.Info("install packages for a command", slog.String("step", what))
	}
}

// withoutHostPaths logs err, and returns an error for the model that contains no
// paths of the host.
func (v *commandView) withoutHostPaths(err error) error {
	if err == errNotRequested {
		return err
	}
	if l := v.runner.opts.Logger; l != nil {
		l.Warn("packages for a command not installed", slog.Any("error", err))
	}
	if e, ok := errors.AsType[*script.MissingError](err); ok {
		return &script.MissingError{Interpreter: e.Interpreter, For: e.For, Hint: e.Hint}
	}
	if e, ok := errors.AsType[*packages.MissingToolError](err); ok {
		return &packages.MissingToolError{Tool: e.Tool, Needs: e.Needs, Hint: e.Hint}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	return err
}

// InstallFailures remembers the packages whose installation failed for a command,
// so that the next commands do not wait for it again. The zero value is empty. It
// is safe for concurrent use. A nil *InstallFailures remembers nothing.
type InstallFailures struct {
	mu     sync.Mutex
	failed map[string]failure
}

type failure struct {
	at  time.Time
	err error
}

// recent returns the error with which an installation failed recently, or nil.
func (f *InstallFailures) recent(key string) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.failed, func(_ string, last failure) bool { return time.Since(last.at) >= retryInstall })
	return f.failed[key].err
}

// record records the result of an installation.
func (f *InstallFailures) record(key string, err error) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failed, key)
	if err != nil {
		if f.failed == nil {
			f.failed = map[string]failure{}
		}
		f.failed[key] = failure{time.Now(), err}
	}
}
