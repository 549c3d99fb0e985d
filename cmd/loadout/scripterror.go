package main

import (
	"errors"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/auto"
	sandboxprocess "github.com/loadout-dev/loadout/sandbox/process"
)

// scriptError is the exit code and the next step for what a script or a sandbox
// lacks.
func scriptError(err error) (code int, hint string, ok bool) {
	if e, is := errors.AsType[*auto.NoneError](err); is {
		hint = "see: loadout sandbox probe"
		if fixes := e.Fixes(); len(fixes) > 0 {
			hint = strings.Join(fixes, "\n  or ")
		}
		return exitMissing, hint, true
	}
	if e, is := errors.AsType[*sandbox.UnavailableError](err); is {
		if e.Fix != "" {
			return exitMissing, e.Fix, true
		}
		return exitMissing, "see: loadout sandbox probe", true
	}
	if e, is := errors.AsType[*sandbox.UnsupportedError](err); is {
		if e.Fix != "" {
			return exitMissing, e.Fix, true
		}
		return exitMissing, "use another back end: loadout sandbox probe", true
	}
	if e, is := errors.AsType[*script.MissingError](err); is {
		return exitMissing, e.Hint, true
	}
	if isType[*sandboxprocess.NotAllowedError](err) {
		return exitRefused, "let this skill run without isolation, as it is now: loadout approve NAME --unsandboxed; or use another back end", true
	}
	if e, is := errors.AsType[*install.MissingToolError](err); is {
		return exitMissing, e.Hint, true
	}
	switch {
	case isType[*install.OfflineError](err):
		return exitMissing, "run it once where the registry can be reached, or set sandbox.python_index or sandbox.npm_registry to one that can", true
	case isType[*install.FailedError](err):
		return exitFound, "see what the installer said; packages without a wheel need sandbox.build_scripts", true
	case isType[*sandbox.ChangedError](err):
		return exitRefused, "run it again; if that says the same, somebody is changing the skill", true
	case isType[*script.ShebangError](err), isType[*script.NeedsError](err):
		return exitFound, "mend the skill, or ask its author", true
	case errors.Is(err, loadout.ErrWorkspace):
		return exitUsage, "name the directory of the project that they are to work on", true
	case errors.Is(err, loadout.ErrNoFolder):
		return exitNotFound, "leave out --folder, or make one: --folder new", true
	}
	return 0, "", false
}
