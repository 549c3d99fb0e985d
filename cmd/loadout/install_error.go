package main

import (
	"errors"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/signature"
)

// classifyInstallError returns the exit code and hint for an error about
// installed skills.
func classifyInstallError(err error) (code int, hint string, ok bool) {
	if e, is := errors.AsType[*installed.ConflictError](err); is {
		switch {
		case !e.Replaceable():
			return exit.Failure, "move it away: it is a symlink or a file, and was not installed by Loadout", true
		case e.InLockfile:
			return exit.Failure, "see your edits: loadout verify " + console.ShellQuote(e.Name) + "; to discard them: --force", true
		}
		return exit.Failure, "it was not installed by loadout add: move it away, or replace it with --force", true
	}
	if e, is := errors.AsType[*signature.ChangedKeyError](err); is {
		return exit.Refused, "ask the publisher, through another channel, for the fingerprint of their key; if it is the new one: loadout verify --forget " + console.ShellQuote(e.Source) + ", then remove the skill with loadout remove, and add it again", true
	}
	if e, is := errors.AsType[*signature.ExposedError](err); is {
		return exit.Refused, "chmod 600 " + console.ShellQuote(e.Path), true
	}
	switch {
	case isType[*signature.DamagedError](err):
		return exit.Refused, "do not use it; report it to its publisher", true
	case isType[*installed.LockfileError](err):
		return exit.Failure, "fix loadout.lock, or restore it from version control", true
	case isType[*installed.NameError](err):
		return exit.Usage, "give the name of a skill as loadout list shows it", true
	case isType[*installed.NotInstalledError](err):
		return exit.NotFound, "list the skills: loadout list", true
	case isType[*installed.DigestError](err):
		return exit.Refused, "the skill changed while it was read: try again", true
	case isType[*signature.KeyError](err):
		return exit.Refused, "ask the publisher, through another channel, for their key", true
	case isType[*signature.MismatchError](err):
		return exit.Refused, "do not use it: its files are not those its publisher signed; report it to them", true
	case isType[*install.SkillError](err):
		return exit.Failure, "check the installed skills: loadout list; then try again", true
	case errors.Is(err, install.ErrNoPins):
		return exit.Failure, "set LOADOUT_STATE to a directory of yours", true
	case errors.Is(err, signature.ErrUnsigned):
		return exit.Failure, "ask its publisher for a signed version", true
	case errors.Is(err, installed.ErrUnfinished):
		return exit.Failure, "if no other loadout is running there, loadout update completes it", true
	}
	return 0, "", false
}
