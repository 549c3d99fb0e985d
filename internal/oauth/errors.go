package oauth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/oauth2"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// A DeniedError reports that the user or the authorization server denied a
// sign-in.
type DeniedError struct {
	Code        string // such as access_denied
	Description string
}

func (e *DeniedError) Error() string {
	return "sign-in denied: " + sanitizeText(formatReason(e.Code, e.Description))
}

// An IssuerError reports that a server or the callback URL names an
// unacceptable authorization server. No request was sent to it.
type IssuerError struct {
	Issuer       string // authorization server that was named
	Want         string
	Configured   bool // whether Want is configured, not from an earlier sign-in
	FromCallback bool // whether the callback URL named Issuer
}

func (e *IssuerError) Error() string {
	const text = "issuer mismatch: the server names %s, but %s %s"
	if e.FromCallback {
		return fmt.Sprintf("issuer mismatch: the browser returned from %s, but the sign-in started at %s", sanitizeText(e.Issuer), sanitizeText(e.Want))
	}
	if e.Configured {
		return fmt.Sprintf(text, sanitizeText(e.Issuer), "its configuration has", sanitizeText(e.Want))
	}
	return fmt.Sprintf(text, sanitizeText(e.Issuer), "the last sign-in was at", sanitizeText(e.Want))
}

// A NotRequiredError reports that a server does not require authentication and
// has no authorization server.
type NotRequiredError struct {
	Status int // status of the response to a request without a token
	Err    error
}

func (e *NotRequiredError) Error() string {
	return fmt.Sprintf("sign-in not required (status %d %s), and no authorization server found: %v", e.Status, http.StatusText(e.Status), e.Err)
}

// Unwrap returns the reason why no authorization server was found.
func (e *NotRequiredError) Unwrap() error { return e.Err }

// A PrivateAddressError reports that a connection to a host was refused because
// its address is not public. The error does not contain the address.
type PrivateAddressError struct{ Host string }

func (e *PrivateAddressError) Error() string {
	return fmt.Sprintf("%s has no public address", sanitizeText(e.Host))
}

// A StorageError reports that a [Storage] could not be read or changed. It does
// not indicate a problem with the server or the sign-in.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }

// Unwrap returns the storage's error.
func (e *StorageError) Unwrap() error { return e.Err }

// Local marks the error as one that does not concern the server.
func (e *StorageError) Local() {}

// storageError wraps an error of a [Storage] in a [*StorageError], unless the
// storage failed because ctx is done.
func storageError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &StorageError{err}
}

func formatReason(code, description string) string {
	if description == "" {
		return cmp.Or(code, "no reason given")
	}
	return code + ": " + description
}

// safeError wraps an error and hides the potentially secret parts of its text:
// URL queries and response bodies.
type safeError struct{ err error }

func (c safeError) Unwrap() error { return c.err }

func (c safeError) Error() string {
	if e, ok := errors.AsType[*oauth2.RetrieveError](c.err); ok {
		if e.ErrorCode != "" {
			return "authorization server: " + sanitizeText(formatReason(e.ErrorCode, e.ErrorDescription))
		}
		if e.Response != nil {
			return "authorization server: " + e.Response.Status
		}
		return "authorization server rejected the request"
	}
	if e, ok := errors.AsType[*url.Error](c.err); ok {
		host := "an invalid URL"
		if u, err := url.Parse(e.URL); err == nil {
			host = u.Host
		}
		return fmt.Sprintf("%s: %s", host, sanitizeText(e.Err.Error()))
	}
	text, _, _ := strings.Cut(c.err.Error(), "\nResponse:")
	return sanitizeText(text)
}

var query = lazyregexp.New(`\?[^\s"'<>]+`)

// sanitizeText removes URL queries and control characters from untrusted text,
// and truncates it.
func sanitizeText(text string) string {
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

// A resourceTransport adds the resource parameter (RFC 8707) to request forms,
// because package oauth2 cannot add it to refresh requests.
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
