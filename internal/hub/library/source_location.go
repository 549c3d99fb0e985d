package library

import (
	"context"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
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
	latestTimeout  = 30 * time.Second // timeout for reading a repository's newest commit
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
// used, except as [Options.ImportFrom] permits. Package remote checks addresses
// again when it connects.
func (l *Library) checkLocation(at remote.Location) error {
	refuse := func(why string) error { return &remote.LocationError{Text: at.String(), Reason: why} }
	u, err := url.Parse(at.URL)
	switch {
	case at.Kind == remote.Local || err == nil && u.Scheme == "file":
		path := at.URL
		if at.Kind != remote.Local {
			path = u.Path // git also decodes it
		}
		if l.mayReadDir(path) {
			return nil
		}
		return refuse("this hub reads only directories that its operator allows; upload an archive, or use https://")
	case isSSH(at.URL):
		if slices.Contains(l.opts.ImportFrom, "ssh://"+sshHost(at.URL)) {
			return nil
		}
		return refuse("this hub uses ssh only for hosts that its operator allows; use https://")
	case err != nil || u.Scheme != "https" && u.Scheme != "http":
		return refuse("use https://")
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

// mayReadDir reports whether the operator allows imports from a path on this
// machine. It resolves symlinks first.
func (l *Library) mayReadDir(path string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(l.opts.ImportFrom, func(dir string) bool {
		if !filepath.IsAbs(dir) {
			return false
		}
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return false
		}
		below, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(below)
	})
}

// isSSH reports whether a repository is read through ssh: ssh://HOST/PATH, or
// USER@HOST:PATH.
func isSSH(address string) bool {
	return strings.HasPrefix(address, "ssh://") || !strings.Contains(address, "://") && strings.Contains(address, "@")
}

// sshHost returns the host of a repository that is read through ssh, without a
// port.
func sshHost(address string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "ssh://"), "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	host, _, _ = strings.Cut(host, ":")
	return strings.ToLower(host)
}

// newClient returns a client that uses the user's credentials and the given timeout.
// progress may be nil.
func (l *Library) newClient(user account.UserID, timeout time.Duration, keepTop bool, progress func(remote.Progress)) *remote.Client {
	return remote.New(&remote.Options{
		KeepTop: keepTop,
		Credential: func(ctx context.Context, host string) (*remote.Credential, error) {
			return l.opts.Credential(ctx, user, host)
		},
		Private: l.opts.Private, Git: l.opts.Git, TempDir: l.opts.TempDir, Progress: progress,
		Limits: remote.Limits{
			Download: maxDownload, Unpacked: maxUnpacked, Entries: maxEntries, Skills: maxOffered, Time: timeout, Skill: l.opts.Limits,
		},
	})
}

func (s *Source) location() remote.Location {
	return remote.Location{Kind: remote.Kind(s.Kind), URL: s.URL, Ref: s.Ref}
}
