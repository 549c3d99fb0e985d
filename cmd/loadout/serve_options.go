package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/auto"
	"github.com/loadout-dev/loadout/upstream"
)

// keyVariable has the keys of a hub's secrets.
const keyVariable = "LOADOUT_HUB_KEY"

// hubPlace are the options that say which hub is meant, for all that is done with it.
func (a *app) hubPlace(c *config.Config) (hub.Options, error) {
	o := hub.Options{Data: c.Hub.Data, Database: c.Hub.Database}
	if o.Data == "" {
		state := a.stateDir()
		if state == "" {
			return o, fail(exitUsage, "name a directory with --data", "there is no place where a hub could be kept")
		}
		o.Data = filepath.Join(state, "hub")
	}
	keys, err := a.hubKeys(c)
	o.Keys = keys
	return o, err
}

// hubKeys are the keys that are given from outside, none where there are none.
func (a *app) hubKeys(c *config.Config) ([]seal.Key, error) {
	const hint = "make a key with: openssl rand -base64 32"
	text := a.getenv(keyVariable)
	switch {
	case text != "" && c.Hub.KeyFile != "":
		return nil, fail(exitUsage, "give one of them", "both "+keyVariable+" and hub.key_file have keys")
	case text != "":
		keys, err := seal.ParseKeys(text)
		if err != nil {
			return nil, fail(exitUsage, hint, keyVariable+": %w", err)
		}
		return keys, nil
	case c.Hub.KeyFile != "":
		keys, err := seal.MountedKeys(c.Hub.KeyFile)
		if err != nil {
			return nil, fail(exitUsage, hint, "hub.key_file: %w", err)
		}
		return keys, nil
	}
	return nil, nil
}

// hubOptions are all options of a hub that is to be served.
func (a *app) hubOptions(ctx context.Context, c *config.Config) (hub.Options, error) {
	o, err := a.hubPlace(c)
	if err != nil {
		return o, err
	}
	o.Redis, o.Accounts, o.Public, o.Proxies = c.Hub.Redis, c.Hub.Accounts, c.Hub.Public, c.Hub.Proxies
	o.Runs, o.Rate, o.Drain = c.Hub.Runs, c.Hub.Rate, time.Duration(c.Hub.Drain)*time.Second
	o.Version, o.Logger = buildVersion().Version, a.hubLogger(c)
	if o.First, err = firstAdmin(c); err != nil {
		return o, err
	}
	if o.Provider, err = a.provider(ctx, c); err != nil {
		return o, err
	}
	if o.Private, err = prefixes(c.Hub.Private); err != nil {
		return o, err
	}
	if o.Model, err = a.hubModels(ctx, c, o.Private); err != nil {
		return o, err
	}
	o.Price, o.Window = hubPrices(c)
	if o.Servers, err = a.hubServers(c); err != nil {
		return o, err
	}
	if c.Sandbox.Enabled {
		o.Sandbox, o.Bounds, o.Packages, o.Getenv = a.hubSandbox(c), boundsOf(c), a.packages(c), a.getenv
	}
	if exe, err := os.Executable(); err == nil {
		o.Command = exe
	}
	return o, nil
}

// firstAdmin is the administrator that is made where there is none, nil for none.
func firstAdmin(c *config.Config) (*hub.First, error) {
	file := c.Hub.AdminPasswordFile
	if file == "" {
		return nil, nil
	}
	const hint = "write a password of at least 10 characters into it, on one line"
	b, err := readSmall(file, 4<<10)
	if err != nil {
		code, _ := missing(err, "")
		return nil, fail(code, hint, "password file %s: %w", file, reason(err))
	}
	password := strings.TrimRight(string(b), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return nil, fail(exitUsage, hint, "password file %s: it is not one line", file)
	}
	return &hub.First{Name: c.Hub.Admin, Password: password}, nil
}

// provider is the OpenID provider, nil for none.
func (a *app) provider(ctx context.Context, c *config.Config) (*hub.Provider, error) {
	h := c.Hub
	if h.OIDCIssuer == "" {
		return nil, nil
	}
	if h.OIDCClient == "" || h.Public == "" {
		return nil, fail(exitUsage, "give --oidc-client ID and --public URL too", "sign in by %s: the hub's id there, and its own address, are needed", h.OIDCIssuer)
	}
	name := cmp.Or(h.OIDCSecret, "LOADOUT_OIDC_SECRET")
	value := a.getenv(name)
	if value == "" {
		var err error
		if value, err = a.secret(ctx, name); err != nil {
			return nil, err
		}
	}
	if value == "" {
		return nil, fail(exitMissing, "set the variable, or keep it: loadout secret set "+name, "sign in by %s: the client's secret is not there: %s is not set", h.OIDCIssuer, name)
	}
	return &hub.Provider{Issuer: h.OIDCIssuer, ClientID: h.OIDCClient, ClientSecret: value, Scopes: h.OIDCScopes, NameClaim: h.OIDCName,
		GroupsClaim: h.OIDCGroups, Everyone: h.OIDCEveryone}, nil
}

// prefixes are networks that the configuration has checked.
func prefixes(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			at, err := netip.ParseAddr(text)
			if err != nil {
				return nil, err
			}
			p = netip.PrefixFrom(at, at.BitLen())
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// hubServers are the MCP servers of the operator: those of a project are nobody's who
// runs a hub.
func (a *app) hubServers(c *config.Config) ([]*upstream.Config, error) {
	all, findings, err := a.servers(c, nil)
	if err != nil {
		return nil, err
	}
	for _, f := range findings {
		a.note("%s", f)
	}
	var own []*upstream.Config
	for _, s := range all {
		if s.Owner == "" {
			own = append(own, s)
		}
	}
	patient(own, time.Duration(c.Servers.Deadline)*time.Second)
	return own, nil
}

// hubSandbox is what isolates code on this node. What a person allowed for himself at this
// machine is nothing to the people of a hub.
func (a *app) hubSandbox(c *config.Config) sandbox.Backend {
	o := &auto.Options{Candidates: auto.Candidates(&auto.Settings{Image: c.Sandbox.Image}), Name: c.Sandbox.Backend, MinTier: sandbox.Tier(c.Sandbox.MinTier)}
	if o.Name != "auto" && o.Name != "" && !c.IsSet("sandbox.min_tier") {
		o.MinTier = 0 // as much as that one has
	}
	return auto.New(o)
}

// hubLogger logs to standard error. At a terminal somebody reads along, who is not told
// of each request unless he asks for it.
func (a *app) hubLogger(c *config.Config) *slog.Logger {
	form, level := c.Hub.Log, slog.LevelInfo
	if form == "" && isTerminal(a.stderr) {
		form, level = "text", slog.LevelWarn
	}
	if a.verbose {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if form == "text" {
		return slog.New(slog.NewTextHandler(a.stderr, o))
	}
	return slog.New(slog.NewJSONHandler(a.stderr, o))
}

func loopbackURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && mcpserver.IsLoopback(u.Hostname())
}

// hubError gives what keeps a hub from being opened its exit code and next step.
func hubError(err error) error {
	if k, ok := errors.AsType[*hub.KeyError](err); ok {
		return fail(exitMissing, k.Next+"; it is given as "+keyVariable+" or with --key-file", "%w", err)
	}
	if w, ok := errors.AsType[*account.WeakError](err); ok {
		return fail(exitUsage, "put a better one into the password file", "the password of the first administrator: %w", w)
	}
	if t, ok := errors.AsType[*hub.ThereError](err); ok {
		return fail(exitRefused, "to put the backup in its place, and keep what is there beside it: --force", "%w", t)
	}
	for _, c := range []struct {
		is   error
		code int
		next string
	}{
		{store.ErrTooNew, exitFound, "use the newer loadout that made it"},
		{store.ErrTooOld, exitFound, "start loadout serve once, which brings it up to date"},
		{store.ErrCorrupt, exitFound, "put a backup in its place: loadout restore FILE --force"},
		{store.ErrFull, exitFound, "make room on the disk"},
		{store.ErrBusy, exitFound, "see which other program is at work on it, and try again"},
		{store.ErrUnavailable, exitMissing, "see that the database server is there, and that --database or LOADOUT_DATABASE names it"},
		{store.ErrUnsupported, exitUsage, "that is a tool of PostgreSQL"},
		{fs.ErrNotExist, exitNotFound, "check the path; a hub is made by: loadout serve"},
		{fs.ErrExist, exitRefused, "name a file that is not there"},
	} {
		if errors.Is(err, c.is) {
			return fail(c.code, c.next, "%w", err)
		}
	}
	if inUse, ok := errors.AsType[*hub.InUseError](err); ok {
		return fail(exitFound, "end that hub first, or name another directory with --data", "%w", inUse)
	}
	return fail(exitFound, "see: loadout serve --help", "%w", err)
}
