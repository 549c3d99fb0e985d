// Package network connects a sandbox to the proxy that enforces its host
// allowlist. The proxy serves a listener that the stage opens in the sandbox.
package network

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"sync"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/proxy"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// Port is the proxy's port in the sandbox.
const Port = 3128

// bundleFile is the sandbox path of the root certificates of the system and the
// proxy.
const bundleFile = "/run/loadout/roots.pem"

// Proxy serves the HTTP proxy of a sandbox. A nil *Proxy is valid and means
// that there is no proxy.
type Proxy struct {
	server  *proxy.Server
	serving sync.WaitGroup
	ca      []byte
	bundle  []byte
	// Address is the proxy's address in the sandbox. The default is port [Port]
	// on 127.0.0.1.
	Address string
}

// New returns the proxy that a spec requests, or nil if it requests none.
func New(spec *sandbox.Spec) (*Proxy, error) {
	n := &spec.Network
	if len(n.Allow) == 0 {
		return nil, nil
	}
	opts := proxy.Options{Allow: n.Allow, Private: n.Private}
	for _, in := range n.Inject {
		opts.Secrets = append(opts.Secrets, proxy.Injection{Host: in.Host, Header: in.Header, Value: in.Prefix + in.Secret.Reveal(), Name: in.Secret.Name})
	}
	if n.Answer != nil {
		opts.Answer = func(r proxy.Request) []byte { return n.Answer(sandbox.Request(r)) }
	}
	if n.Log != nil {
		opts.Log = func(d proxy.Decision) {
			n.Log.LogAttrs(context.Background(), slog.LevelInfo, "network of a sandbox", slog.String("host", execute.RedactText(spec, d.Host)), slog.Int("port", int(d.Port)),
				slog.String("method", d.Method), slog.Bool("allowed", d.Allowed), slog.String("reason", execute.RedactText(spec, d.Reason)), slog.Int64("bytes", d.Bytes))
		}
	}
	server, err := proxy.New(opts)
	if err != nil {
		return nil, fmt.Errorf("start network proxy: %w", err)
	}
	p := &Proxy{server: server, ca: server.CA()}
	if p.ca != nil {
		if p.bundle, err = server.CABundle(); err != nil {
			p.bundle = p.ca
		}
	}
	return p, nil
}

// Files returns the files that programs in the sandbox need to use the proxy.
func (p *Proxy) Files() []stage.Text {
	if p == nil || p.ca == nil {
		return nil
	}
	return []stage.Text{{Path: bundleFile, Data: string(p.bundle), Mode: 0o444}}
}

// Environment returns a copy of spec with environment variables set to use the
// proxy.
func (p *Proxy) Environment(spec *sandbox.Spec) *sandbox.Spec {
	if p == nil {
		return spec
	}
	s := *spec
	s.Env = maps.Clone(spec.Env)
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	address := p.Address
	if address == "" {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(Port))
	}
	maps.Copy(s.Env, proxy.Env(address))
	// Make all programs trust the root certificates of the system. Some
	// programs use their own list, which lacks a company's own roots.
	roots := proxy.RootFile()
	if p.ca != nil {
		roots = bundleFile
	}
	if roots == "" {
		return &s
	}
	for _, name := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT"} {
		s.Env[name] = roots
	}
	return &s
}

// Serve accepts connections on the listener until the proxy is closed. Serve
// does not block.
func (p *Proxy) Serve(l net.Listener) {
	p.serving.Go(func() { p.server.Serve(l) }) // returns an error when the proxy is closed
}

// Denied returns the hosts to which connections were refused.
func (p *Proxy) Denied() []string {
	if p == nil {
		return nil
	}
	return p.server.Denied()
}

// Close closes all connections and waits for them to finish.
func (p *Proxy) Close() {
	if p == nil {
		return
	}
	p.server.Close()
	p.serving.Wait()
}
