package main

import (
	"errors"
	"strings"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

// remoteNotFoundHint returns the next step if a source does not have what was
// requested.
func remoteNotFoundHint(e *remote.NotFoundError) string {
	what, _, _ := strings.Cut(e.What, " ")
	switch what {
	case "repository":
		return "check the spelling; if it is private: sign in with git, set GH_TOKEN for github.com, or name a secret in sources.tokens"
	case "branch", "commit":
		return "list the refs: git ls-remote; to choose a skill of a repository use --skill NAME, not @"
	case "directory", "skill":
		return "list the skills of the source: loadout add SOURCE --dry-run"
	}
	return "check the spelling"
}

// deniedHint returns the next step if a host refuses access.
func deniedHint(e *remote.DeniedError) string {
	const hub = "for a hub, set LOADOUT_HUB to its address and LOADOUT_HUB_TOKEN to a token from its page"
	if e.CredentialSent {
		return "the token or password may be wrong, expired or revoked, or lack permission; " + hub
	}
	return "sign in to " + plain(e.Host) + " with git, set GH_TOKEN for github.com, or name a secret in sources.tokens of loadout.yaml; " + hub
}

// classifyRemoteError returns the exit code and hint for a source that cannot
// be read.
func classifyRemoteError(err error) (code int, hint string, ok bool) {
	if e, is := errors.AsType[*remote.AddressError](err); is && e.AlwaysBlocked {
		return exit.Refused, "this address is never allowed: find out where it comes from", true
	} else if is {
		return exit.Refused, "if the host is yours, allow it: sources.private in loadout.yaml, or LOADOUT_SOURCES_PRIVATE=" + console.ShellQuote(e.Host) + "; if the loadout.lock of a project names it, add --trust", true
	}
	if isType[*remote.UntrustedError](err) {
		return exit.Refused, "it comes from the loadout.lock of this project; if you trust the source, add --trust", true
	}
	if e, is := errors.AsType[*remote.DeniedError](err); is {
		return exit.Refused, deniedHint(e), true
	}
	if e, is := errors.AsType[*remote.NotFoundError](err); is {
		return exit.NotFound, remoteNotFoundHint(e), true
	}
	switch {
	case isType[*remote.DigestError](err):
		return exit.Refused, "report it to the publisher of the index; nothing was installed", true
	case errors.Is(err, remote.ErrNoGit):
		return exit.Missing, "install git, and try again", true
	case isType[*remote.StatusError](err):
		return exit.Failure, "try again later", true
	case isType[*remote.TooLargeError](err):
		return exit.Refused, "use a part of it: a directory of the repository, or a smaller archive", true
	case isType[*install.SourceError](err) && !isType[*skill.RefusedError](err):
		return exit.Failure, "nothing was changed; check the connection and the address, and try again", true
	}
	return 0, "", false
}
