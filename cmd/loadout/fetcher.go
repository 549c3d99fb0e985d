package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

// fetcher reads remote skills and shows progress on a terminal. It implements
// [install.Source] and is not safe for concurrent use.
type fetcher struct {
	client *remote.Client
	meter  *meter
}

// newFetcher returns a fetcher with the user's settings and credentials.
func (a *app) newFetcher(c *config.Config) fetcher {
	m := a.newMeter()
	return fetcher{remote.New(&remote.Options{
		Private: func(host string) bool { return slices.Contains(c.Sources.Private, host) },
		Credential: func(ctx context.Context, host string) (*remote.Credential, error) {
			return a.hostCredential(ctx, c, host)
		},
		Progress: m.report,
	}), m}
}

// newLockFetcher returns a fetcher for the sources in a lockfile. The lockfile
// of a project is untrusted input unless trusted is set.
func (a *app) newLockFetcher(c *config.Config, to skillsDir, trusted bool) fetcher {
	if to.scope != "project" || trusted {
		return a.newFetcher(c)
	}
	m := a.newMeter()
	return fetcher{remote.New(&remote.Options{
		Untrusted:  true,
		Credential: func(ctx context.Context, host string) (*remote.Credential, error) { return a.hostToken(ctx, c, host) },
		Progress:   m.report,
	}), m}
}

// Open returns the skills at a location.
func (f fetcher) Open(ctx context.Context, at remote.Location) (*remote.Collection, error) {
	defer f.meter.begin("reading " + plain(at.String()))()
	c, err := f.client.Open(ctx, at)
	return c, install.WrapSource(at, err)
}

// Latest returns the current revision of a location.
func (f fetcher) Latest(ctx context.Context, at remote.Location) (*remote.Revision, error) {
	defer f.meter.begin("checking " + plain(at.String()))()
	rev, err := f.client.Latest(ctx, at)
	return rev, install.WrapSource(at, err)
}

// hostCredential returns the user's credential for a host: a token, or the
// result of Git's credential helpers. The helpers may return a credential for
// any host.
func (a *app) hostCredential(ctx context.Context, c *config.Config, host string) (*remote.Credential, error) {
	if t, err := a.hostToken(ctx, c, host); t != nil || err != nil {
		return t, err
	}
	return remote.UserCredential(ctx, host)
}

// hostToken returns the user's token for exactly this host: the secret in the
// configuration, or the usual environment variables.
func (a *app) hostToken(ctx context.Context, c *config.Config, host string) (*remote.Credential, error) {
	for _, entry := range c.Sources.Tokens {
		of, name, _ := strings.Cut(entry, "=")
		if !strings.EqualFold(of, host) {
			continue
		}
		token, err := a.SecretValue(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case token == "":
			return nil, exit.Errorf(exit.Missing, "loadout secret set "+name, "secret %s for %s (sources.tokens) is not set", name, host)
		}
		return &remote.Credential{User: "token", Password: token}, nil
	}
	return remote.EnvironmentCredential(host), nil
}

// parseLocation parses the location of skills as typed by the user.
func parseLocation(text string) (remote.Location, error) {
	dir, err := os.Getwd()
	if err != nil {
		return remote.Location{}, fmt.Errorf("find the working directory: %w", err)
	}
	l, err := remote.Parse(text, dir)
	if err != nil {
		return l, exit.Errorf(exit.Usage, "use owner/repo, owner/repo/dir@ref, https://example.com/repo.git, ./folder or skills.zip; see: loadout add --help", "%w", err)
	}
	return l, nil
}

// remoteNotFoundHint returns the next step if something does not exist at a
// source.
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
		return exit.Refused, "sign in to " + plain(e.Host) + " with git, set GH_TOKEN for github.com, or name a secret in sources.tokens of loadout.yaml", true
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
