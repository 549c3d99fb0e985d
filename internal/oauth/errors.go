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

// DeniedError says that the person, or the authorization server, said no.
type DeniedError struct {
	Code        string // as access_denied
	Description string
}

func (e *DeniedError) Error() string {
	return "the sign-in was refused: " + shown(said(e.Code, e.Description))
}

// IssuerError says that a server names another authorization server than it may.
// Nothing was sent there.
type IssuerError struct {
	Issuer     string // that the server names
	Want       string
	Configured bool // whether Want is written down; else it is of an earlier sign-in
	Answered   bool // whether it is not the server but the browser that names it
}

func (e *IssuerError) Error() string {
	const text = "it names the authorization server %s, and %s %s"
	if e.Answered {
		return fmt.Sprintf("the browser came back from %s, and the sign-in was begun at %s: nothing was sent", shown(e.Issuer), shown(e.Want))
	}
	if e.Configured {
		return fmt.Sprintf(text, shown(e.Issuer), "oauth.issuer in its configuration is", shown(e.Want))
	}
	return fmt.Sprintf(text, shown(e.Issuer), "you signed in at", shown(e.Want))
}

// UnwantedError says that a server does not ask for a sign-in, and that there is none.
type UnwantedError struct {
	Status int // that it answers
	Err    error
}

func (e *UnwantedError) Error() string {
	return fmt.Sprintf("it does not ask for a sign-in (it answers %d %s), and none could be found: %v", e.Status, http.StatusText(e.Status), e.Err)
}

// Unwrap gives why none could be found.
func (e *UnwantedError) Unwrap() error { return e.Err }

// AddressError says that something is at an address that is not public, and was not
// connected to. Which one that is is not said.
type AddressError struct{ Host string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("%s is at no public address, and nothing is sent there", shown(e.Host))
}

func said(code, description string) string {
	if description == "" {
		return cmp.Or(code, "no reason is given")
	}
	return code + ": " + description
}

// cleaned is an error of the flow without what may be secret in it: queries of
// URLs, and the body of an answer.
type cleaned struct{ err error }

func (c cleaned) Unwrap() error { return c.err }

func (c cleaned) Error() string {
	if e, ok := errors.AsType[*oauth2.RetrieveError](c.err); ok {
		if e.ErrorCode != "" {
			return "the authorization server answers: " + shown(said(e.ErrorCode, e.ErrorDescription))
		}
		if e.Response != nil {
			return "the authorization server answers " + e.Response.Status
		}
		return "the authorization server refuses"
	}
	if e, ok := errors.AsType[*url.Error](c.err); ok {
		host := "a url that cannot be read"
		if u, err := url.Parse(e.URL); err == nil {
			host = u.Host
		}
		return fmt.Sprintf("%s: %s", host, shown(e.Err.Error()))
	}
	text, _, _ := strings.Cut(c.err.Error(), "\nResponse:")
	return shown(text)
}

var query = regexp.MustCompile(`\?[^\s"'<>]+`)

// shown is text of others that may be printed.
func shown(text string) string {
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

// A resourceful transport says with each form which server the token is for (RFC
// 8707): package oauth2 cannot when it renews one.
type resourceful struct {
	*transport
	resource string
}

// RoundTrip implements [http.RoundTripper].
func (t *resourceful) RoundTrip(req *http.Request) (*http.Response, error) {
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
