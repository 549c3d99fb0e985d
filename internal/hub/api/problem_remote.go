package api

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/loadout-dev/loadout/internal/hub/credential"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/remote"
)

// sourceProblem converts err to a problem if it comes from a skill source, and
// returns nil otherwise.
func sourceProblem(err error) *Problem {
	for _, of := range []func(error) *Problem{invalidSourceProblem, sourceAccessProblem, sourceLimitProblem, sourceFailedProblem} {
		if p := of(err); p != nil {
			return p
		}
	}
	return nil
}

// invalidSourceProblem converts err to a problem if a source is malformed or
// missing, and returns nil otherwise.
func invalidSourceProblem(err error) *Problem {
	if e, ok := errors.AsType[*remote.LocationError](err); ok {
		return &Problem{Status: 422, Code: "source_invalid", Detail: e.Error(), Next: "write owner/repo, https://host/repository, https://host/archive.zip, or https://host of a site that publishes skills"}
	}
	if e, ok := errors.AsType[*remote.NotFoundError](err); ok {
		return &Problem{Status: 422, Code: "source_not_found", Detail: e.Error(), Next: "check the spelling, and whether it still exists"}
	}
	return nil
}

// WithSource adds a hint about credentials to the error for a missing source,
// because private sources look missing to anonymous clients.
func WithSource(source string, err error) error {
	if _, missing := errors.AsType[*remote.NotFoundError](err); !missing {
		return err
	}
	at, wrong := remote.Parse(source, "/")
	u, unread := url.Parse(at.URL)
	if wrong != nil || unread != nil || credential.Name(u.Host) == "" {
		return err
	}
	p := invalidSourceProblem(err)
	p.Next += "; if it is private, " + credentialHint(u.Host, credential.Name(u.Host))
	return p
}

// credentialHint explains how to store a credential for a host.
func credentialHint(host, name string) string {
	return fmt.Sprintf("store user:password or a token for %s as a secret: PUT %s/secrets/%s", host, Prefix, name)
}

// sourceAccessProblem converts err to a problem if a source denied access or
// must not be accessed, and returns nil otherwise.
func sourceAccessProblem(err error) *Problem {
	if e, ok := errors.AsType[*remote.DeniedError](err); ok {
		next := "import from another source: no credential can be stored for this host"
		if name := credential.Name(e.Host); name != "" {
			next = credentialHint(e.Host, name)
		}
		return &Problem{Status: 422, Code: "source_denied", Detail: e.Error(), Next: next}
	}
	if e, ok := errors.AsType[*remote.AddressError](err); ok {
		next := "use a public host, or ask the operator of the hub to allow this one"
		if e.AlwaysBlocked {
			next = "use another host"
		}
		return &Problem{Status: 422, Code: "source_address", Detail: e.Error(), Next: next}
	}
	if e, ok := errors.AsType[*remote.UntrustedError](err); ok {
		return &Problem{Status: 422, Code: "source_address", Detail: e.Error(), Next: "use a source with an https address"}
	}
	return nil
}

// sourceLimitProblem converts err to a problem if a source is too large or does
// not match its digest, and returns nil otherwise.
func sourceLimitProblem(err error) *Problem {
	if e, ok := errors.AsType[*remote.TooLargeError](err); ok {
		return &Problem{Status: 422, Code: "source_too_large", Detail: e.Error(), Next: "import from a smaller repository or archive, or upload the skills"}
	}
	if e, ok := errors.AsType[*remote.DigestError](err); ok {
		return &Problem{Status: 502, Code: "source_digest", Detail: e.Error(), Next: "tell the publisher that the file does not match its index"}
	}
	return nil
}

func sourceFailedProblem(err error) *Problem {
	if errors.Is(err, remote.ErrNoGit) {
		return &Problem{Status: 501, Code: "no_git", Detail: remote.ErrNoGit.Error(), Next: "ask the operator of the hub to install git, or import from an archive"}
	}
	if e, ok := errors.AsType[*remote.StatusError](err); ok {
		return &Problem{Status: 502, Code: "source_failed", Detail: e.Error(), Next: "try again later; if it keeps failing, check the address"}
	}
	return nil
}

// remoteProblem converts any other source error to a problem. Call it last,
// because the other functions return more specific problems.
func remoteProblem(err error) *Problem {
	e, ok := errors.AsType[*library.SourceError](err)
	switch {
	case !ok:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &Problem{Status: 504, Code: "slow", Detail: e.Error(), Next: "try again, or request less data"}
	case errors.Is(err, context.Canceled):
		return nil
	}
	return &Problem{Status: 502, Code: "source_failed", Detail: e.Error(), Next: "try again later; if it keeps failing, check the address"}
}

// libraryInputProblem converts err to a problem if the library rejected an
// input value, and returns nil otherwise.
func libraryInputProblem(err error) *Problem {
	e, ok := errors.AsType[*library.InvalidError](err)
	if !ok {
		return nil
	}
	return &Problem{Status: 422, Code: "invalid", Detail: e.Why, Next: "correct the request"}
}

// PartialImport adds to an import error how many skills were imported before it
// occurred.
func PartialImport(done *library.ImportResult, err error) error {
	if done == nil || len(done.Created)+len(done.Updated) == 0 {
		return err
	}
	p := newProblem(err)
	if p == nil {
		return err
	}
	p.Detail += fmt.Sprintf("; before that, %d skills were created and %d updated", len(done.Created), len(done.Updated))
	return p
}
