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
	"github.com/loadout-dev/loadout/skill"
)

const (
	providerTime     = 10 * time.Second // for what one request of a person takes there
	maxProviderBody  = 1 << 20          // bytes of an answer
	maxProviderHops  = 3
	maxProviderWords = 200 // bytes of an error that are told on
)

// ProviderError says why somebody could not be signed in by a provider. Codes, tokens
// and queries are not in it.
type ProviderError struct {
	Step   string // what was tried
	Why    string
	Denied bool // whether the person, or the provider, said no
}

func (e *ProviderError) Error() string { return e.Step + ": " + e.Why }

// failure is an error of the flow without what may be secret or a stranger's in it:
// queries of URLs, and the body of an answer.
func failure(step string, err error) *ProviderError {
	e := &ProviderError{Step: step}
	retrieve, isRetrieve := errors.AsType[*oauth2.RetrieveError](err)
	trip, isTrip := errors.AsType[*url.Error](err)
	switch {
	case isRetrieve && retrieve.ErrorCode != "":
		e.Why = fmt.Sprintf("the provider answers %.100q", retrieve.ErrorCode)
	case isRetrieve && retrieve.Response != nil:
		e.Why = fmt.Sprintf("the provider answers with status %d", retrieve.Response.StatusCode)
	case isTrip:
		e.Why = "the provider cannot be reached: " + short(trip.Err.Error())
	default:
		e.Why = short(err.Error())
	}
	return e
}

func short(text string) string {
	text = skill.OneLine(text)
	if len(text) > maxProviderWords {
		text = strings.ToValidUTF8(text[:maxProviderWords], "") + "…"
	}
	return text
}

func withoutQuery(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "what is written there"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// safe reports whether nobody on the way reads what is sent to a URL.
func safe(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && address.IsLoopback(u.Host))
}

// providerClient is for a few requests with little in them, each with a time-out.
func providerClient() *http.Client {
	t := &http.Transport{}
	if std, ok := http.DefaultTransport.(*http.Transport); ok {
		t = std.Clone()
	}
	t.DisableKeepAlives = true // nothing to close behind them
	t.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{Transport: guarded{t}, CheckRedirect: redirect, Timeout: providerTime}
}

// redirect follows what only reads: a code is not sent on.
func redirect(req *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > maxProviderHops {
		return http.ErrUseLastResponse
	}
	return nil
}

// guarded carries requests that nobody else reads, and answers that end.
type guarded struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if !safe(r.URL) {
		return nil, fmt.Errorf("%.200q is no address of https", r.URL.Host)
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

// claim is what an ID token has under a name, or, where there is none, inside of
// others by the parts of the name.
func claim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	inner, isMap := claims[first].(map[string]any)
	if !ok || !isMap {
		return nil
	}
	return claim(inner, rest)
}

// textIn is a claim that is a text of no more than one line, else "".
func textIn(claims map[string]any, name string) string {
	text, _ := claim(claims, name).(string)
	if len(text) > maxClaim || !utf8.ValidString(text) || skill.OneLine(text) != text {
		return ""
	}
	return text
}

// groupsIn are the groups of a claim, which may be one. Too many are an error: with
// some of them, somebody would have a role by chance.
func groupsIn(claims map[string]any, name string) ([]string, error) {
	var all []any
	switch v := claim(claims, name).(type) {
	case nil:
	case string:
		all = []any{v}
	case []any:
		all = v
	default:
		return nil, fmt.Errorf("the claim %.100q is no list of groups", name)
	}
	if len(all) > maxGroups {
		return nil, fmt.Errorf("the claim %.100q has more than %d groups", name, maxGroups)
	}
	groups := make([]string, 0, len(all))
	for _, v := range all {
		text, ok := v.(string)
		if !ok || len(text) > maxClaim {
			return nil, fmt.Errorf("the claim %.100q has what is no name of a group", name)
		}
		groups = append(groups, text)
	}
	return groups, nil
}
