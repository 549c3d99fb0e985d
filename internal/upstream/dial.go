package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Default timeouts and message size limit of a connection.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultCallTimeout    = 180 * time.Second
	DefaultProbeTimeout   = 10 * time.Second
	DefaultMessageSize    = 64 << 20 // bytes
)

// A Dialer connects to servers. It is safe for concurrent use. Its fields must
// not be changed after the first Dial.
type Dialer struct {
	// Spawn starts the command of a stdio server. If Spawn is nil, Dial returns
	// an error for stdio servers.
	Spawn Spawner
	// HTTP supplies the transport, timeout and cookie jar for HTTP, SSE and
	// WebSocket; nil means the default client. Its CheckRedirect is replaced.
	// If the configuration has an Owner, only the TLS settings of an
	// [*http.Transport] are used, because the dialer must check each address
	// itself.
	HTTP *http.Client
	// Private lists the non-public addresses that a configuration with an Owner
	// may connect to. Connections to other non-public addresses fail with a
	// [*PrivateAddressError].
	Private []netip.Prefix
	// OAuth returns the handler for a 401 response from the server at url. It
	// is called once per connection. If OAuth or the handler is nil, a 401
	// response is an error.
	OAuth func(c *Config, url string) auth.OAuthHandler
	// Client is the client name and version sent to servers. The default name
	// is loadout.
	Client mcp.Implementation
	// Logger logs protocol violations that are tolerated. Nil discards them.
	Logger *slog.Logger
	// Probe is the timeout of the server/discover request. Zero means
	// [DefaultProbeTimeout]. It is limited to half of the connect timeout, to
	// leave time for the legacy handshake.
	Probe time.Duration
	// MaxMessage is the maximum size of a message in bytes. Zero means
	// [DefaultMessageSize].
	MaxMessage int
	// Transports adds transports by type. They take precedence over the
	// built-in transports.
	Transports map[string]func(c *Config, url string) (mcp.Transport, error)

	mu   sync.Mutex
	eras map[string]string // era of the last connection, keyed by transport, URL and command
}

// WithSpawn returns a new dialer with the settings of d and the given spawner.
func (d *Dialer) WithSpawn(spawn Spawner) *Dialer {
	return &Dialer{Spawn: spawn, HTTP: d.HTTP, Private: d.Private, OAuth: d.OAuth, Client: d.Client, Logger: d.Logger, Probe: d.Probe,
		MaxMessage: d.MaxMessage, Transports: d.Transports}
}

// A NextStepper is an OAuth handler that tells the user what to do when a
// server rejects the token. The suggestion becomes part of the [*AuthError].
type NextStepper interface {
	auth.OAuthHandler
	// Next returns the suggestion, which must be a single line. It must not
	// block.
	Next() string
}

// A LocalError is an error of an OAuth handler that does not concern the
// server, for example because the stored sign-in cannot be read. It is
// displayed unchanged, and not treated as a failure of the server.
type LocalError interface {
	error
	Local()
}

// localError returns the [LocalError] in err's tree, or nil.
func localError(err error) LocalError {
	local, _ := errors.AsType[LocalError](err)
	return local
}

// DialOptions configures a connection.
type DialOptions struct {
	// Options sets the handlers and capabilities of the protocol client. Do not
	// set ToolListChangedHandler, PromptListChangedHandler or
	// ResourceListChangedHandler; use Changed, which also covers changes missed
	// while the stream was interrupted.
	Options *mcp.ClientOptions
	// Prepare, if set, is called with the protocol client before it connects,
	// for example to add middleware.
	Prepare func(*mcp.Client)
	// Changed is called with "tools", "prompts" or "resources" when that list
	// has changed. It is called by the reading goroutine and must not block.
	// For modern servers, Dial opens a subscriptions/listen stream. When an
	// interrupted stream is reopened, Changed is called for every list, because
	// notifications may have been missed.
	Changed func(what string)
	// Era selects the handshake: [Modern], [Legacy], or "" to detect it.
	Era string
	// URL selects one of the configured URLs. "" means the first URL.
	URL string
}

// Conn is a connection to a server. Its methods are safe for concurrent use.
// Close closes the connection and stops the process of a stdio server.
type Conn struct {
	*mcp.ClientSession
	Era       string // [Modern] or [Legacy]
	Transport string // the detected transport

	link *link
	done chan struct{} // closed when the session has ended
}

// NotificationCount returns the number of notifications read from the server,
// excluding cancellations. The SDK may deliver a response before it has handled
// earlier notifications; a caller can wait until the SDK has handled this many.
func (c *Conn) NotificationCount() int64 { return c.link.noticeCount.Load() }

// Dial connects to the server configured by c. It detects the protocol era and,
// if c specifies no transport, the transport. If a stdio server exits or does
// not respond to the probe, Dial restarts it for the legacy handshake. ctx and
// [Config.ConnectTimeout] apply to the whole attempt, but not to the
// established connection.
//
// The error includes the server's name and the last lines of its standard
// error. It is an [*AuthError] if the server requires credentials.
func (d *Dialer) Dial(ctx context.Context, c *Config, o *DialOptions) (*Conn, error) {
	if o == nil {
		o = &DialOptions{}
	}
	limit := c.ConnectTimeout
	if limit <= 0 {
		limit = DefaultConnectTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{"no connection", limit})
	defer cancel()

	u := o.URL
	if u == "" && len(c.URLs) > 0 {
		u = c.URLs[0]
	}
	types, err := transportTypes(c, u)
	if err != nil {
		return nil, dialError(c, u, "", nil, err)
	}
	var first error
	for _, typ := range types {
		conn, err := d.dialType(ctx, c, o, typ, u)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || !shouldTrySSE(err) {
			break
		}
	}
	return nil, first
}

// transportTypes returns the transports to try, in order.
func transportTypes(c *Config, u string) ([]string, error) {
	switch {
	case c.Type != "":
		if c.Type != Stdio && u == "" && c.Command == "" {
			return nil, errors.New("configuration has no url")
		}
		if c.Type == Stdio && c.Command == "" {
			return nil, errors.New("configuration has no command")
		}
		return []string{c.Type}, nil
	case u == "" && c.Command == "":
		return nil, errors.New("configuration has neither command nor url")
	case u == "":
		return []string{Stdio}, nil
	case strings.HasPrefix(u, "ws://") || strings.HasPrefix(u, "wss://"):
		return []string{WebSocket}, nil
	}
	return []string{HTTP, SSE}, nil
}

// dialType connects over the given transport. Unless it knows which protocol
// era the server supports, it first probes the server. If an attempt fails, it
// may try another handshake.
func (d *Dialer) dialType(ctx context.Context, c *Config, o *DialOptions, typ, u string) (*Conn, error) {
	key := strings.Join(append([]string{typ, u, c.Name, c.Dir, c.Command}, c.Args...), "\x00")
	plan := firstAttempt(o.Era, d.findEra(key), d.probeTimeout(ctx))
	for {
		conn, l, err := d.dialOnce(ctx, c, o, typ, u, plan)
		if err == nil {
			d.rememberEra(key, conn.Era)
			return conn, nil
		}
		next, ok := nextAttempt(plan, typ, o.Era, l, err)
		if !ok || ctx.Err() != nil {
			d.rememberEra(key, "")
			if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
				err = cause
			}
			return nil, dialError(c, u, typ, l, err)
		}
		plan = next
	}
}

// dialOnce makes a single connection attempt and cleans up if it fails. It also
// returns the closed link of a failed attempt, which the caller needs to report
// the error.
func (d *Dialer) dialOnce(ctx context.Context, c *Config, o *DialOptions, typ, u string, p attempt) (*Conn, *link, error) {
	l := newLink(c, u, typ, d)
	inner, err := d.transport(typ, c, u, l)
	if err != nil {
		return nil, l, err
	}
	l.inner = inner
	l.probeLimit = p.timeout
	l.changed = o.Changed

	opts := mcp.ClientOptions{}
	if o.Options != nil {
		opts = *o.Options
	}
	if opts.Logger != nil {
		opts.Logger = slog.New(&redactHandler{opts.Logger.Handler(), c}) // the SDK logs messages from the server
	}
	if opts.Capabilities == nil {
		opts.Capabilities = &mcp.ClientCapabilities{} // the SDK's default would advertise roots
	}
	client := mcp.NewClient(d.client(), &opts)
	client.AddReceivingMiddleware(l.observeListChanges)
	addSkillMethods(client)
	if typ == Stdio { // HTTP requests need more context from the SDK
		client.AddSendingMiddleware(l.interceptToolCalls)
	}
	if o.Prepare != nil {
		o.Prepare(client)
	}
	version := ""
	if p.era == Legacy {
		version = legacyVersion
	}
	s, err := client.Connect(ctx, l, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		l.closeAndWait(nil)
		return nil, l, err
	}
	conn := &Conn{ClientSession: s, Era: sessionEra(s), Transport: typ, link: l, done: make(chan struct{})}
	l.group.Go(func() {
		s.Wait()
		close(conn.done)
	})
	l.listen(s, o)
	return conn, l, nil
}

func (d *Dialer) client() *mcp.Implementation {
	i := d.Client
	if i.Name == "" {
		i.Name = "loadout"
	}
	if i.Version == "" {
		i.Version = "dev"
	}
	return &i
}

func (d *Dialer) maxMessage() int {
	if d.MaxMessage > 0 {
		return d.MaxMessage
	}
	return DefaultMessageSize
}

func (d *Dialer) logger() *slog.Logger {
	if d.Logger != nil {
		return d.Logger
	}
	return slog.New(slog.DiscardHandler)
}

// Close closes the connection, cancels its running calls, and waits for a stdio
// server's process to exit. It may be called more than once.
func (c *Conn) Close() error {
	c.link.beginClose(nil)
	c.ClientSession.Close()
	c.link.group.Wait()
	return nil
}

// Done returns a channel that is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Stderr returns the last 64 KiB of a stdio server's standard error, with
// secrets redacted.
func (c *Conn) Stderr() string { return c.link.stderr() }

// Warnings describes tolerated protocol violations, such as lines on standard
// output that are not messages. Only the first few are recorded.
func (c *Conn) Warnings() []string { return c.link.warnings() }
