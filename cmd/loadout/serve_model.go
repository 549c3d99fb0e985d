package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/llm/openai"
	"github.com/loadout-dev/loadout/mcpserver"
)

// newHubModels returns a function that creates the models of a hub: the
// configured one, and those that users define. The configured key is used for
// the configured model only; other models have a key of their own, or none.
func (a *app) newHubModels(ctx context.Context, c *config.Config, private []netip.Prefix) (func(*agents.ModelChoice, string) (llm.Model, error), error) {
	asDemo := demo.New(&demo.Options{Next: "For a real model: apply a Model to the hub, or set models.default for loadout serve."})
	own, choice := llm.Model(asDemo), chooseModel(c, &chatFlags{})
	if !choice.isDemo() {
		var err error
		if own, err = a.newModel(ctx, c, choice); err != nil {
			return nil, err
		}
	}
	public := newPublicClient(private)
	return func(m *agents.ModelChoice, key string) (llm.Model, error) {
		switch {
		case m == nil, m.BaseURL == "" && key == "" && m.Vendor+":"+m.Model.Model == own.Name():
			return own, nil
		case m.Vendor == "demo":
			return asDemo, nil
		}
		made, err := a.newDefinedModel(c, m, key, public, private)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Name, err)
		}
		return llm.Retry(made, nil), nil
	}, nil
}

// newDefinedModel creates a model defined by a user of the hub.
func (a *app) newDefinedModel(c *config.Config, m *agents.ModelChoice, key string, client *http.Client, private []netip.Prefix) (llm.Model, error) {
	if err := checkKeyTransport(m.BaseURL, key, private); err != nil {
		return nil, err
	}
	switch m.Vendor {
	case "anthropic":
		return anthropic.New(m.Model.Model, &anthropic.Options{Key: key, BaseURL: m.BaseURL, MaxTokens: c.Models.MaxTokens, HTTP: client})
	case "openai":
		if key == "" && m.BaseURL == "" {
			return nil, errors.New("no key: grant a secret to the model and name it as apiKey")
		}
		return openai.New(m.Model.Model, &openai.Options{Key: key, BaseURL: m.BaseURL, MaxTokens: c.Models.MaxTokens, HTTP: client})
	}
	return nil, fmt.Errorf("unknown vendor %s: want anthropic, openai or demo", m.Vendor)
}

// hubPrices returns the configured prices of models, and the context window of
// the configured model.
func hubPrices(c *config.Config) (price func(string) (llm.Price, bool), window func(string) int) {
	price = func(name string) (llm.Price, bool) {
		p, known := c.Models.Price(name)
		return llm.Price(p), known
	}
	return price, func(name string) int {
		if name != "" && name == c.Models.Default {
			return c.Models.Window
		}
		return 0
	}
}

// checkKeyTransport returns an error if a key would be sent unencrypted over a
// network.
func checkKeyTransport(base, key string, private []netip.Prefix) error {
	if base == "" || key == "" {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil {
		return errors.New("invalid baseUrl")
	}
	at, err := netip.ParseAddr(u.Hostname())
	near := err == nil && slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(at.Unmap()) })
	if u.Scheme != "https" && !near && !mcpserver.IsLoopback(u.Hostname()) {
		return errors.New("refusing to send a key unencrypted: use a baseUrl with https")
	}
	return nil
}

// newPublicClient returns a client for public addresses and the given private
// networks. It checks the address of each connection and follows no redirects,
// because models defined by users must not reach into the network of the hub.
func newPublicClient(private []netip.Prefix) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		at := to.Addr().Unmap()
		if kind := address.NonPublicReason(at); kind != "" && !slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(at) }) {
			return fmt.Errorf("refusing to connect to the %s address %s; the operator of the hub can allow it with --private", kind, at)
		}
		return nil
	}}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 16},
	}
}
