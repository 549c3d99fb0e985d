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
	providerTimeout  = 10 * time.Second // timeout for all requests to the provider during one user request
	maxProviderBody  = 1 << 20          // bytes of a response
	maxProviderHops  = 3
	maxProviderError = 200 // maximum length of the provider's error shown to users, in bytes
)

// ProviderError reports why a provider could not sign a user in. It contains no
// codes, tokens or queries.
type ProviderError struct {
	Step   string // step that failed
	Reason string
	Denied bool // whether the user or the provider denied access
}

func (e *ProviderError) Error() string { return e.Step + ": " + e.Reason }

// providerError describes why a step failed. It omits URL queries and response
// bodies, which may contain secrets or text from other systems.
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
		e.Reason = "cannot reach the provider: " + shortenText(trip.Err.Error())
	default:
		e.Reason = shortenText(err.Error())
	}
	return e
}

func shortenText(text string) string {
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

// isSecure reports whether requests to a URL are encrypted or do not leave this
// machine.
func isSecure(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && address.IsLoopback(u.Host))
}

// providerClient returns an HTTP client for requests to a provider. It limits their
// duration and the size of the responses.
func providerClient() *http.Client {
	t := &http.Transport{}
	if std, ok := http.DefaultTransport.(*http.Transport); ok {
		t = std.Clone()
	}
	t.DisableKeepAlives = true // leaves no idle connections
	t.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{Transport: secureTransport{t}, CheckRedirect: checkRedirect, Timeout: providerTimeout}
}

// checkRedirect permits redirects of GET requests only, so that an authorization
// code is not sent elsewhere.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > maxProviderHops {
		return http.ErrUseLastResponse
	}
	return nil
}

// secureTransport allows only secure URLs and limits the response size.
type secureTransport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (g secureTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isSecure(r.URL) {
		return nil, fmt.Errorf("request to %.200q does not use https", r.URL.Host)
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

// findClaim returns the claim with the given name. If there is none, it treats
// the name as a path to a nested claim, with dots as separators.
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

// stringClaim returns a claim if it is a valid single-line string, and otherwise
// "".
func stringClaim(claims map[string]any, name string) string {
	text, _ := findClaim(claims, name).(string)
	if len(text) > maxClaim || !utf8.ValidString(text) || printable.OneLine(text) != text {
		return ""
	}
	return text
}

// groupNames returns the groups in a claim, which may be a list or a single string.
// It returns an error if there are too many, because ignoring some of them would
// make the user's roles arbitrary.
func groupNames(claims map[string]any, name string) ([]string, error) {
	var all []any
	switch v := findClaim(claims, name).(type) {
	case nil:
	case string:
		all = []any{v}
	case []any:
		all = v
	default:
		return nil, fmt.Errorf("claim %.100q: want a list of groups", name)
	}
	if len(all) > maxGroups {
		return nil, fmt.Errorf("claim %.100q: too many groups (limit %d)", name, maxGroups)
	}
	groups := make([]string, 0, len(all))
	for _, v := range all {
		text, ok := v.(string)
		if !ok || len(text) > maxClaim {
			return nil, fmt.Errorf("claim %.100q: invalid group name", name)
		}
		groups = append(groups, text)
	}
	return groups, nil
}
