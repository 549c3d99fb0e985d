// Package network gives a sandbox the network that its spec asks for by
// allow-list: it joins the proxy (sandbox/proxy) to the listener that the first
// process of a sandbox passes to us.
package network

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"sync"

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/proxy"
)

// Port is where the proxy listens in a sandbox.
const Port = 3128

// bundleFile is where a sandbox finds the roots of the system and what signs
// for the hosts with secrets.
const bundleFile = "/run/loadout/roots.pem"

// Proxy is the proxy of one sandbox. The nil Proxy is that of a sandbox without
// one.
type Proxy struct {
	server  *proxy.Server
	serving sync.WaitGroup
	ca      []byte
	bundle  []byte
	// Address is where a sandbox finds the proxy; default is Port on its
	// 127.0.0.1.
	Address string
}

// New returns the proxy for the network of a spec, nil where it asks for none.
func New(spec *sandbox.Spec) (*Proxy, error) {
	n := &spec.Network
	if n.Mode != sandbox.ProxyNetwork {
		return nil, nil
	}
	opts := proxy.Options{Allow: n.Allow, Private: n.Private}
	for _, in := range n.Inject {
		opts.Secrets = append(opts.Secrets, proxy.Injection{Host: in.Host, Header: in.Header, Value: in.Prefix + in.Secret.Reveal(), Name: in.Secret.Name})
	}
	if n.Log != nil {
		opts.Log = func(d proxy.Decision) {
			n.Log.LogAttrs(context.Background(), slog.LevelInfo, "network of a sandbox", slog.String("host", spec.Hide(d.Host)), slog.Int("port", int(d.Port)),
				slog.String("method", d.Method), slog.Bool("allowed", d.Allowed), slog.String("reason", spec.Hide(d.Reason)), slog.Int64("bytes", d.Bytes))
		}
	}
	server, err := proxy.New(opts)
	if err != nil {
		return nil, fmt.Errorf("network of the sandbox: %w", err)
	}
	p := &Proxy{server: server, ca: server.CA()}
	if p.ca != nil {
		if p.bundle, err = server.CABundle(); err != nil {
			p.bundle = p.ca
		}
	}
	return p, nil
}

// Files are what the sandbox is to have for the proxy.
func (p *Proxy) Files() []stage.Text {
	if p == nil || p.ca == nil {
		return nil
	}
	return []stage.Text{{Path: bundleFile, Data: string(p.bundle), Mode: 0o444}}
}

// Environment is the spec with the variables by which programs find the proxy.
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
	// Whatever the program, it trusts what this system trusts: some bring roots
	// of their own and know nothing of a company's.
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

// Serve serves the listener until the proxy is closed.
func (p *Proxy) Serve(l net.Listener) {
	p.serving.Go(func() { p.server.Serve(l) }) // ends with an error that says that it was closed
}

// Denied are the hosts that were refused.
func (p *Proxy) Denied() []string {
	if p == nil {
		return nil
	}
	return p.server.Denied()
}

// Close ends every connection and waits.
func (p *Proxy) Close() {
	if p == nil {
		return
	}
	p.server.Close()
	p.serving.Wait()
}
