package main

import (
	"errors"

	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/signature"
)

// installError is the exit code and the next step for what stands in the way of a
// change of installed skills.
func installError(err error) (code int, hint string, ok bool) {
	if e, is := errors.AsType[*installed.ConflictError](err); is {
		switch {
		case !e.Replaceable():
			return exitFound, "it is a link or a file, and not Loadout's: move it away", true
		case e.Locked:
			return exitFound, "see what you have edited: loadout verify " + quoted(e.Name) + "; to lose it: --force", true
		}
		return exitFound, "loadout add did not bring it: move it away, or replace it with --force", true
	}
	if e, is := errors.AsType[*signature.ChangedKeyError](err); is {
		return exitRefused, "ask the publisher, by another way than that place, for the fingerprint of their key; if it is the new one: loadout verify --forget " + quoted(e.Source) + ", then loadout remove the skill, and add it again", true
	}
	if e, is := errors.AsType[*signature.ExposedError](err); is {
		return exitRefused, "chmod 600 " + quoted(e.Path), true
	}
	switch {
	case isType[*signature.DamagedError](err):
		return exitRefused, "do not use it; tell its publisher", true
	case isType[*installed.LockError](err):
		return exitFound, "mend loadout.lock, or take it from version control again", true
	case isType[*installed.NameError](err):
		return exitUsage, "give the name of a skill, as loadout list shows it", true
	case isType[*installed.NotInstalledError](err):
		return exitNotFound, "see what there is and where: loadout list", true
	case isType[*installed.DigestError](err):
		return exitRefused, "it changed while it was read: try again", true
	case isType[*signature.KeyError](err):
		return exitRefused, "ask the publisher, by another way than the skill's, which key is theirs", true
	case isType[*signature.MismatchError](err):
		return exitRefused, "do not use it: its files are not what its publisher signed; tell them", true
	case errors.Is(err, signature.ErrUnsigned):
		return exitFound, "ask its publisher for a signed one", true
	case errors.Is(err, installed.ErrUnfinished):
		return exitFound, "if no other loadout is at work there, loadout update finishes it", true
	}
	return 0, "", false
}
