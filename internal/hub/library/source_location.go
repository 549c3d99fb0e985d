package library

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/remote"
)

// Bounds of a look at a place, beyond those of package remote.
const (
	maxDownload    = 256 << 20
	maxUnpacked    = 512 << 20
	maxEntries     = 50_000
	maxOffered     = 2_000
	inspectTimeout = 5 * time.Minute
	latestTimeout  = 30 * time.Second // for a repository to name its newest commit
)

// parseSource reads where somebody wants to import from.
func (l *Library) parseSource(text string) (remote.Location, error) {
	at, err := remote.Parse(text, "/")
	if err != nil {
		return at, err
	}
	return at, l.checkLocation(at)
}

// checkLocation says why nothing is imported from a place. Who wrote it is not who runs
// this machine: what is on it, what only it reaches, and its keys are none of his.
// Package remote lets a person reach an address that he wrote himself, which here he may
// not; names are looked up there, and checked at the address that they have then.
func (l *Library) checkLocation(at remote.Location) error {
	refuse := func(why string) error { return &remote.LocationError{Text: at.String(), Reason: why} }
	if at.Kind == remote.Local {
		return refuse("a hub has no folders of yours; upload an archive, or write https://")
	}
	u, err := url.Parse(at.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return refuse("a hub reaches places by https alone; write https://")
	}
	// As package remote compares hosts, which is how they will be connected to.
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if l.opts.Private(host) {
		return nil
	}
	if u.Scheme != "https" {
		return refuse("write https://")
	}
	why := ""
	if a, err := netip.ParseAddr(host); err == nil {
		why = address.NonPublicReason(a.Unmap())
	} else if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		why = "loopback"
	}
	if why != "" {
		return &remote.AddressError{Host: host, Reason: why}
	}
	return nil
}

// newClient looks at places as a user does, for a bounded time.
func (l *Library) newClient(user account.UserID, limit time.Duration) *remote.Client {
	return remote.New(&remote.Options{
		Credential: func(ctx context.Context, host string) (*remote.Credential, error) {
			return l.opts.Credential(ctx, user, host)
		},
		Private: l.opts.Private, Git: l.opts.Git, TempDir: l.opts.TempDir,
		Limits: remote.Limits{
			Download: maxDownload, Unpacked: maxUnpacked, Entries: maxEntries, Skills: maxOffered, Time: limit, Skill: l.opts.Limits,
		},
	})
}

// location is the place that a skill is from, as it is now.
func (s *Source) location() remote.Location {
	return remote.Location{Kind: remote.Kind(s.Kind), URL: s.URL, Ref: s.Ref}
}
