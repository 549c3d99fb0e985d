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

// Import limits, in addition to those of package remote.
const (
	maxDownload    = 256 << 20
	maxUnpacked    = 512 << 20
	maxEntries     = 50_000
	maxOffered     = 2_000
	inspectTimeout = 5 * time.Minute
	latestTimeout  = 30 * time.Second // for reading a repository's newest commit
)

// parseSource parses a source location and checks that the hub may use it.
func (l *Library) parseSource(text string) (remote.Location, error) {
	at, err := remote.Parse(text, "/")
	if err != nil {
		return at, err
	}
	return at, l.checkLocation(at)
}

// checkLocation returns an error if the hub must not use a location. The user does
// not own this machine, so its files, private networks and ssh keys must not be
// used. Package remote checks addresses again when it connects.
func (l *Library) checkLocation(at remote.Location) error {
	refuse := func(why string) error { return &remote.LocationError{Text: at.String(), Reason: why} }
	if at.Kind == remote.Local {
		return refuse("a hub cannot read local directories; upload an archive, or use https://")
	}
	u, err := url.Parse(at.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return refuse("a hub supports https:// only")
	}
	// Normalize the host like package remote.
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if l.opts.Private(host) {
		return nil
	}
	if u.Scheme != "https" {
		return refuse("use https://")
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

// newClient returns a client that uses the user's credentials and the given timeout.
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

// location returns the location of the source.
func (s *Source) location() remote.Location {
	return remote.Location{Kind: remote.Kind(s.Kind), URL: s.URL, Ref: s.Ref}
}
