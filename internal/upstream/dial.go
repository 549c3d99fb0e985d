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

// Default limits of a connection.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultCallTimeout    = 180 * time.Second
	DefaultProbeTimeout   = 10 * time.Second
	DefaultMessageSize    = 64 << 20 // bytes
)

// A Dialer connects to servers. Its fields must not change after the first
// Dial. It is safe for concurrent use.
type Dialer struct {
	// Spawn starts the command of a stdio server. If nil, stdio servers are
	// refused.
	Spawn Spawner
	// HTTP supplies the Transport, Timeout and cookie jar for HTTP, SSE and
	// WebSocket; nil means the default client. Its CheckRedirect is replaced.
	// For a configuration with an Owner, only the TLS configuration of an
	// [*http.Transport] is used, because the dialer itself checks the
	// addresses.
	HTTP *http.Client
	// Private are non-public addresses that a configuration with an Owner may
	// connect to. Others are refused with a [*PrivateAddressError].
	Private []netip.Prefix
	// OAuth returns the handler that answers a 401 of the server at url. It is
	// called once for each connection. If it or the handler is nil, a 401 is an
	// error.
	OAuth func(c *Config, url string) auth.OAuthHandler
	// Client is the implementation name sent to servers. The default is
	// loadout.
	Client mcp.Implementation
	// Logger receives tolerated protocol violations. Nil discards them.
	Logger *slog.Logger
	// Probe limits the wait for an answer to server/discover. Zero means
	// [DefaultProbeTimeout]. It is at most half of the connect timeout, to
	// leave time for the legacy handshake.
	Probe time.Duration
	// MaxMessage limits the size of a message in bytes. Zero means
	// [DefaultMessageSize].
	MaxMessage int
	// Transports are additional transports by type. They take precedence over
	// the built-in ones.
	Transports map[string]func(c *Config, url string) (mcp.Transport, error)

	mu   sync.Mutex
	eras map[string]string // by transport, URL and command: era of the last connection
}

// WithSpawn returns a new dialer with the settings of d that starts commands
// with spawn.
func (d *Dialer) WithSpawn(spawn Spawner) *Dialer {
	return &Dialer{Spawn: spawn, HTTP: d.HTTP, Private: d.Private, OAuth: d.OAuth, Client: d.Client, Logger: d.Logger, Probe: d.Probe,
		MaxMessage: d.MaxMessage, Transports: d.Transports}
}

// A NextStepper is an OAuth handler that knows what the user can do if the
// server refuses the token. The [*AuthError] includes it.
type NextStepper interface {
	auth.OAuthHandler
	// Next returns the next step in one line. It must not block.
	Next() string
}

// DialOptions configure one connection.
type DialOptions struct {
	// Options are the handlers and capabilities of the protocol client. Do not
	// set its ToolListChangedHandler, PromptListChangedHandler or
	// ResourceListChangedHandler: Changed also works after a lost stream.
	Options *mcp.ClientOptions
	// Prepare, if set, is called with the protocol client before it connects,
	// for example to add middleware.
	Prepare func(*mcp.Client)
	// Changed is called with "tools", "prompts" or "resources" when that list
	// changed. It is called by the reading goroutine and must not block. On a
	// modern server it needs a subscriptions/listen stream, which is reopened
	// when lost. Afterwards Changed is called for each list, because
	// notifications may have been missed.
	Changed func(what string)
	// Era selects the handshake: [Modern], [Legacy], or "" to detect it.
	Era string
	// URL selects one of the URLs of the configuration. "" means the first.
	URL string
}

// Conn is a connection to a server. Its methods are safe for concurrent use.
// Close ends it and the process of a stdio server.
type Conn struct {
	*mcp.ClientSession
	Era       string // [Modern] or [Legacy]
	Transport string // the detected transport

	link *link
	done chan struct{} // closed when the session ended
}

// NotificationCount returns how many notifications were read from the server,
// except cancellations. The SDK may deliver an answer before earlier
// notifications are handled; wait for this count to see them all.
func (c *Conn) NotificationCount() int64 { return c.link.notices.Load() }

// Dial connects to the server of c. It detects the transport if c names none,
// and the era. A stdio server that does not answer the probe, or exits, is
// started again for the legacy handshake. ctx and [Config.ConnectTimeout] limit
// the whole attempt, but not the life of the connection.
//
// The error names the server, the attempt, and the last lines of standard
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
		if ctx.Err() != nil || !triesOlder(err) {
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
			return nil, errors.New("no url in its configuration")
		}
		if c.Type == Stdio && c.Command == "" {
			return nil, errors.New("no command in its configuration")
		}
		return []string{c.Type}, nil
	case u == "" && c.Command == "":
		return nil, errors.New("neither command nor url in its configuration")
	case u == "":
		return []string{Stdio}, nil
	case strings.HasPrefix(u, "ws://") || strings.HasPrefix(u, "wss://"):
		return []string{WebSocket}, nil
	}
	return []string{HTTP, SSE}, nil
}

// dialType connects over one transport, with the probe and its fallbacks.
func (d *Dialer) dialType(ctx context.Context, c *Config, o *DialOptions, typ, u string) (*Conn, error) {
	key := strings.Join(append([]string{typ, u, c.Name, c.Dir, c.Command}, c.Args...), "\x00")
	plan := firstAttempt(o.Era, d.era(key), d.probeTimeout(ctx))
	for {
		conn, l, err := d.dialOnce(ctx, c, o, typ, u, plan)
		if err == nil {
			d.remember(key, conn.Era)
			return conn, nil
		}
		next, ok := nextAttempt(plan, typ, o.Era, l, err)
		if !ok || ctx.Err() != nil {
			d.remember(key, "")
			if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
				err = cause
			}
			return nil, dialError(c, u, typ, l, err)
		}
		plan = next
	}
}

// dialOnce makes one attempt and cleans up if it fails. The link is returned
// even then, closed, for its error report.
func (d *Dialer) dialOnce(ctx context.Context, c *Config, o *DialOptions, typ, u string, p attempt) (*Conn, *link, error) {
	l := newLink(c, u, typ, d)
	inner, err := d.transport(typ, c, u, l)
	if err != nil {
		return nil, l, err
	}
	l.inner = inner
	l.bound = p.bound
	l.changed = o.Changed

	opts := mcp.ClientOptions{}
	if o.Options != nil {
		opts = *o.Options
	}
	if opts.Logger != nil {
		opts.Logger = slog.New(&redactHandler{opts.Logger.Handler(), c}) // the SDK logs messages of the server
	}
	if opts.Capabilities == nil {
		opts.Capabilities = &mcp.ClientCapabilities{} // the SDK's default would advertise roots
	}
	client := mcp.NewClient(d.client(), &opts)
	client.AddReceivingMiddleware(l.notice)
	if typ == Stdio { // HTTP requests have more context
		client.AddSendingMiddleware(l.calls)
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
	conn := &Conn{ClientSession: s, Era: eraOf(s), Transport: typ, link: l, done: make(chan struct{})}
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

// Close ends the connection and its running calls, and waits for the process of
// a stdio server. It may be called several times.
func (c *Conn) Close() error {
	c.link.beginClose(nil)
	c.ClientSession.Close()
	c.link.group.Wait()
	return nil
}

// Done returns a channel that is closed when the connection ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Stderr returns the last 64 KiB of standard error of a stdio server, with
// secrets redacted.
func (c *Conn) Stderr() string { return c.link.stderr() }

// Warnings returns tolerated protocol violations of the server, such as lines
// on standard output that are not messages. Only a few are recorded.
func (c *Conn) Warnings() []string { return c.link.warnings() }
