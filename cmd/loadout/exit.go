package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
)

// reportError prints an error with its hint and returns the exit code.
func (a *app) reportError(err error) int {
	code, hint := exit.Failure, ""
	if e, ok := errors.AsType[*exit.Error](err); ok {
		code, hint = e.Code, e.Hint
		if e.Err == nil {
			return code
		}
	} else {
		code, hint = a.classifyError(err)
	}
	text := plain(err.Error())
	if e, ok := errors.AsType[*config.Error](err); ok {
		text = "configuration: "
		for i, f := range e.Faults {
			if i > 0 {
				text += "\n  "
			}
			text += plain(f)
		}
	}
	text = strings.TrimSuffix(text, "; "+plain(hint)) // printed below
	fmt.Fprintf(a.Stderr, "loadout: %s\n  %s\n", text, hintLine(hint))
	return code
}

// classifyError returns the exit code and hint for an error from any package.
func (a *app) classifyError(err error) (code int, hint string) {
	if e, ok := errors.AsType[*catalog.NotFoundError](err); ok {
		return exit.NotFound, a.notFoundHint(e)
	}
	if hint := a.ownDirHint(err); hint != "" {
		return exit.Failure, hint
	}
	for _, of := range []func(error) (int, string, bool){a.classifyRunError, classifyRemoteError, classifyInstallError} {
		if code, hint, ok := of(err); ok {
			return code, hint
		}
	}
	switch {
	case isType[*config.Error](err):
		return exit.Usage, "list the keys and their defaults: loadout config example"
	case isType[*catalog.BrokenError](err), isType[*catalog.DependencyError](err):
		return exit.Failure, "see the problems: loadout doctor" + a.SkillFlags()
	case isType[*skill.RefusedError](err):
		return exit.Failure, "shrink it, or fix the named file; these are the limits of a hub"
	case errors.Is(err, clientconfig.ErrUnsupported), errors.Is(err, clientconfig.ErrUnknown):
		return exit.Usage, "see: loadout connect --help"
	case errors.Is(err, fs.ErrNotExist):
		return exit.NotFound, "check the path"
	case errors.Is(err, fs.ErrPermission):
		return exit.Failure, "check the permissions of the file"
	}
	return exit.Failure, "for details run it again with --verbose, or see: loadout doctor"
}

// ownDirHint returns the next step if one of Loadout's own directories is
// unusable, or "".
func (a *app) ownDirHint(err error) string {
	if none, ok := errors.AsType[*selection.NoBackendError](err); ok && len(none.Outcomes) == 1 {
		err = none.Outcomes[0].Err // the configured backend
	}
	pe, isPath := errors.AsType[*fs.PathError](err)
	if _, isLink := errors.AsType[*os.LinkError](err); !isPath && !isLink && !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	for _, p := range []struct{ dir, variable, what string }{
		{a.StateDir(), "LOADOUT_STATE", "approvals and the log of runs"},
		{a.CacheDir(), "LOADOUT_CACHE", "packages and copies of skills"},
	} {
		if p.dir == "" || p.dir == filepath.Dir(p.dir) {
			continue
		}
		// The error may name only the unwritable parent directory.
		if strings.Contains(err.Error(), p.dir) || isPath && filepath.IsAbs(pe.Path) && strings.HasPrefix(p.dir, pe.Path+string(filepath.Separator)) && pe.Op == "mkdir" {
			return "set " + p.variable + " to a directory you can write to; it holds " + p.what
		}
	}
	return ""
}

func (a *app) notFoundHint(e *catalog.NotFoundError) string {
	switch {
	case strings.Contains(e.Reason, "skills.enabled"):
		return "see where that is set: loadout config show" + a.SkillFlags()
	case e.Reason != "" && plain(e.Ref) == e.Ref:
		return "see why: loadout explain " + console.ShellQuote(e.Ref) + a.ProfileFlags()
	}
	if _, err := os.Stat(e.Ref); err == nil && len(a.Skills) == 0 {
		return "to use a skill at a path: loadout show NAME --skills " + console.ShellQuote(e.Ref)
	}
	if !skillname.IsPortable(e.Ref) {
		return "list the skills: loadout list" + a.ProfileFlags()
	}
	return "list the skills: loadout list" + a.ProfileFlags() + "; or search: loadout search " + console.ShellQuote(e.Ref) + a.ProfileFlags()
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
