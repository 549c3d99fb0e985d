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

// Bounds and times of a connection, where nothing else is said.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultCallTimeout    = 180 * time.Second
	DefaultProbeTimeout   = 10 * time.Second
	DefaultMessageSize    = 64 << 20 // bytes
)

// A Dialer connects to servers. Its fields must not be changed after the first
// Dial; it is safe for concurrent use.
type Dialer struct {
	// Spawn starts the command of a stdio server; nil refuses such servers.
	Spawn Spawner
	// HTTP is the client of HTTP, SSE and WebSocket; its Transport and Timeout
	// count, nil is the default one. Its CheckRedirect is replaced. For a
	// configuration with an Owner, of the Transport only the TLS configuration of
	// an [*http.Transport] counts: what is dialled is checked by ourselves.
	HTTP *http.Client
	// Private are the addresses that a configuration with an Owner may reach
	// although they are not public; another one is a [*PrivateAddressError].
	Private []netip.Prefix
	// OAuth gives the handler that answers a 401 of the server at url; nil, or a
	// nil handler, and the refusal is an error. It is asked once for each
	// connection.
	OAuth func(c *Config, url string) auth.OAuthHandler
	// Client is how we name ourselves; zero is loadout.
	Client mcp.Implementation
	// Logger gets what is odd but no error; nil discards it.
	Logger *slog.Logger
	// Probe bounds the wait for the answer to server/discover; 0 is
	// [DefaultProbeTimeout]. It never goes beyond half of the connect timeout,
	// so that time is left for the older handshake.
	Probe time.Duration
	// MaxMessage bounds one message in bytes; 0 is [DefaultMessageSize].
	MaxMessage int
	// Transports are further transports by their type, before the built-in ones.
	Transports map[string]func(c *Config, url string) (mcp.Transport, error)

	mu   sync.Mutex
	eras map[string]string // by transport, URL and command: what the last connection spoke
}

// A Guide is an OAuth handler that knows what a person can do where the server
// refuses us: it stands in the [*AuthError].
type Guide interface {
	auth.OAuthHandler
	// Next says it in one line. It must not wait.
	Next() string
}

// DialOptions are the choices for one connection.
type DialOptions struct {
	// Options are those of the protocol client: its handlers and capabilities. Do
	// not set its ToolListChangedHandler, PromptListChangedHandler or
	// ResourceListChangedHandler: use Changed, which survives a lost stream.
	Options *mcp.ClientOptions
	// Prepare, where set, is called with the protocol client before it connects,
	// to add middleware: direct exposure passes on what the handlers of Options
	// would check or answer.
	Prepare func(*mcp.Client)
	// Changed is called for tools/list_changed ("tools"), "prompts" and
	// "resources", from the goroutine that reads: it must not wait. Against a
	// modern server this keeps a subscriptions/listen stream open, and opens it
	// again when it is lost. After a loss, Changed is called for what may have
	// been missed.
	Changed func(what string)
	// Era says which handshake to make: [Modern], [Legacy], or "" to find out.
	Era string
	// URL is which of the URLs of the configuration; "" is the first.
	URL string
}

// Conn is a connection to a server. Its methods are safe for concurrent use.
// Close ends it, and the process of a stdio server with it.
type Conn struct {
	*mcp.ClientSession
	Era       string // [Modern] or [Legacy]
	Transport string // the type that was found

	link *link
	done chan struct{} // closed when the session has ended, by whoever's doing
}

// Notices is how many notifications were read from the server, those of
// cancellation aside. The SDK may hand out an answer before those that came
// before it have been handled: who must not lose them waits for this many.
func (c *Conn) Notices() int64 { return c.link.notices.Load() }

// Dial connects to the server of c. It finds the transport where c does not say,
// and the era: a stdio server that is silent on the probe, or ends, is started
// again for the older handshake. ctx bounds all of it, by [Config.ConnectTimeout]
// at the most; it does not end the connection later.
//
// The error names the server, what was tried, and the last lines that it wrote
// to standard error. It is an [*AuthError] where the server wants credentials.
func (d *Dialer) Dial(ctx context.Context, c *Config, o *DialOptions) (*Conn, error) {
	if o == nil {
		o = &DialOptions{}
	}
	limit := c.ConnectTimeout
	if limit <= 0 {
		limit = DefaultConnectTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &lateError{"no connection", limit})
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

// transportTypes are the transports to try, in order.
func transportTypes(c *Config, u string) ([]string, error) {
	switch {
	case c.Type != "":
		if c.Type != Stdio && u == "" && c.Command == "" {
			return nil, errors.New("it has no url; add one to its configuration")
		}
		if c.Type == Stdio && c.Command == "" {
			return nil, errors.New("it has no command; add one to its configuration")
		}
		return []string{c.Type}, nil
	case u == "" && c.Command == "":
		return nil, errors.New("it has neither a command nor a url; add one to its configuration")
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
	plan := firstTry(o.Era, d.era(key), d.probe(ctx))
	for {
		conn, l, err := d.try(ctx, c, o, typ, u, plan)
		if err == nil {
			d.remember(key, conn.Era)
			return conn, nil
		}
		next, ok := nextTry(plan, typ, o.Era, l, err)
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

// try makes one connection, or leaves nothing behind. The link is there for its
// report even when it failed; it is closed then.
func (d *Dialer) try(ctx context.Context, c *Config, o *DialOptions, typ, u string, p attempt) (*Conn, *link, error) {
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
		opts.Logger = slog.New(&concealing{opts.Logger.Handler(), c}) // the SDK logs what a server says
	}
	if opts.Capabilities == nil {
		opts.Capabilities = &mcp.ClientCapabilities{} // the SDK's default promises roots
	}
	client := mcp.NewClient(d.client(), &opts)
	client.AddReceivingMiddleware(l.notice)
	if typ == Stdio { // requests of HTTP have more to them
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
		l.end(nil)
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

// Close ends the connection, calls that are on their way included, and waits for
// the process of a stdio server to be gone. It may be called more than once.
func (c *Conn) Close() error {
	c.link.begin(nil)
	c.ClientSession.Close()
	c.link.group.Wait()
	return nil
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Stderr is the last of what the process of a stdio server wrote to standard
// error, at most 64 KiB, without the secrets of its configuration.
func (c *Conn) Stderr() string { return c.link.stderr() }

// Warnings are oddities of the server that were borne: lines on its standard
// output that are no messages. There are a few at the most.
func (c *Conn) Warnings() []string { return c.link.warnings() }
