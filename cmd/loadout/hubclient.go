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
)

const (
	defaultHub = "http://127.0.0.1:8484"
	// hubTime is how long a hub may take for one answer, and hubAnswer how long that may
	// be in bytes.
	hubTime   = time.Minute
	hubAnswer = 32 << 20
)

// hubClient speaks with a hub as whose token it has. The token goes to that hub alone,
// and never over the network in plain text.
type hubClient struct {
	at    *url.URL
	token string
	http  *http.Client
}

// hub is the hub that a person means: by a flag, else by LOADOUT_HUB, else on this
// machine.
func (a *app) hub(flag string) (*hubClient, error) {
	text := cmp.Or(flag, a.getenv("LOADOUT_HUB"), defaultHub)
	const hint = "give it as https://HOST, by --hub or LOADOUT_HUB"
	at, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.RawQuery != "" || at.Fragment != "" {
		return nil, fail(exitUsage, hint, "the address of the hub is none")
	}
	if at.User != nil {
		return nil, fail(exitUsage, "leave them out, and put a token into LOADOUT_HUB_TOKEN", "the address of the hub has a name or a password in it")
	}
	c := &hubClient{at: at, token: strings.TrimSpace(a.getenv("LOADOUT_HUB_TOKEN"))}
	if c.token != "" && at.Scheme == "http" && !address.IsLoopback(at.Host) {
		return nil, fail(exitRefused, hint+"; or do without LOADOUT_HUB_TOKEN", "the token is not sent: %s is reached over plain http, where others can read it", plain(at.Host))
	}
	c.http = &http.Client{Timeout: hubTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// hubProblem is an error of a hub, as RFC 9457 has it.
type hubProblem struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Next    string `json:"next"`
	Request string `json:"request"`
}

// hubAnswered is an answer of a hub.
type hubAnswered struct {
	status int
	body   []byte
	hub    *url.URL
}

// send sends a request to a path of the API. The error says why there is no answer of a
// hub; what the hub says, whatever its status, is none.
func (c *hubClient) send(ctx context.Context, method, path, kind string, body []byte) (*hubAnswered, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.at.String()+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fail(exitUsage, "give it as https://HOST", "the address of the hub: %w", err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, hubAnswer+1))
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, fail(exitFound, "give the address that it is at by --hub or LOADOUT_HUB", "%s sends to another place, %s, and is not followed there", c.at, plain(resp.Header.Get("Location")))
	case len(data) > hubAnswer, len(data) > 0 && media != "application/json" && media != "application/problem+json":
		return nil, fail(exitMissing, "give the address of a hub by --hub or LOADOUT_HUB", "what answers at %s is no hub (status %d)", c.at, resp.StatusCode)
	}
	return &hubAnswered{resp.StatusCode, data, c.at}, nil
}

// unreached is why a hub did not answer.
func (c *hubClient) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok { // which repeats the address
		err = e.Err
	}
	return fail(exitMissing, "see that it runs, as by: loadout serve; or say where it is by --hub or LOADOUT_HUB", "the hub at %s cannot be reached: %w", c.at, err)
}

// into reads an answer of 200 and its like; another one is an error that ends in what to
// do.
func (r *hubAnswered) into(v any) error {
	if r.status >= 300 {
		return r.problem()
	}
	if err := json.Unmarshal(r.body, v); err != nil {
		return fail(exitMissing, "compare the versions: loadout version", "the hub at %s answers in a form that is not known: %w", r.hub, err)
	}
	return nil
}

func (r *hubAnswered) problem() error {
	var p hubProblem
	if json.Unmarshal(r.body, &p) != nil || p.Detail == "" {
		return fail(exitMissing, "give the address of a hub by --hub or LOADOUT_HUB", "what answers at %s is no hub (status %d)", r.hub, r.status)
	}
	code, next := exitFound, p.Next
	switch {
	case r.status == http.StatusUnauthorized:
		code, next = exitRefused, "put a token of yours into LOADOUT_HUB_TOKEN; the page of the hub makes one, or: POST "+r.hub.String()+"/api/v1/tokens"
	case r.status == http.StatusForbidden:
		code = exitRefused
	case r.status == http.StatusNotFound:
		code = exitNotFound
	case r.status >= 500 && p.Request != "":
		next = fmt.Sprintf("%s (request %s)", cmp.Or(next, "try again in a moment"), p.Request)
	}
	return fail(code, cmp.Or(next, "see what is expected: "+r.hub.String()+"/openapi.json"), "the hub says: %s", p.Detail)
}
