package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/session"
)

// keyVariable is the environment variable that contains the hub's encryption
// keys.
const keyVariable = "LOADOUT_HUB_KEY"

// hubLocation returns the options that locate a hub's data and database.
func (a *app) hubLocation(c *config.Config) (hub.Options, error) {
	o := hub.Options{Data: c.Hub.Data, Database: c.Hub.Database}
	if o.Data == "" {
		state := a.StateDir()
		if state == "" {
			return o, exit.Errorf(exit.Usage, "name a directory with --data", "no directory for the hub")
		}
		o.Data = filepath.Join(state, "hub")
	}
	keys, err := a.readHubKeys(c)
	o.Keys = keys
	return o, err
}

// readHubKeys returns the configured encryption keys, or nil if none are
// configured.
func (a *app) readHubKeys(c *config.Config) ([]encryption.Key, error) {
	const hint = "create a key with: openssl rand -base64 32"
	text := a.Getenv(keyVariable)
	switch {
	case text != "" && c.Hub.KeyFile != "":
		return nil, exit.Errorf(exit.Usage, "omit one of them", "both "+keyVariable+" and hub.key_file are set")
	case text != "":
		keys, err := encryption.ParseKeys(text)
		if err != nil {
			return nil, exit.Errorf(exit.Usage, hint, keyVariable+": %w", err)
		}
		return keys, nil
	case c.Hub.KeyFile != "":
		keys, err := encryption.LoadMountedKeys(c.Hub.KeyFile)
		if err != nil {
			return nil, exit.Errorf(exit.Usage, hint, "hub.key_file: %w", err)
		}
		return keys, nil
	}
	return nil, nil
}

// hubOptions returns the options for serving a hub.
func (a *app) hubOptions(ctx context.Context, c *config.Config) (hub.Options, error) {
	o, err := a.hubLocation(c)
	if err != nil {
		return o, err
	}
	o.Redis, o.Accounts, o.Public, o.Proxies = c.Hub.Redis, c.Hub.Accounts, c.Hub.Public, c.Hub.Proxies
	o.MinDisk = uint64(c.Hub.MinDisk) << 20
	o.ModelTitles = c.Hub.Titles == "model"
	o.Sharing, o.ShareDays = c.Hub.SharingMode(), c.Hub.ShareDays
	o.Inviters = c.Hub.Invitations
	o.Runs, o.Rate, o.Drain = c.Hub.Runs, c.Hub.Rate, time.Duration(c.Hub.Drain)*time.Second
	o.Version, o.Logger = setup.ReadVersion().Version, a.hubLogger(c)
	if o.FirstAdmin, err = readFirstAdmin(c); err != nil {
		return o, err
	}
	if o.Provider, err = a.oidcProvider(ctx, c); err != nil {
		return o, err
	}
	if o.Private, err = address.ParsePrefixes(c.Hub.Private); err != nil {
		return o, err
	}
	if o.Model, err = a.newHubModels(ctx, c, o.Private); err != nil {
		return o, err
	}
	o.Price, o.Window = hubPrices(c)
	o.Images = readsImages(c)
	o.Skills = func(single bool) ([]catalog.Source, error) { return a.HubSources(c, single) }
	o.BundledSkills, o.Updates = c.Skills.Bundled, session.UpdateMode(c.Skills.Update)
	o.ImportFrom = c.Hub.ImportFrom
	if o.Servers, err = a.hubServers(c); err != nil {
		return o, err
	}
	if c.Sandbox.Enabled {
		o.Sandbox, o.Bounds, o.Packages, o.Getenv = a.hubSandbox(c), setup.PolicyBounds(c), a.PackageOptions(c), a.Getenv
	}
	if exe, err := os.Executable(); err == nil {
		o.Command = exe
	}
	return o, nil
}

// readFirstAdmin returns the configured first administrator, or nil.
func readFirstAdmin(c *config.Config) (*hub.FirstAdmin, error) {
	file := c.Hub.AdminPasswordFile
	if file == "" {
		return nil, nil
	}
	const hint = "write a password of at least 10 characters into it, on one line"
	b, err := configfile.ReadFile(file, 4<<10)
	if err != nil {
		code, _ := exit.FileHint(err, "")
		return nil, exit.Errorf(code, hint, "password file %s: %w", file, fileerror.Cause(err))
	}
	password := strings.TrimRight(string(b), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return nil, exit.Errorf(exit.Usage, hint, "password file %s: want exactly one line", file)
	}
	return &hub.FirstAdmin{Name: c.Hub.Admin, Password: password}, nil
}

// oidcProvider returns the configured OpenID provider, or nil.
func (a *app) oidcProvider(ctx context.Context, c *config.Config) (*hub.Provider, error) {
	h := c.Hub
	if h.OIDCIssuer == "" {
		return nil, nil
	}
	if h.OIDCClient == "" || h.Public == "" {
		return nil, exit.Errorf(exit.Usage, "add --oidc-client ID and --public URL", "sign-in with %s needs a client ID and a public URL", h.OIDCIssuer)
	}
	name := cmp.Or(h.OIDCSecret, "LOADOUT_OIDC_SECRET")
	value := a.Getenv(name)
	if value == "" {
		var err error
		if value, err = a.SecretValue(ctx, name); err != nil {
			return nil, err
		}
	}
	if value == "" {
		return nil, exit.Errorf(exit.Missing, "set the variable, or store a secret: loadout secret set "+name, "sign-in with %s: client secret not found: %s is not set", h.OIDCIssuer, name)
	}
	return &hub.Provider{Issuer: h.OIDCIssuer, ClientID: h.OIDCClient, ClientSecret: value, Scopes: h.OIDCScopes, NameClaim: h.OIDCName,
		GroupsClaim: h.OIDCGroups, Everyone: h.OIDCEveryone}, nil
}

// hubServers returns the operator's MCP servers. It ignores project servers.
func (a *app) hubServers(c *config.Config) ([]*upstream.Config, error) {
	all, findings, err := a.ReadServers(c, nil)
	if err != nil {
		return nil, err
	}
	for _, f := range findings {
		a.Note("%s", f)
	}
	var own []*upstream.Config
	for _, s := range all {
		if s.Owner == "" {
			own = append(own, s)
		}
	}
	spawn.ExtendTimeouts(own, time.Duration(c.Servers.Deadline)*time.Second)
	return own, nil
}

// hubSandbox returns this node's sandbox backend. It ignores permissions that
// the user granted for this machine.
func (a *app) hubSandbox(c *config.Config) sandbox.Backend {
	o := &selection.Options{Candidates: selection.Candidates(&selection.Settings{Image: c.Sandbox.Image}), Name: c.Sandbox.Backend, MinTier: sandbox.Tier(c.Sandbox.MinTier)}
	if o.Name != "auto" && o.Name != "" && !c.IsSet("sandbox.min_tier") {
		o.MinTier = 0 // accept any tier of the named backend
	}
	return selection.New(o)
}

// hubLogger returns a logger that writes to standard error. On a terminal it
// omits requests unless --verbose is given.
func (a *app) hubLogger(c *config.Config) *slog.Logger {
	form, level := c.Hub.Log, slog.LevelInfo
	if form == "" && console.IsTerminal(a.Stderr) {
		form, level = "text", slog.LevelWarn
	}
	if a.Verbose {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if form == "text" {
		return slog.New(untrusted.LogHandler(slog.NewTextHandler(a.Stderr, o)))
	}
	return slog.New(untrusted.LogHandler(slog.NewJSONHandler(a.Stderr, o)))
}

func isLoopbackURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && address.IsLoopback(u.Hostname())
}

// classifyHubError adds the exit code and hint to an error from opening a hub.
func classifyHubError(err error) error {
	if k, ok := errors.AsType[*hub.KeyError](err); ok {
		return exit.Errorf(exit.Missing, k.Next+"; set "+keyVariable+" or --key-file", "%w", err)
	}
	if w, ok := errors.AsType[*account.WeakPasswordError](err); ok {
		return exit.Errorf(exit.Usage, "use a stronger password in the password file", "password of the first administrator: %w", w)
	}
	if t, ok := errors.AsType[*hub.DatabaseExistsError](err); ok {
		return exit.Errorf(exit.Refused, "to restore the backup and move the existing database aside: --force", "%w", t)
	}
	for _, c := range []struct {
		is   error
		code int
		next string
	}{
		{store.ErrTooNew, exit.Failure, "use the newer loadout that created it"},
		{store.ErrTooOld, exit.Failure, "start loadout serve once to upgrade it"},
		{store.ErrCorrupt, exit.Failure, "restore a backup: loadout restore FILE --force"},
		{store.ErrFull, exit.Failure, "free disk space"},
		{store.ErrBusy, exit.Failure, "close other programs that use it, and try again"},
		{store.ErrUnavailable, exit.Missing, "check that the database server is running, and that --database or LOADOUT_DATABASE names it"},
		{store.ErrUnsupported, exit.Usage, "use the tools of PostgreSQL"},
		{fs.ErrNotExist, exit.NotFound, "check the path; loadout serve creates a hub"},
		{fs.ErrExist, exit.Refused, "name a file that does not exist"},
	} {
		if errors.Is(err, c.is) {
			return exit.Errorf(c.code, c.next, "%w", err)
		}
	}
	if inUse, ok := errors.AsType[*hub.InUseError](err); ok {
		return exit.Errorf(exit.Failure, "stop that hub first, or name another directory with --data", "%w", inUse)
	}
	return exit.Errorf(exit.Failure, "see: loadout serve --help", "%w", err)
}
