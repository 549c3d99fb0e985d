package main

import (
	"errors"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/packages"
	sandboxprocess "github.com/loadout-dev/loadout/internal/sandbox/process"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

// classifyScriptError returns the exit code and hint for errors of scripts and
// sandboxes.
func classifyScriptError(err error) (code int, hint string, ok bool) {
	if e, is := errors.AsType[*selection.NoBackendError](err); is {
		hint = "see: loadout sandbox probe"
		if fixes := e.Fixes(); len(fixes) > 0 {
			hint = strings.Join(fixes, "\n  or ")
		}
		return exit.Missing, hint, true
	}
	if e, is := errors.AsType[*sandbox.UnavailableError](err); is {
		if e.Fix != "" {
			return exit.Missing, e.Fix, true
		}
		return exit.Missing, "see: loadout sandbox probe", true
	}
	if e, is := errors.AsType[*sandbox.UnsupportedError](err); is {
		if e.Fix != "" {
			return exit.Missing, e.Fix, true
		}
		return exit.Missing, "use another backend: loadout sandbox probe", true
	}
	if e, is := errors.AsType[*script.MissingError](err); is {
		return exit.Missing, e.Hint, true
	}
	if isType[*sandboxprocess.NotAllowedError](err) {
		return exit.Refused, "allow the current version of the skill to run without isolation: loadout approve NAME --unsandboxed; or use another backend", true
	}
	if e, is := errors.AsType[*packages.MissingToolError](err); is {
		return exit.Missing, e.Hint, true
	}
	switch {
	case isType[*packages.OfflineError](err):
		return exit.Missing, "run it once with access to the registry, or set sandbox.python_index or sandbox.npm_registry to a reachable one", true
	case isType[*packages.FailedError](err):
		return exit.Failure, "see the output of the installer; packages without a wheel need sandbox.build_scripts", true
	case isType[*sandbox.ChangedError](err):
		return exit.Refused, "run it again; if the error repeats, find out what changes the skill", true
	case isType[*script.ShebangError](err), isType[*script.NeedsError](err):
		return exit.Failure, "fix the skill, or report it to its author", true
	case errors.Is(err, loadout.ErrWorkspace):
		return exit.Usage, "name the project directory to work on", true
	case errors.Is(err, loadout.ErrNoFolder):
		return exit.NotFound, "omit --folder, or create one: --folder new", true
	}
	return 0, "", false
}
