package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/telemetry"
)

// hubFlags maps flags of the serve command to configuration keys.
var hubFlags = map[string]string{
	"addr": "hub.address", "data": "hub.data", "database": "hub.database", "redis": "hub.redis", "key-file": "hub.key_file", "public": "hub.public",
	"proxy": "hub.proxies", "accounts": "hub.accounts", "admin": "hub.admin", "admin-password-file": "hub.admin_password_file",
	"oidc-issuer": "hub.oidc_issuer", "oidc-client": "hub.oidc_client", "oidc-secret": "hub.oidc_secret", "oidc-everyone": "hub.oidc_everyone",
	"private": "hub.private", "runs": "hub.runs", "drain": "hub.drain", "log": "hub.log",
}

func (a *app) serveCommand() *cobra.Command {
	var check, open bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a hub: skills, agents and conversations for a team",
		Long: `Run a hub over HTTP: upload, review, version and share skills, build agents from them,
chat, and serve one MCP endpoint for the team. By default the hub serves only you, on
this machine, from one SQLite file and without sign-in. Other addresses need --accounts;
create the first administrator with the printed link or with --admin-password-file. With
--database and --redis several nodes share a hub; each node needs the encryption key in
LOADOUT_HUB_KEY or --key-file.

On SIGTERM or Ctrl-C, the hub finishes its running work and exits. A second signal stops
it immediately.`,
		Example: `  loadout serve --open
  loadout serve --addr 0.0.0.0:8484 --accounts --public https://hub.example.com --proxy 10.0.0.0/8
  loadout serve --database postgres://hub@db.example.com/hub --redis redis://redis.example.com
  loadout serve --check`,
		Args: argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadConfigWithFlags(cmd, hubFlags)
			if err != nil {
				return err
			}
			if check {
				return a.checkHub(cmd.Context(), c)
			}
			return a.serveHub(cmd.Context(), c, open)
		},
	}
	f := cmd.Flags()
	f.String("addr", "", "listen at `ADDR`; default 127.0.0.1:8484")
	hubLocationFlags(cmd)
	f.String("redis", "", "notify other nodes through Redis at `URL`, as redis://host:6379")
	f.String("key-file", "", "encrypt secrets with the keys in `FILE`")
	f.String("public", "", "public `URL` of the hub, such as https://hub.example.com")
	f.StringArray("proxy", nil, "trust client addresses from reverse proxies at `CIDR` (repeatable)")
	f.Bool("accounts", false, "enable accounts; required unless the address is loopback")
	f.String("admin", "", "`NAME` of the first administrator; default admin")
	f.String("admin-password-file", "", "create the first administrator with the password in `FILE`")
	f.String("oidc-issuer", "", "sign in with the OpenID Connect provider at `URL`")
	f.String("oidc-client", "", "client `ID` of the hub at the provider")
	f.String("oidc-secret", "", "`NAME` of the variable or secret with the client secret")
	f.Bool("oidc-everyone", false, "create an account for every user of the provider")
	f.StringArray("private", nil, "allow models and servers at addresses in `CIDR` (repeatable)")
	f.Int("runs", 0, "run at most `N` scripts and servers of skills at once; default 4")
	f.Duration("drain", 0, "wait `TIME` for running work on shutdown, such as 30s; default 10s")
	f.String("log", "", "log `FORMAT`: text (default on a terminal) or json")
	f.BoolVar(&open, "open", false, "open the page in a browser")
	f.BoolVar(&check, "check", false, "check the stored data of the hub and report problems")
	completeFlag(cmd, "log", "text", "json")
	return cmd
}

// hubLocationFlags defines the flags that locate a hub's data.
func hubLocationFlags(cmd *cobra.Command) {
	cmd.Flags().String("data", "", "data directory `DIR` of the hub or node")
	cmd.Flags().String("database", "", "`URL` of the database, such as postgres://user@host/name")
}

// serveHub runs a hub until ctx is done. If open is set, it opens the hub's page in
// a browser.
func (a *app) serveHub(ctx context.Context, c *config.Config, open bool) (err error) {
	if c.Managed() {
		_, err := a.RequireUser(ctx, "", "serve")
		return err
	}
	if _, _, err := parseHubAddress(c); err != nil {
		return err
	}
	drain := time.Duration(c.Hub.Drain) * time.Second
	a.setShutdownTimeout(2*drain + traceFlushTimeout) // requests, then turns
	o, err := a.hubOptions(ctx, c)
	if err != nil {
		return err
	}
	if o.Tracer, err = a.startTracer(ctx, o.Logger); err != nil {
		return err
	}
	defer func() {
		sending, stop := context.WithTimeout(context.WithoutCancel(ctx), traceFlushTimeout)
		defer stop()
		err = errors.Join(err, o.Tracer.Close(sending))
	}()
	if a.Getenv("GOGC") == "" {
		setGCPercent(100) // a server keeps the memory that it takes to start
	}
	h, err := hub.Open(ctx, o)
	if err != nil {
		return classifyHubError(err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	l, err := listenHub(c, h)
	if err != nil {
		return err
	}
	setup, err := h.SetupPath(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	model, err := h.OwnModel(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	url := hubURL(c, l.Addr())
	a.printHubGreeting(o, h.Single(), url, setup, model)
	if open {
		a.openBrowser(url) // without the setup link, which other users could see in the list of processes
	}
	debug.FreeOSMemory() // release the memory used for opening
	if err := h.Serve(ctx, l); err != nil {
		return err
	}
	o.Logger.Info("hub stopped")
	return nil
}

// traceFlushTimeout is the time that shutdown waits for the last traces to be
// sent.
const traceFlushTimeout = 3 * time.Second

// startTracer returns a tracer, or nil if the environment does not enable
// tracing.
func (a *app) startTracer(ctx context.Context, log *slog.Logger) (*telemetry.Tracer, error) {
	if !telemetry.Enabled(a.Getenv) {
		return nil, nil
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	t, err := telemetry.Start(ctx, a.Getenv, telemetry.Options{Version: setup.ReadVersion().Version, Node: name, Logger: log})
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "see the variables in docs/hub.md, or unset OTEL_EXPORTER_OTLP_ENDPOINT", "%w", err)
	}
	return t, nil
}

// parseHubAddress returns the configured host and port to listen on.
func parseHubAddress(c *config.Config) (host, port string, err error) {
	const hint = "give an address such as 127.0.0.1:8484"
	host, port, err = net.SplitHostPort(c.Hub.Address)
	if ae, ok := errors.AsType[*net.AddrError](err); ok {
		err = errors.New(ae.Err)
	}
	if err != nil {
		return "", "", exit.Errorf(exit.Usage, hint, "serve at %q: %w", c.Hub.Address, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", "", exit.Errorf(exit.Usage, hint, "serve at %q: %q is not a port", c.Hub.Address, port)
	}
	return host, port, nil
}

// listenHub listens on the hub's address. If the hub has no sign-in, it rejects
// addresses that other machines can reach.
func listenHub(c *config.Config, h *hub.Hub) (net.Listener, error) {
	host, port, err := parseHubAddress(c)
	if err != nil {
		return nil, err
	}
	if h.Single() {
		switch {
		case !address.IsLoopback(host):
			return nil, exit.Errorf(exit.Refused, "enable sign-in with --accounts, or use a loopback address such as 127.0.0.1:"+port,
				"serve at %s: other machines could reach it without signing in", c.Hub.Address)
		case len(c.Hub.Proxies) > 0 || c.Hub.Public != "" && !isLoopbackURL(c.Hub.Public):
			return nil, exit.Errorf(exit.Refused, "enable sign-in with --accounts, or omit --proxy and --public",
				"serve behind a proxy: others could reach it without signing in")
		}
	}
	l, err := net.Listen("tcp", c.Hub.Address)
	if err != nil {
		if oe, ok := errors.AsType[*net.OpError](err); ok {
			err = oe.Err
		}
		return nil, exit.Errorf(exit.Failure, "if it is in use, use another port: --addr "+net.JoinHostPort(host, "0")+" picks a free one", "serve at %s: %w", c.Hub.Address, err)
	}
	return l, nil
}

// hubURL returns the URL at which users reach the hub.
func hubURL(c *config.Config, at net.Addr) string {
	if c.Hub.Public != "" {
		return strings.TrimSuffix(c.Hub.Public, "/")
	}
	return "http://" + clientAddress(at)
}
