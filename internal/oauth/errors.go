package oauth

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/oauth2"
)

// DeniedError reports that the user or the authorization server denied a
// sign-in.
type DeniedError struct {
	Code        string // such as access_denied
	Description string
}

func (e *DeniedError) Error() string {
	return "sign-in denied: " + printable(formatReason(e.Code, e.Description))
}

// IssuerError reports that a server names an unacceptable authorization server.
// Nothing was sent there.
type IssuerError struct {
	Issuer       string // as named
	Want         string
	Configured   bool // whether Want is configured, else it is from an earlier sign-in
	FromCallback bool // whether the callback of the browser named it
}

func (e *IssuerError) Error() string {
	const text = "issuer mismatch: the server names %s, but %s %s"
	if e.FromCallback {
		return fmt.Sprintf("issuer mismatch: the browser came back from %s, but the sign-in started at %s", printable(e.Issuer), printable(e.Want))
	}
	if e.Configured {
		return fmt.Sprintf(text, printable(e.Issuer), "its configuration has", printable(e.Want))
	}
	return fmt.Sprintf(text, printable(e.Issuer), "the last sign-in was at", printable(e.Want))
}

// NotRequiredError reports that a server does not require a sign-in and has no
// authorization server.
type NotRequiredError struct {
	Status int // of its answer without a token
	Err    error
}

func (e *NotRequiredError) Error() string {
	return fmt.Sprintf("sign-in not required (status %d %s), and no authorization server found: %v", e.Status, http.StatusText(e.Status), e.Err)
}

// Unwrap returns why no authorization server was found.
func (e *NotRequiredError) Unwrap() error { return e.Err }

// PrivateAddressError reports that a host has a non-public address and was not
// contacted. It does not reveal the address.
type PrivateAddressError struct{ Host string }

func (e *PrivateAddressError) Error() string {
	return fmt.Sprintf("%s has no public address", printable(e.Host))
}

func formatReason(code, description string) string {
	if description == "" {
		return cmp.Or(code, "no reason given")
	}
	return code + ": " + description
}

// safeError is an error of a sign-in without parts that may be secret: URL
// queries and response bodies.
type safeError struct{ err error }

func (c safeError) Unwrap() error { return c.err }

func (c safeError) Error() string {
	if e, ok := errors.AsType[*oauth2.RetrieveError](c.err); ok {
		if e.ErrorCode != "" {
			return "authorization server: " + printable(formatReason(e.ErrorCode, e.ErrorDescription))
		}
		if e.Response != nil {
			return "authorization server: " + e.Response.Status
		}
		return "authorization server refused"
	}
	if e, ok := errors.AsType[*url.Error](c.err); ok {
		host := "an invalid URL"
		if u, err := url.Parse(e.URL); err == nil {
			host = u.Host
		}
		return fmt.Sprintf("%s: %s", host, printable(e.Err.Error()))
	}
	text, _, _ := strings.Cut(c.err.Error(), "\nResponse:")
	return printable(text)
}

var query = regexp.MustCompile(`\?[^\s"'<>]+`)

// printable returns untrusted text in a form that is safe to print.
func printable(text string) string {
	const most = 300
	text = query.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// A resourceTransport adds the server that the token is for to each form (RFC
// 8707), because package oauth2 cannot do so when it renews a token.
type resourceTransport struct {
	*transport
	resource string
}

// RoundTrip implements [http.RoundTripper].
func (t *resourceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil || t.resource == "" {
		return t.transport.RoundTrip(req)
	}
	form, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	form = append(form, "&resource="+url.QueryEscape(t.resource)...)
	out := req.Clone(req.Context())
	out.Body, out.ContentLength, out.GetBody = io.NopCloser(bytes.NewReader(form)), int64(len(form)), nil
	return t.transport.RoundTrip(out)
}
