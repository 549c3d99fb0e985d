package hub

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/remote"
)

// fromSource is an error of a place that skills are got from, which says what kind it is.
func fromSource(err error) *Problem {
	for _, of := range []func(error) *Problem{badSource, sourceDenied, sourceTooMuch, sourceFailed} {
		if p := of(err); p != nil {
			return p
		}
	}
	return nil
}

// badSource is that there is nothing where somebody says that skills are.
func badSource(err error) *Problem {
	if e, ok := errors.AsType[*remote.LocationError](err); ok {
		return &Problem{Status: 422, Code: "source_invalid", Detail: e.Error(), Next: "write owner/repo, https://host/repository, https://host/archive.zip, or https://host of a site that publishes skills"}
	}
	if e, ok := errors.AsType[*remote.NotFoundError](err); ok {
		return &Problem{Status: 422, Code: "source_not_found", Detail: e.Error(), Next: "look at how it is spelled, and whether it is still there"}
	}
	return nil
}

// besideSource is the error of a source, with what somebody may do who means a private one:
// those look to strangers as if they were not there.
func besideSource(source string, err error) error {
	if _, missing := errors.AsType[*remote.NotFoundError](err); !missing {
		return err
	}
	at, wrong := remote.Parse(source, "/")
	u, unread := url.Parse(at.URL)
	if wrong != nil || unread != nil || credentialName(u.Host) == "" {
		return err
	}
	p := badSource(err)
	p.Next += "; where it is private, " + keepCredential(u.Host, credentialName(u.Host))
	return p
}

// keepCredential says how somebody gives the hub what a host wants to see.
func keepCredential(host, name string) string {
	return fmt.Sprintf("keep user:password or a token for %s as a secret of yours: PUT %s/secrets/%s", host, base, name)
}

// sourceDenied is that nobody is to reach the place, or not this user.
func sourceDenied(err error) *Problem {
	if e, ok := errors.AsType[*remote.DeniedError](err); ok {
		next := "import from another place: a host of that name can be shown nothing"
		if name := credentialName(e.Host); name != "" {
			next = keepCredential(e.Host, name)
		}
		return &Problem{Status: 422, Code: "source_denied", Detail: e.Error(), Next: next}
	}
	if e, ok := errors.AsType[*remote.AddressError](err); ok {
		next := "use a host of the public internet, or ask the operator of the hub to let it through"
		if e.Never {
			next = "use another host"
		}
		return &Problem{Status: 422, Code: "source_address", Detail: e.Error(), Next: next}
	}
	if e, ok := errors.AsType[*remote.UntrustedError](err); ok {
		return &Problem{Status: 422, Code: "source_address", Detail: e.Error(), Next: "use a place that is reached by https"}
	}
	return nil
}

// sourceTooMuch is that what is there is more than is taken, or not what was promised.
func sourceTooMuch(err error) *Problem {
	if e, ok := errors.AsType[*remote.TooLargeError](err); ok {
		return &Problem{Status: 422, Code: "source_too_large", Detail: e.Error(), Next: "import from a smaller repository or archive, or upload the skills"}
	}
	if e, ok := errors.AsType[*remote.DigestError](err); ok {
		return &Problem{Status: 502, Code: "source_digest", Detail: e.Error(), Next: "tell who publishes it: the file is not the one that the index names"}
	}
	return nil
}

func sourceFailed(err error) *Problem {
	if errors.Is(err, remote.ErrNoGit) {
		return &Problem{Status: 501, Code: "no_git", Detail: remote.ErrNoGit.Error(), Next: "ask the operator of the hub to install git, or import from an archive"}
	}
	if e, ok := errors.AsType[*remote.StatusError](err); ok {
		return &Problem{Status: 502, Code: "source_failed", Detail: e.Error(), Next: "try again later; if it goes on, look at the address"}
	}
	return nil
}

// fromPlace is any other error that has its reason at a place or on the way to it. It is
// asked last: what else is wrong is told as that.
func fromPlace(err error) *Problem {
	e, ok := errors.AsType[*library.PlaceError](err)
	switch {
	case !ok:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &Problem{Status: 504, Code: "slow", Detail: e.Error(), Next: "try again, or ask for less"}
	case errors.Is(err, context.Canceled):
		return nil
	}
	return &Problem{Status: 502, Code: "source_failed", Detail: e.Error(), Next: "try again later; if it goes on, look at the address"}
}

// notKept is what the library does not take, and why.
func notKept(err error) *Problem {
	e, ok := errors.AsType[*library.InvalidError](err)
	if !ok {
		return nil
	}
	return &Problem{Status: 422, Code: "invalid", Detail: e.Why, Next: "see what is expected: GET /openapi.json"}
}

// unfinished is why an import ended, with what was done until then.
func unfinished(done *library.Imported, err error) error {
	if done == nil || len(done.Created)+len(done.Updated) == 0 {
		return err
	}
	p := problemOf(err)
	if p == nil {
		return err
	}
	p.Detail += fmt.Sprintf("; before that, %d skills were created and %d updated", len(done.Created), len(done.Updated))
	return p
}
