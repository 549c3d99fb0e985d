package setup

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// Fetcher reads remote skills and shows progress on a terminal. It implements
// [install.Source] and is not safe for concurrent use.
type Fetcher struct {
	client   *remote.Client
	progress *terminal.Progress
}

// NewFetcher returns a Fetcher that uses the configured settings and the user's
// credentials.
func (s *Setup) NewFetcher(c *config.Config) Fetcher {
	progress := s.NewProgress()
	return Fetcher{remote.New(&remote.Options{
		Private: func(host string) bool { return slices.Contains(c.Sources.Private, host) },
		Credential: func(ctx context.Context, host string) (*remote.Credential, error) {
			return s.hostCredential(ctx, c, host)
		},
		IndexCredential: func(ctx context.Context, site *url.URL) (*remote.Credential, error) {
			return s.hubCredential(ctx, c, site)
		},
		Progress: func(p remote.Progress) { progress.Report(formatProgress(p)) },
	}), progress}
}

// NewLockFetcher returns a Fetcher for the sources in a lockfile. A project's
// lockfile is untrusted input unless trusted is set.
func (s *Setup) NewLockFetcher(c *config.Config, to SkillsDir, trusted bool) Fetcher {
	if to.Scope != "project" || trusted {
		return s.NewFetcher(c)
	}
	progress := s.NewProgress()
	return Fetcher{remote.New(&remote.Options{
		Untrusted:  true,
		Credential: func(ctx context.Context, host string) (*remote.Credential, error) { return s.hostToken(ctx, c, host) },
		IndexCredential: func(ctx context.Context, site *url.URL) (*remote.Credential, error) {
			return s.hubCredential(ctx, c, site)
		},
		Progress: func(p remote.Progress) { progress.Report(formatProgress(p)) },
	}), progress}
}

// hostCredential returns the user's credential for a host: a token, or the
// result of Git's credential helpers. The helpers may return a credential for
// any host.
func (s *Setup) hostCredential(ctx context.Context, c *config.Config, host string) (*remote.Credential, error) {
	if t, err := s.hostToken(ctx, c, host); t != nil || err != nil {
		return t, err
	}
	return remote.UserCredential(ctx, host)
}

// hostToken returns the user's token for exactly this host, from the configured
// secret, or from the usual environment variables.
func (s *Setup) hostToken(ctx context.Context, c *config.Config, host string) (*remote.Credential, error) {
	if t, err := s.configuredToken(ctx, c, host); t != nil || err != nil {
		return t, err
	}
	return remote.EnvironmentCredential(host), nil
}

// configuredToken returns the secret for exactly this host in sources.tokens, or nil
// if there is none.
func (s *Setup) configuredToken(ctx context.Context, c *config.Config, host string) (*remote.Credential, error) {
	for _, entry := range c.Sources.Tokens {
		of, name, _ := strings.Cut(entry, "=")
		if !strings.EqualFold(of, host) {
			continue
		}
		token, err := s.SecretValue(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case token == "":
			return nil, exit.Errorf(exit.Missing, "loadout secret set "+name, "secret %s for %s (sources.tokens) is not set", name, host)
		}
		return &remote.Credential{User: "token", Password: token}, nil
	}
	return nil, nil
}

// hubCredential returns the token in LOADOUT_HUB_TOKEN if site is on the hub in
// LOADOUT_HUB, unless sources.tokens has one for the host. It returns nil otherwise.
func (s *Setup) hubCredential(ctx context.Context, c *config.Config, site *url.URL) (*remote.Credential, error) {
	hub, err := url.Parse(s.Getenv("LOADOUT_HUB"))
	token := strings.TrimSpace(s.Getenv("LOADOUT_HUB_TOKEN"))
	if err != nil || hub.Host == "" || token == "" || !isSameHost(hub, site) {
		return nil, nil
	}
	if t, err := s.configuredToken(ctx, c, site.Host); t != nil || err != nil {
		return t, err
	}
	return &remote.Credential{Password: token}, nil
}

// isSameHost reports whether two URLs have the same scheme, host and port.
func isSameHost(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// ParseLocation parses a location of skills typed by the user.
func ParseLocation(text string) (remote.Location, error) {
	dir, err := os.Getwd()
	if err != nil {
		return remote.Location{}, fmt.Errorf("find working directory: %w", err)
	}
	l, err := remote.Parse(text, dir)
	if err != nil {
		return l, exit.Errorf(exit.Usage, "use owner/repo, owner/repo/dir@ref, https://example.com/repo.git, ./folder or skills.zip; see: loadout add --help", "%w", err)
	}
	return l, nil
}

// PublisherKeys returns the pinned publisher keys, or nil if there is no state
// directory.
func (s *Setup) PublisherKeys() *signature.Pins {
	if d := s.StateDir(); d != "" {
		return &signature.Pins{Path: filepath.Join(d, "publishers.json"), Identity: remote.Identity}
	}
	return nil
}

// SeenVersions returns the store of the highest counter seen for each signed
// skill, or nil if there is no state directory.
func (s *Setup) SeenVersions() *signature.History {
	if d := s.StateDir(); d != "" {
		return &signature.History{Path: filepath.Join(d, "versions.json")}
	}
	return nil
}

// UpdatesFile returns the store of available updates, or nil if there is no
// state directory.
func (s *Setup) UpdatesFile() *install.AvailableUpdates {
	if d := s.StateDir(); d != "" {
		return install.OpenAvailableUpdates(filepath.Join(d, "newer.json"))
	}
	return nil
}

// formatProgress formats the progress of an operation, such as "reading: 3 of
// 10".
func formatProgress(p remote.Progress) string {
	amount := func(n int64) string {
		if p.Bytes {
			return console.FormatSize(n)
		}
		return fmt.Sprint(n)
	}
	switch {
	case p.What == "":
		return ""
	case p.Total == 0:
		return fmt.Sprintf("%s: %s", p.What, amount(p.Done))
	}
	return fmt.Sprintf("%s: %s of %s, %d %%", p.What, amount(p.Done), amount(p.Total), 100*p.Done/p.Total)
}

// Open reads the skills at a location.
func (f Fetcher) Open(ctx context.Context, at remote.Location) (*remote.Collection, error) {
	defer f.progress.Begin("reading " + terminal.Plain(at.String()))()
	c, err := f.client.Open(ctx, at)
	return c, install.WrapSource(at, err)
}

// Latest returns the current revision of the source at a location.
func (f Fetcher) Latest(ctx context.Context, at remote.Location) (*remote.Revision, error) {
	defer f.progress.Begin("checking " + terminal.Plain(at.String()))()
	rev, err := f.client.Latest(ctx, at)
	return rev, install.WrapSource(at, err)
}

// ReadFile downloads a file and returns its content. It returns an error if the
// file is larger than limit bytes.
func (f Fetcher) ReadFile(ctx context.Context, url string, limit int64) ([]byte, error) {
	at := remote.Location{Kind: remote.File, URL: url}
	defer f.progress.Begin("reading " + terminal.Plain(at.String()))()
	src, err := f.client.ReadFile(ctx, url, limit)
	return src, install.WrapSource(at, err)
}

// Begin shows that an operation is in progress until done is called.
func (f Fetcher) Begin(what string) (done func()) { return f.progress.Begin(what) }
