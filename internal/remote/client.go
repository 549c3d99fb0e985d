package remote

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"
)

// New returns a client. It makes no connections.
func New(o *Options) *Client {
	c := &Client{
		proxy: http.ProxyFromEnvironment,
		dial:  (&net.Dialer{}).DialContext,
		tls:   &tls.Config{},
		hosts: knownHosts,
	}
	c.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	if o != nil {
		c.opts = *o
	}
	c.opts.Limits = c.opts.Limits.withDefaults()
	if c.opts.TempDir == "" {
		c.opts.TempDir = os.TempDir()
	}
	return c
}

func (l Limits) withDefaults() Limits {
	if l.Download == 0 {
		l.Download = 512 << 20
	}
	if l.Unpacked == 0 {
		l.Unpacked = 1 << 30
	}
	if l.Entries == 0 {
		l.Entries = 100_000
	}
	if l.Skills == 0 {
		l.Skills = 10_000
	}
	if l.Memory == 0 {
		l.Memory = gitMemory
	}
	if l.Time == 0 {
		l.Time = 10 * time.Minute
	}
	return l
}

// Open finds the skills at a location. ctx limits Open, but not the use of the
// collection. The caller must close the collection.
//
// Open returns a [*NotFoundError], a [*DeniedError], an [*AddressError], an
// [*UntrustedError], a [*StatusError], a [*TooLargeError], [ErrNoGit], or a
// [*skill.RefusedError] for unsafe content. Other errors come from the network
// or the disk.
func (c *Client) Open(ctx context.Context, l Location) (*Collection, error) {
	if err := c.checkTrusted(l); err != nil {
		return nil, err
	}
	ctx, cancel := c.startSession(ctx, l)
	defer cancel()
	switch l.Kind {
	case Git:
		return c.openGit(ctx, l)
	case Archive:
		return c.openArchiveURL(ctx, l)
	case File:
		return c.openFileURL(ctx, l)
	case Index:
		return c.openIndex(ctx, l)
	case Local:
		return c.openLocal(ctx, l)
	}
	return nil, fmt.Errorf("open %s: unknown location kind %q", l.displayURL(), l.Kind)
}

// ReadFile returns the content of a file of at most limit bytes. It checks hosts
// as Open does, but sends no credential for a file that does not exist.
func (c *Client) ReadFile(ctx context.Context, url string, limit int64) ([]byte, error) {
	ctx, cancel := c.startSession(ctx, Location{Kind: Index, URL: url})
	defer cancel()
	resp, err := c.fetch(ctx, url, "file")
	if err != nil {
		return nil, err
	}
	return readFile(resp.Body, cleanAddress(resp.Request.URL), limit)
}
