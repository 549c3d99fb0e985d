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

// New returns a client. It does nothing until it is asked.
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

// Look says what is at a location. The context bounds the look, not the offer.
// Close the offer.
//
// The errors are a [*NotFoundError], a [*DeniedError], an [*AddressError], an
// [*UntrustedError], a [*StatusError], a [*TooLargeError], a [*skill.RefusedError] for what cannot be
// read safely, and [ErrNoGit]; others tell of the network and the disk.
func (c *Client) Look(ctx context.Context, l Location) (*Offer, error) {
	if err := c.admit(l); err != nil {
		return nil, err
	}
	ctx, cancel := c.begin(ctx, l)
	defer cancel()
	switch l.Kind {
	case Git:
		return c.lookGit(ctx, l)
	case Archive:
		return c.lookArchive(ctx, l)
	case File:
		return c.lookFile(ctx, l)
	case Index:
		return c.lookIndex(ctx, l)
	case Local:
		return c.lookLocal(ctx, l)
	}
	return nil, fmt.Errorf("look at %s: there is no kind of place %q", l.where(), l.Kind)
}
