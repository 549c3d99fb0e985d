package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/client"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/sandbox/auto"
	"github.com/loadout-dev/loadout/skill"
)

// Exit codes. They are part of the contract with scripts.
const (
	exitOK          = 0
	exitFound       = 1 // it ran and found something wrong
	exitUsage       = 2
	exitRefused     = 3 // by policy
	exitNotFound    = 4
	exitMissing     = 5 // a needed component
	exitInterrupted = 130
)

// exitError is an error with an exit code and the next step.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func fail(code int, hint, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...), hint}
}

// errFound says by its exit code alone that something is wrong: it was printed.
var errFound = &exitError{code: exitFound}

// report prints an error with its next step and returns the exit code.
func (a *app) report(err error) int {
	code, hint := exitFound, ""
	if e, ok := errors.AsType[*exitError](err); ok {
		code, hint = e.code, e.hint
		if e.err == nil {
			return code
		}
	} else {
		code, hint = a.classify(err)
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
	text = strings.TrimSuffix(text, "; "+plain(hint)) // it is said below
	fmt.Fprintf(a.stderr, "loadout: %s\n  %s\n", text, plain(hint))
	return code
}

// classify is the one place where errors of the packages become exit codes.
func (a *app) classify(err error) (code int, hint string) {
	if e, ok := errors.AsType[*catalog.NotFoundError](err); ok {
		return exitNotFound, a.notFoundHint(e)
	}
	if hint := a.ownPlace(err); hint != "" {
		return exitFound, hint
	}
	for _, of := range []func(error) (int, string, bool){a.runError, lookupError, installError} {
		if code, hint, ok := of(err); ok {
			return code, hint
		}
	}
	switch {
	case isType[*config.Error](err):
		return exitUsage, "the keys and their defaults: loadout config example"
	case isType[*catalog.BrokenError](err), isType[*catalog.DependencyError](err):
		return exitFound, "see what is wrong: loadout doctor" + a.flags()
	case isType[*skill.RefusedError](err):
		return exitFound, "make it smaller, or mend what is named; the limits are those of a hub"
	case errors.Is(err, client.ErrUnsupported), errors.Is(err, client.ErrUnknown):
		return exitUsage, "see: loadout connect --help"
	case errors.Is(err, fs.ErrNotExist):
		return exitNotFound, "check the path"
	case errors.Is(err, fs.ErrPermission):
		return exitFound, "check that you have the right to it"
	}
	return exitFound, "for more of what goes on, run it again with --verbose; or see: loadout doctor"
}

// ownPlace is the next step where a place of our own cannot be used, else "".
func (a *app) ownPlace(err error) string {
	if none, ok := errors.AsType[*auto.NoneError](err); ok && len(none.Outcomes) == 1 {
		err = none.Outcomes[0].Err // of the back end that is named
	}
	pe, isPath := errors.AsType[*fs.PathError](err)
	if _, isLink := errors.AsType[*os.LinkError](err); !isPath && !isLink && !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	for _, p := range []struct{ dir, variable, what string }{
		{a.stateDir(), "LOADOUT_STATE", "approvals and the log of runs"},
		{a.cacheDir(), "LOADOUT_CACHE", "packages and copies of skills"},
	} {
		if p.dir == "" || p.dir == filepath.Dir(p.dir) {
			continue
		}
		// A directory above it that cannot be written is named by itself.
		if strings.Contains(err.Error(), p.dir) || isPath && filepath.IsAbs(pe.Path) && strings.HasPrefix(p.dir, pe.Path+string(filepath.Separator)) && pe.Op == "mkdir" {
			return "set " + p.variable + " to a directory that is yours and can be written: " + p.what + " are kept there"
		}
	}
	return ""
}

func (a *app) notFoundHint(e *catalog.NotFoundError) string {
	switch {
	case strings.Contains(e.Reason, "skills.enabled"):
		return "see where that is set: loadout config show" + a.flags()
	case e.Reason != "" && plain(e.Ref) == e.Ref:
		return "see why: loadout explain " + quoted(e.Ref) + a.profileFlags()
	}
	if _, err := os.Stat(e.Ref); err == nil && len(a.skills) == 0 {
		return "for a skill that is at a path: loadout show NAME --skills " + quoted(e.Ref)
	}
	if !skill.PortableName(e.Ref) {
		return "see what there is: loadout list" + a.profileFlags()
	}
	return "see what there is: loadout list" + a.profileFlags() + "; or search: loadout search " + quoted(e.Ref) + a.profileFlags()
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// reason is the cause of a file error without its path.
func reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}

// missing is the exit code and the next step for a file that was named and
// cannot be opened.
func missing(err error, what string) (code int, hint string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitNotFound, "check " + what
	case errors.Is(err, fs.ErrPermission):
		return exitFound, "check that you have the right to read it"
	}
	return exitFound, "check " + what
}
