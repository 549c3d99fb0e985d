package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// fetcher looks for skills elsewhere, and says on a terminal what it does. It is used by
// one goroutine.
type fetcher struct {
	client *remote.Client
	meter  *meter
}

// fetcher is one with what the person allows and has.
func (a *app) fetcher(c *config.Config) fetcher {
	m := a.meter()
	return fetcher{remote.New(&remote.Options{
		Private:    func(host string) bool { return slices.Contains(c.Sources.Private, host) },
		Credential: func(ctx context.Context, host string) (*remote.Credential, error) { return a.credential(ctx, c, host) },
		Progress:   m.report,
	}), m}
}

// fetcherFor is one for what the lock of a place names: in a project that is whatever
// somebody else wrote there, unless the person trusts it.
func (a *app) fetcherFor(c *config.Config, to place, trusted bool) fetcher {
	if to.scope != "project" || trusted {
		return a.fetcher(c)
	}
	m := a.meter()
	return fetcher{remote.New(&remote.Options{
		Untrusted:  true,
		Credential: func(ctx context.Context, host string) (*remote.Credential, error) { return a.token(ctx, c, host) },
		Progress:   m.report,
	}), m}
}

func (f fetcher) look(ctx context.Context, at remote.Location) (*remote.Offer, error) {
	defer f.meter.begin("looking at " + plain(at.String()))()
	offer, err := f.client.Look(ctx, at)
	return offer, away(at, err)
}

func (f fetcher) latest(ctx context.Context, at remote.Location) (*remote.Revision, error) {
	defer f.meter.begin("asking " + plain(at.String()))()
	rev, err := f.client.Latest(ctx, at)
	return rev, away(at, err)
}

// awayError is an error of another machine, or of the way to it.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

func away(at remote.Location, err error) error {
	if err == nil || at.Kind == remote.Local {
		return err
	}
	return &awayError{err}
}

// credential is what the person has for a host: a token, else what git's own helpers
// have, which may have something for every host that they are asked about.
func (a *app) credential(ctx context.Context, c *config.Config, host string) (*remote.Credential, error) {
	if t, err := a.token(ctx, c, host); t != nil || err != nil {
		return t, err
	}
	return remote.Personal(ctx, host)
}

// token is what the person has for this very host: a secret that the configuration names
// for it, else what is in the usual variables.
func (a *app) token(ctx context.Context, c *config.Config, host string) (*remote.Credential, error) {
	for _, entry := range c.Sources.Tokens {
		of, name, _ := strings.Cut(entry, "=")
		if !strings.EqualFold(of, host) {
			continue
		}
		token, err := a.secret(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case token == "":
			return nil, fail(exitMissing, "loadout secret set "+name, "the secret %s, which sources.tokens has for %s, is not set", name, host)
		}
		return &remote.Credential{User: "token", Password: token}, nil
	}
	return remote.Token(host), nil
}

// locate reads what a person wrote as a place of skills.
func locate(text string) (remote.Location, error) {
	dir, err := os.Getwd()
	if err != nil {
		return remote.Location{}, fmt.Errorf("find the working directory: %w", err)
	}
	l, err := remote.Parse(text, dir)
	if err != nil {
		return l, fail(exitUsage, "as owner/repo, owner/repo/dir@ref, https://example.com/repo.git, ./folder or skills.zip; see: loadout add --help", "%w", err)
	}
	return l, nil
}

// notFoundNext is the next step where something is not at its place.
func notFoundNext(e *remote.NotFoundError) string {
	what, _, _ := strings.Cut(e.What, " ")
	switch what {
	case "repository":
		return "check how it is written; if it is private: sign in with git, set GH_TOKEN for github.com, or name a secret in sources.tokens"
	case "branch", "commit":
		return "see which there are: git ls-remote; a skill of a repository is chosen with --skill NAME, not with @"
	case "directory", "skill":
		return "see what is there: loadout add with the place alone, and --dry-run"
	}
	return "check how it is written"
}

// lookupError is the exit code and the next step for a place that cannot be had.
func lookupError(err error) (code int, hint string, ok bool) {
	if e, is := errors.AsType[*remote.AddressError](err); is && e.Never {
		return exitRefused, "no setting allows this address: find out who gave it", true
	} else if is {
		return exitRefused, "if that host is yours, allow it: sources.private in loadout.yaml, or LOADOUT_SOURCES_PRIVATE=" + quoted(e.Host) + "; where loadout.lock of a project names it, say --trust too", true
	}
	if isType[*remote.UntrustedError](err) {
		return exitRefused, "loadout.lock of this project names it: look there, and if you know it, say --trust", true
	}
	if e, is := errors.AsType[*remote.DeniedError](err); is {
		return exitRefused, "sign in to " + plain(e.Host) + " with git, set GH_TOKEN for github.com, or name a secret: sources.tokens in loadout.yaml", true
	}
	if e, is := errors.AsType[*remote.NotFoundError](err); is {
		return exitNotFound, notFoundNext(e), true
	}
	switch {
	case isType[*remote.DigestError](err):
		return exitRefused, "tell whoever publishes the index; nothing was installed", true
	case errors.Is(err, remote.ErrNoGit):
		return exitMissing, "install git, and try again", true
	case isType[*remote.StatusError](err):
		return exitFound, "try again later", true
	case isType[*remote.TooLargeError](err):
		return exitRefused, "name a part of it: a directory of the repository, or a smaller archive", true
	case isType[*awayError](err) && !isType[*skill.RefusedError](err):
		return exitFound, "nothing was changed; check the connection and the address, and try again", true
	}
	return 0, "", false
}
