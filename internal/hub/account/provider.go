package account

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/oauth2"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/printable"
)

const (
	providerTimeout  = 10 * time.Second // for all requests to the provider during one user request
	maxProviderBody  = 1 << 20          // bytes of a response
	maxProviderHops  = 3
	maxProviderError = 200 // bytes of an error that are passed on
)

// ProviderError says why a provider could not sign a user in. It contains no
// codes, tokens or queries.
type ProviderError struct {
	Step   string // the step that failed
	Reason string
	Denied bool // the user or the provider refused
}

func (e *ProviderError) Error() string { return e.Step + ": " + e.Reason }

// providerError describes an error of the flow without secrets or foreign text:
// it drops queries of URLs and response bodies.
func providerError(step string, err error) *ProviderError {
	e := &ProviderError{Step: step}
	retrieve, isRetrieve := errors.AsType[*oauth2.RetrieveError](err)
	trip, isTrip := errors.AsType[*url.Error](err)
	switch {
	case isRetrieve && retrieve.ErrorCode != "":
		e.Reason = fmt.Sprintf("provider returned %.100q", retrieve.ErrorCode)
	case isRetrieve && retrieve.Response != nil:
		e.Reason = fmt.Sprintf("provider returned status %d", retrieve.Response.StatusCode)
	case isTrip:
		e.Reason = "cannot reach the provider: " + shorten(trip.Err.Error())
	default:
		e.Reason = shorten(err.Error())
	}
	return e
}

func shorten(text string) string {
	text = printable.OneLine(text)
	if len(text) > maxProviderError {
		text = strings.ToValidUTF8(text[:maxProviderError], "") + "…"
	}
	return text
}

func stripQuery(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "(malformed URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// isSecure reports whether requests to a URL are encrypted or stay on this
// machine.
func isSecure(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && address.IsLoopback(u.Host))
}

// providerClient returns a client for a few small requests, each with a
// timeout.
func providerClient() *http.Client {
	t := &http.Transport{}
	if std, ok := http.DefaultTransport.(*http.Transport); ok {
		t = std.Clone()
	}
	t.DisableKeepAlives = true // no idle connections to close
	t.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{Transport: secureTransport{t}, CheckRedirect: checkRedirect, Timeout: providerTimeout}
}

// checkRedirect follows redirects of GET requests only, so that a code is not
// sent on.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > maxProviderHops {
		return http.ErrUseLastResponse
	}
	return nil
}

// secureTransport allows only secure URLs and limits the size of responses.
type secureTransport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (g secureTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isSecure(r.URL) {
		return nil, fmt.Errorf("not an https address: %.200q", r.URL.Host)
	}
	res, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxProviderBody), res.Body}
	return res, nil
}

// findClaim returns a claim by its name, or a nested one by the parts of the
// name.
func findClaim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	inner, isMap := claims[first].(map[string]any)
	if !ok || !isMap {
		return nil
	}
	return findClaim(inner, rest)
}

// stringClaim returns a claim that is a single-line string, otherwise "".
func stringClaim(claims map[string]any, name string) string {
	text, _ := findClaim(claims, name).(string)
	if len(text) > maxClaim || !utf8.ValidString(text) || printable.OneLine(text) != text {
		return ""
	}
	return text
}

// groupNames returns the groups of a claim, which may be a single string. Too
// many are an error: with only some of them, roles would be arbitrary.
func groupNames(claims map[string]any, name string) ([]string, error) {
	var all []any
	switch v := findClaim(claims, name).(type) {
	case nil:
	case string:
		all = []any{v}
	case []any:
		all = v
	default:
		return nil, fmt.Errorf("claim %.100q is not a list of groups", name)
	}
	if len(all) > maxGroups {
		return nil, fmt.Errorf("claim %.100q has more than %d groups", name, maxGroups)
	}
	groups := make([]string, 0, len(all))
	for _, v := range all {
		text, ok := v.(string)
		if !ok || len(text) > maxClaim {
			return nil, fmt.Errorf("claim %.100q holds an invalid group name", name)
		}
		groups = append(groups, text)
	}
	return groups, nil
}
