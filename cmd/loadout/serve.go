package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/telemetry"
	"github.com/loadout-dev/loadout/mcpserver"
)

// hubFlags are the flags of loadout serve that set a key of the configuration.
var hubFlags = map[string]string{
	"addr": "hub.address", "data": "hub.data", "database": "hub.database", "redis": "hub.redis", "key-file": "hub.key_file", "public": "hub.public",
	"proxy": "hub.proxies", "accounts": "hub.accounts", "admin": "hub.admin", "admin-password-file": "hub.admin_password_file",
	"oidc-issuer": "hub.oidc_issuer", "oidc-client": "hub.oidc_client", "oidc-secret": "hub.oidc_secret", "oidc-everyone": "hub.oidc_everyone",
	"private": "hub.private", "runs": "hub.runs", "drain": "hub.drain", "log": "hub.log",
}

func (a *app) serveCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a hub: skills, agents and conversations for a team, over HTTP",
		Long: `Run a hub: skills that are uploaded, reviewed, versioned and shared, agents made of
them, conversations, and one MCP endpoint for everybody. Without any setting it serves
you alone, on this machine, from one SQLite file, without signing in. Other addresses
need --accounts: the first administrator is made by a link that is printed once, or
with --admin-password-file. With --database and --redis the same program runs as many
nodes; each needs the key of secrets, in LOADOUT_HUB_KEY or --key-file.

SIGTERM and Ctrl-C let what is under way come to its end; a second one does not.`,
		Example: `  loadout serve
  loadout serve --addr 0.0.0.0:8484 --accounts --public https://hub.example.com --proxy 10.0.0.0/8
  loadout serve --database postgres://hub@db.example.com/hub --redis redis://redis.example.com
  loadout serve --check`,
		Args: want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.hubSettings(cmd)
			if err != nil {
				return err
			}
			if check {
				return a.checkHub(cmd.Context(), c)
			}
			return a.serve(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.String("addr", "", "listen at `ADDR`; default 127.0.0.1:8484")
	hubPlaceFlags(cmd)
	f.String("redis", "", "wake other nodes by the Redis at `URL`, as redis://host:6379/0")
	f.String("key-file", "", "seal secrets with the keys in `FILE`")
	f.String("public", "", "people reach the hub at `URL`, as https://hub.example.com")
	f.StringArray("proxy", nil, "believe reverse proxies at `CIDR` who is behind them (repeatable)")
	f.Bool("accounts", false, "let people sign in; needed beyond loopback addresses")
	f.String("admin", "", "call the first administrator `NAME`; default admin")
	f.String("admin-password-file", "", "make a first administrator with the password in `FILE`")
	f.String("oidc-issuer", "", "let people sign in by the OpenID Connect provider at `URL`")
	f.String("oidc-client", "", "the hub is known to the provider as `ID`")
	f.String("oidc-secret", "", "the variable or secret `NAME` has the client's secret")
	f.Bool("oidc-everyone", false, "give an account to all whom the provider knows")
	f.StringArray("private", nil, "let models and servers have addresses in `CIDR` (repeatable)")
	f.Int("runs", 0, "run `N` pieces of code of skills at once; default 4")
	f.Duration("drain", 0, "give what is under way `TIME` to end, as 30s; default 10s")
	f.String("log", "", "log as `FORM`: text or json; default text on a terminal, else json")
	f.BoolVar(&check, "check", false, "read through all that the hub keeps, and say what is wrong")
	complete(cmd, "log", "text", "json")
	return cmd
}

// hubPlaceFlags are those that say which hub is meant.
func hubPlaceFlags(cmd *cobra.Command) {
	cmd.Flags().String("data", "", "keep the hub, or this node of it, in `DIR`")
	cmd.Flags().String("database", "", "keep all in the database at `URL`, as postgres://user@host/name")
}

// hubSettings is the configuration, with the flags of a command about a hub.
func (a *app) hubSettings(cmd *cobra.Command) (*config.Config, error) {
	flags := map[string]string{}
	for name, key := range hubFlags {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		flags[key] = f.Value.String()
		switch f.Value.Type() {
		case "stringArray":
			all, err := cmd.Flags().GetStringArray(name)
			if err != nil {
				return nil, err
			}
			flags[key] = strings.Join(all, ",")
		case "duration":
			d, err := cmd.Flags().GetDuration(name)
			if err != nil {
				return nil, err
			}
			flags[key] = strconv.Itoa(int(math.Ceil(d.Seconds())))
		}
	}
	return a.settings(flags)
}

// serve runs a hub until ctx ends.
func (a *app) serve(ctx context.Context, c *config.Config) (err error) {
	if _, _, err := hubAddress(c); err != nil {
		return err
	}
	drain := time.Duration(c.Hub.Drain) * time.Second
	a.needsToEnd(2*drain + lastTraces) // requests, then turns
	o, err := a.hubOptions(ctx, c)
	if err != nil {
		return err
	}
	if o.Tracer, err = a.tracer(ctx, o.Logger); err != nil {
		return err
	}
	defer func() {
		sending, stop := context.WithTimeout(context.WithoutCancel(ctx), lastTraces)
		defer stop()
		err = errors.Join(err, o.Tracer.Close(sending))
	}()
	h, err := hub.Open(ctx, o)
	if err != nil {
		return hubError(err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	l, err := listenForHub(c, h)
	if err != nil {
		return err
	}
	setup, err := h.SetupPath(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	a.greetHub(c, o, h.Single(), hubURL(c, l.Addr()), setup)
	debug.FreeOSMemory() // what opening took is not needed again
	if err := h.Serve(ctx, l); err != nil {
		return err
	}
	o.Logger.Info("the hub ends")
	return nil
}

// lastTraces is how long sending the last traces may take.
const lastTraces = 3 * time.Second

// tracer sends traces where the environment says so, else it is nil.
func (a *app) tracer(ctx context.Context, log *slog.Logger) (*telemetry.Tracer, error) {
	if !telemetry.Wanted(a.getenv) {
		return nil, nil
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	t, err := telemetry.Start(ctx, a.getenv, telemetry.Options{Version: buildVersion().Version, Node: name, Logger: log})
	if err != nil {
		return nil, fail(exitUsage, "see the variables in docs/hub.md, or unset OTEL_EXPORTER_OTLP_ENDPOINT", "%w", err)
	}
	return t, nil
}

// hubAddress reads where the hub is to listen.
func hubAddress(c *config.Config) (host, port string, err error) {
	const hint = "give an address as 127.0.0.1:8484"
	host, port, err = net.SplitHostPort(c.Hub.Address)
	if ae, ok := errors.AsType[*net.AddrError](err); ok {
		err = errors.New(ae.Err)
	}
	if err != nil {
		return "", "", fail(exitUsage, hint, "serve at %q: %w", c.Hub.Address, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", "", fail(exitUsage, hint, "serve at %q: %q is not a port", c.Hub.Address, port)
	}
	return host, port, nil
}

// listenForHub listens, unless others could reach a hub that asks nobody who he is.
func listenForHub(c *config.Config, h *hub.Hub) (net.Listener, error) {
	host, port, err := hubAddress(c)
	if err != nil {
		return nil, err
	}
	if h.Single() {
		switch {
		case !mcpserver.IsLoopback(host):
			return nil, fail(exitRefused, "let people sign in, with --accounts; or give a loopback address, as 127.0.0.1:"+port,
				"serve at %s: others could reach it, and nobody is asked to sign in", c.Hub.Address)
		case len(c.Hub.Proxies) > 0 || c.Hub.Public != "" && !loopbackURL(c.Hub.Public):
			return nil, fail(exitRefused, "let people sign in, with --accounts; or leave --proxy and --public out",
				"serve behind a proxy: others could reach it, and nobody is asked to sign in")
		}
	}
	l, err := net.Listen("tcp", c.Hub.Address)
	if err != nil {
		if oe, ok := errors.AsType[*net.OpError](err); ok {
			err = oe.Err
		}
		return nil, fail(exitFound, "if it is in use, take another port: --addr "+net.JoinHostPort(host, "0")+" takes any", "serve at %s: %w", c.Hub.Address, err)
	}
	return l, nil
}

// hubURL is where people reach the hub.
func hubURL(c *config.Config, at net.Addr) string {
	if c.Hub.Public != "" {
		return strings.TrimSuffix(c.Hub.Public, "/")
	}
	return "http://" + reachable(at)
}
