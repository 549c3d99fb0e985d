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
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/llm/demo"
	"github.com/loadout-dev/loadout/llm/openai"
	"github.com/loadout-dev/loadout/mcpserver"
)

// hubModels returns the models of a hub: its own, which is that of the configuration,
// and those that people define. These have a key of their own, or none: that of the
// operator is for the hub's own model only.
func (a *app) hubModels(ctx context.Context, c *config.Config, private []netip.Prefix) (func(*kinds.ModelChoice, string) (llm.Model, error), error) {
	asDemo := demo.New(&demo.Options{Next: "For a real model: apply a Model to the hub, or set models.default for loadout serve."})
	own, choice := llm.Model(asDemo), chosenModel(c, &chatFlags{})
	if !choice.isDemo() {
		var err error
		if own, err = a.model(ctx, c, choice); err != nil {
			return nil, err
		}
	}
	public := publicClient(private)
	return func(m *kinds.ModelChoice, key string) (llm.Model, error) {
		switch {
		case m == nil, m.BaseURL == "" && key == "" && m.Vendor+":"+m.Model.Model == own.Name():
			return own, nil
		case m.Vendor == "demo":
			return asDemo, nil
		}
		made, err := a.definedModel(c, m, key, public, private)
		if err != nil {
			return nil, fmt.Errorf("the model %s: %w", m.Name, err)
		}
		return llm.Retry(made, nil), nil
	}, nil
}

// definedModel is a model that somebody defined on the hub.
func (a *app) definedModel(c *config.Config, m *kinds.ModelChoice, key string, client *http.Client, private []netip.Prefix) (llm.Model, error) {
	if err := keyMayGo(m.BaseURL, key, private); err != nil {
		return nil, err
	}
	switch m.Vendor {
	case "anthropic":
		return anthropic.New(m.Model.Model, &anthropic.Options{Key: key, BaseURL: m.BaseURL, MaxTokens: c.Models.MaxTokens, HTTP: client})
	case "openai":
		if key == "" && m.BaseURL == "" {
			return nil, errors.New("it has no key: grant it a secret, and name that as apiKey")
		}
		return openai.New(m.Model.Model, &openai.Options{Key: key, BaseURL: m.BaseURL, MaxTokens: c.Models.MaxTokens, HTTP: client})
	}
	return nil, fmt.Errorf("there is no vendor %s; it is anthropic, openai or demo", m.Vendor)
}

// hubPrices are what the configuration says of models: their prices, and how many tokens the
// hub's own takes at once.
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

// keyMayGo keeps a key from going over a network in clear.
func keyMayGo(base, key string, private []netip.Prefix) error {
	if base == "" || key == "" {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil {
		return errors.New("its baseUrl is no address")
	}
	at, err := netip.ParseAddr(u.Hostname())
	near := err == nil && slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(at.Unmap()) })
	if u.Scheme != "https" && !near && !mcpserver.IsLoopback(u.Hostname()) {
		return errors.New("a key is not sent in clear: give a baseUrl with https")
	}
	return nil
}

// publicClient reaches public addresses and those that the operator lets through, as they
// are when it connects, and follows no redirect: what people define must not lead into
// the network of the hub.
func publicClient(private []netip.Prefix) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		at := to.Addr().Unmap()
		if kind := address.NotPublic(at); kind != "" && !slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(at) }) {
			return fmt.Errorf("it is at the %s address %s, which is not reached from a hub; its operator could let it through with --private", kind, at)
		}
		return nil
	}}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 16},
	}
}
