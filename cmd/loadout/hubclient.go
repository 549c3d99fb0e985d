package main

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
)

const (
	defaultHub = "http://127.0.0.1:8484"
	// hubTimeout bounds a request to a hub, and maxHubResponse the bytes of a
	// response.
	hubTimeout     = time.Minute
	maxHubResponse = 32 << 20
)

// hubClient sends requests to a hub with the user's token. It sends the token
// to that hub only, and never over plain HTTP through a network.
type hubClient struct {
	baseURL *url.URL
	token   string
	http    *http.Client
}

// newHubClient returns a client for the hub of the flag, of LOADOUT_HUB, or on
// this machine.
func (a *app) newHubClient(flag string) (*hubClient, error) {
	text := cmp.Or(flag, a.Getenv("LOADOUT_HUB"), defaultHub)
	const hint = "give the address as https://HOST, with --hub or LOADOUT_HUB"
	at, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.RawQuery != "" || at.Fragment != "" {
		return nil, exit.Errorf(exit.Usage, hint, "invalid address of the hub")
	}
	if at.User != nil {
		return nil, exit.Errorf(exit.Usage, "omit them, and put a token into LOADOUT_HUB_TOKEN", "the address of the hub contains a user name or password")
	}
	c := &hubClient{baseURL: at, token: strings.TrimSpace(a.Getenv("LOADOUT_HUB_TOKEN"))}
	if c.token != "" && at.Scheme == "http" && !address.IsLoopback(at.Host) {
		return nil, exit.Errorf(exit.Refused, hint+"; or unset LOADOUT_HUB_TOKEN", "the token is not sent: %s uses plain http, where others can read it", plain(at.Host))
	}
	c.http = &http.Client{Timeout: hubTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// hubProblem is an error response of a hub, as defined by RFC 9457.
type hubProblem struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Next    string `json:"next"`
	Request string `json:"request"`
}

// hubResponse is a response of a hub with any status.
type hubResponse struct {
	status int
	body   []byte
	hub    *url.URL
}

// send sends a request to a path of the API. It returns an error only if no hub
// answers; an error response of the hub is not an error of send.
func (c *hubClient) send(ctx context.Context, method, path, kind string, body []byte) (*hubResponse, error) {
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
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxHubResponse+1))
	if err != nil {
		return nil, c.connectionError(ctx, err)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, exit.Errorf(exit.Failure, "give that address with --hub or LOADOUT_HUB", "%s redirects to %s; redirects are not followed", c.baseURL, plain(resp.Header.Get("Location")))
	case len(data) > maxHubResponse, len(data) > 0 && media != "application/json" && media != "application/problem+json":
		return nil, exit.Errorf(exit.Missing, "give the address of a hub with --hub or LOADOUT_HUB", "no hub at %s (status %d)", c.baseURL, resp.StatusCode)
	}
	return &hubResponse{resp.StatusCode, data, c.baseURL}, nil
}

// connectionError returns the reason why a hub did not answer.
func (c *hubClient) connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok { // drops the repeated address
		err = e.Err
	}
	return exit.Errorf(exit.Missing, "start it with: loadout serve; or give its address with --hub or LOADOUT_HUB", "cannot reach the hub at %s: %w", c.baseURL, err)
}

// decode decodes a successful response. Any other response becomes an error
// with a hint.
func (r *hubResponse) decode(v any) error {
	if r.status >= 300 {
		return r.problemError()
	}
	if err := json.Unmarshal(r.body, v); err != nil {
		return exit.Errorf(exit.Missing, "compare the versions: loadout version", "unknown response format of the hub at %s: %w", r.hub, err)
	}
	return nil
}

func (r *hubResponse) problemError() error {
	var p hubProblem
	if json.Unmarshal(r.body, &p) != nil || p.Detail == "" {
		return exit.Errorf(exit.Missing, "give the address of a hub with --hub or LOADOUT_HUB", "no hub at %s (status %d)", r.hub, r.status)
	}
	code, next := exit.Failure, p.Next
	switch {
	case r.status == http.StatusUnauthorized:
		code, next = exit.Refused, "put your token into LOADOUT_HUB_TOKEN; create one on the hub's page, or with: POST "+r.hub.String()+"/api/v1/tokens"
	case r.status == http.StatusForbidden:
		code = exit.Refused
	case r.status == http.StatusNotFound:
		code = exit.NotFound
	case r.status >= 500 && p.Request != "":
		next = fmt.Sprintf("%s (request %s)", cmp.Or(next, "try again in a moment"), p.Request)
	}
	return exit.Errorf(code, cmp.Or(next, "see the API: "+r.hub.String()+"/openapi.json"), "hub: %s", p.Detail)
}
