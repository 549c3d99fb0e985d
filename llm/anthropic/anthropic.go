// Package anthropic implements [llm.Model] for Anthropic's models and for
// servers that support the Messages API
// (https://docs.anthropic.com/en/api/messages).
//
// The package keeps prompts cacheable. Tools, instructions and earlier messages
// are encoded to the same bytes in each request of a conversation, and
// breakpoints mark the parts to cache. The package parses the event stream
// itself, because the vendor's library loses the arguments of truncated calls.
//
// The package reads no environment variables, except for the proxy variables
// used by Go's default transport.
package anthropic

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/llm"
)

const (
	vendor = "anthropic"
	home   = "https://api.anthropic.com"
)

// Options configures a model. The zero value lacks the key that Anthropic's
// server requires.
type Options struct {
	// Key is sent in the header X-Api-Key; "" sends none. It is redacted from
	// errors.
	Key string
	// BaseURL is the URL to which "/v1/messages" is appended, without user
	// name, query or fragment. A "/v1" at its end is removed. "" selects
	// Anthropic's server, which requires a key.
	BaseURL string
	// Headers are additional headers, for example for a gateway. Values of at
	// least 4 bytes are redacted from errors.
	Headers map[string]string
	// MaxTokens is the maximum number of tokens in a response, including
	// thinking, if the request sets no limit; 0 means 16,384.
	MaxTokens int
	// Idle is how long the server may send nothing before the request fails; 0
	// means 10 minutes.
	Idle time.Duration
	// SystemNotices sends each [llm.Notice] as a message with the role "system"
	// to any server. Otherwise only the vendor's own server gets such messages,
	// for models that are known to accept them; other requests contain the notice
	// as user text between <notice> and </notice>.
	SystemNotices bool
	// HTTP sends the requests; nil means a client with Go's default transport.
	// New copies the client and disables redirects, because they would send
	// the key to another host. Its Timeout should be 0, because a timeout
	// truncates long responses.
	HTTP *http.Client
	// Logger receives the token usage of each response at debug level, but
	// never keys or content; nil discards it.
	Logger *slog.Logger
}

// model is a model of Anthropic or of a compatible server.
type model struct {
	name      string
	client    sdk.Client
	maxTokens int
	idle      time.Duration
	native    bool // whether notices are sent as system messages
	adaptive  bool // whether the model decides how long to think
	redactor  *redact.Redactor
	log       *slog.Logger
}

// New returns the model with the given name, such as "claude-opus-5". The Name
// method returns "anthropic:" followed by that name. New does not connect, so
// it does not detect a wrong name or key. It returns an error if the name is
// empty, the URL is invalid, or Anthropic's server is selected without a key.
// The model is safe for concurrent use and need not be closed.
func New(name string, o *Options) (llm.Model, error) {
	if o == nil {
		o = &Options{}
	}
	if name == "" {
		return nil, errors.New("anthropic: missing model name: use for example claude-opus-5")
	}
	base, err := baseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if o.Key == "" && base == home {
		return nil, errors.New("anthropic: missing API key: set ANTHROPIC_API_KEY, or the key in the configuration")
	}
	v := parseVersion(name)
	m := &model{
		name:      name,
		maxTokens: cmp.Or(o.MaxTokens, 16384),
		idle:      cmp.Or(o.Idle, 10*time.Minute),
		native:    o.SystemNotices || base == home && v.acceptsSystemMessages(),
		adaptive:  v.thinksAdaptively(),
		log:       o.Logger,
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.client = sdk.NewClient(m.options(base, o)...)
	return m, nil
}

// Name implements [llm.Model].
func (m *model) Name() string { return vendor + ":" + m.name }

// options returns options for the vendor's library. They set or disable
// everything that the library would otherwise read from the environment.
func (m *model) options(base string, o *Options) []option.RequestOption {
	client := http.Client{}
	if o.HTTP != nil {
		client = *o.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	all := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithOpenTelemetryTraces(false),
		option.WithMaxRetries(0),
		option.WithBaseURL(base),
		option.WithHTTPClient(&client),
	}
	var secrets []string
	if o.Key != "" {
		all = append(all, option.WithAPIKey(o.Key))
		secrets = append(secrets, o.Key)
	}
	for name, value := range o.Headers {
		all = append(all, option.WithHeader(name, value))
		_, token, _ := strings.Cut(value, " ")
		secrets = append(secrets, value, token)
	}
	m.redactor = redact.Values(slices.DeleteFunc(secrets, func(s string) bool { return len(s) < 4 })...)
	return all
}

// baseURL normalizes a base URL. It removes "/v1", which many users include.
func baseURL(text string) (string, error) {
	if text == "" {
		return home, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("anthropic: invalid base URL: use for example " + home)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("anthropic: base URL of %s must contain only a host and a path: pass the key separately", u.Host)
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	return u.String(), nil
}
