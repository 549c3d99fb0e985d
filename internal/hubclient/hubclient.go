// Package hubclient sends API requests to a hub, such as documents to apply.
//
// Its errors have exit codes, and hints that name a flag or environment
// variable. Start reading at [New].
package hubclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/terminal"
)

const (
	// DefaultAddress is the default address of a hub on this machine.
	DefaultAddress = "http://127.0.0.1:8484"
	// timeout is the time limit for a request to a hub. maxResponse is the
	// maximum size of a response, in bytes.
	timeout     = time.Minute
	maxResponse = 32 << 20
)

// Client sends requests to a hub with the user's token. It sends the token only
// to that hub, and never over unencrypted HTTP to another machine.
type Client struct {
	baseURL *url.URL
	token   string
	http    *http.Client
}

// New returns a client for the hub at the given URL. The token may be empty.
func New(hub, token string) (*Client, error) {
	const hint = "give the address as https://HOST, with --hub or LOADOUT_HUB"
	at, err := url.Parse(strings.TrimSuffix(hub, "/"))
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.RawQuery != "" || at.Fragment != "" {
		return nil, exit.Errorf(exit.Usage, hint, "invalid address of the hub")
	}
	if at.User != nil {
		return nil, exit.Errorf(exit.Usage, "omit them, and put a token into LOADOUT_HUB_TOKEN", "the address of the hub contains a user name or password")
	}
	c := &Client{baseURL: at, token: strings.TrimSpace(token)}
	if c.token != "" && at.Scheme == "http" && !address.IsLoopback(at.Host) {
		return nil, exit.Errorf(exit.Refused, hint+"; or unset LOADOUT_HUB_TOKEN", "the token is not sent: %s uses plain http, where others can read it", terminal.Plain(at.Host))
	}
	c.http = &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// problem is an error response from a hub, as defined by RFC 9457.
type problem struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Next    string `json:"next"`
	Request string `json:"request"`
}

// Response is a hub's response, with any HTTP status.
type Response struct {
	Status int
	Body   []byte
	hub    *url.URL
}

// Send sends a request to an API path. It returns an error only if no hub
// responds. An error response is returned as a Response; see [Response.Err].
func (c *Client) Send(ctx context.Context, method, path, kind string, body []byte) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.baseURL.String()+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "give the address as https://HOST", "address of the hub: %w", err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.connectionError(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, c.connectionError(ctx, err)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, exit.Errorf(exit.Failure, "give that address with --hub or LOADOUT_HUB", "%s redirects to %s; redirects are not followed", c.baseURL, terminal.Plain(resp.Header.Get("Location")))
	case len(data) > maxResponse, len(data) > 0 && media != "application/json" && media != "application/problem+json":
		return nil, exit.Errorf(exit.Missing, "give the address of a hub with --hub or LOADOUT_HUB", "no hub at %s (status %d)", c.baseURL, resp.StatusCode)
	}
	return &Response{resp.StatusCode, data, c.baseURL}, nil
}

// connectionError returns an error that says why a hub did not respond.
func (c *Client) connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok { // omit the URL, which the message already contains
		err = e.Err
	}
	return exit.Errorf(exit.Missing, "start it with: loadout serve; or give its address with --hub or LOADOUT_HUB", "cannot reach the hub at %s: %w", c.baseURL, err)
}

// Decode decodes a successful response into v. For any other response, it
// returns the error from [Response.Err].
func (r *Response) Decode(v any) error {
	if r.Status >= 300 {
		return r.Err()
	}
	if err := json.Unmarshal(r.Body, v); err != nil {
		return exit.Errorf(exit.Missing, "compare the versions: loadout version", "unknown response format of the hub at %s: %w", r.hub, err)
	}
	return nil
}

// Err converts an error response to an error with a hint.
func (r *Response) Err() error {
	var p problem
	if json.Unmarshal(r.Body, &p) != nil || p.Detail == "" {
		return exit.Errorf(exit.Missing, "give the address of a hub with --hub or LOADOUT_HUB", "no hub at %s (status %d)", r.hub, r.Status)
	}
	code, next := exit.Failure, p.Next
	switch {
	case r.Status == http.StatusUnauthorized:
		code, next = exit.Refused, "put your token into LOADOUT_HUB_TOKEN; create one on the hub's page, or with: POST "+r.hub.String()+"/api/v1/tokens"
	case r.Status == http.StatusForbidden:
		code = exit.Refused
	case r.Status == http.StatusNotFound:
		code = exit.NotFound
	case r.Status >= 500 && p.Request != "":
		next = fmt.Sprintf("%s (request %s)", cmp.Or(next, "try again in a moment"), p.Request)
	}
	return exit.Errorf(code, cmp.Or(next, "see the API: "+r.hub.String()+"/openapi.json"), "hub: %s", p.Detail)
}

// Address returns the hub's base URL.
func (c *Client) Address() string { return c.baseURL.String() }
