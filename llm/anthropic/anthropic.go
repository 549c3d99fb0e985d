// Package anthropic reaches Anthropic's models, and servers that speak its Messages
// API, as an [llm.Model].
//
// A conversation is sent so that the vendor finds what it has seen in its cache: the
// tools, the instructions and all earlier messages are the same bytes as before, and
// marks say up to where they may be kept. No answer is put together by the vendor's
// library, which loses the arguments of a call that was cut: events are read as they
// come.
//
// Nothing is read from the environment but the proxies that Go's transport goes by.
package anthropic

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/loadout-dev/loadout/llm"
)

const (
	vendor = "anthropic"
	home   = "https://api.anthropic.com"
)

// Notices says how a [llm.Notice] is sent.
type Notices string

// The ways to send a notice.
const (
	// NoticesAuto is NoticesSystem where the vendor's own server has a model that is
	// known to take it, else NoticesUser.
	NoticesAuto Notices = ""
	// NoticesSystem is a message of the role "system" inside the conversation.
	NoticesSystem Notices = "system"
	// NoticesUser is a text of the user between <notice> and </notice>.
	NoticesUser Notices = "user"
)

// Options are what a model needs beyond its name.
type Options struct {
	Key     string
	BaseURL string            // "" is Anthropic's own server, which needs a key
	Headers map[string]string // more of them, as a gateway may want; kept as secret as the key
	// MaxTokens bounds an answer whose request does not, thinking included; 0 is 16,384.
	MaxTokens int
	// Idle is how long nothing may come before a request is given up; 0 is 10 minutes.
	Idle    time.Duration
	Notices Notices
	// HTTP sends the requests; nil is a client with Go's default transport. It is
	// copied, and follows no redirect, which would take the key elsewhere.
	HTTP   *http.Client
	Logger *slog.Logger // nil discards; neither key nor content is ever logged
}

// Model is a model of Anthropic, or of a server that speaks like it.
type Model struct {
	name      string
	client    sdk.Client
	maxTokens int
	idle      time.Duration
	native    bool // notices are system messages
	adaptive  bool // the model itself decides how long it thinks
	secrets   []string
	log       *slog.Logger
}

var _ llm.Model = (*Model)(nil)

// New returns the model of a name, as "claude-opus-5". It connects to nothing yet.
// It fails where the name, the key or the URL cannot be right.
func New(model string, o *Options) (*Model, error) {
	if o == nil {
		o = &Options{}
	}
	if model == "" {
		return nil, errors.New("anthropic: no model is named: say which one, as claude-opus-5")
	}
	base, err := baseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if o.Key == "" && base == home {
		return nil, errors.New("anthropic: no key: set ANTHROPIC_API_KEY, or the key in the configuration")
	}
	v := versionOf(model)
	m := &Model{
		name:      model,
		maxTokens: cmp.Or(o.MaxTokens, 16384),
		idle:      cmp.Or(o.Idle, 10*time.Minute),
		native:    o.Notices == NoticesSystem || o.Notices == NoticesAuto && base == home && v.takesSystemMessages(),
		adaptive:  v.thinksAdaptively(),
		log:       o.Logger,
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.client = sdk.NewClient(m.options(base, o)...)
	return m, nil
}

// Name is "anthropic:" and the name of the model.
func (m *Model) Name() string { return vendor + ":" + m.name }

// options are those of the vendor's library: all that it would otherwise take from
// the environment is said or turned off.
func (m *Model) options(base string, o *Options) []option.RequestOption {
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
	if o.Key != "" {
		all = append(all, option.WithAPIKey(o.Key))
		m.secrets = append(m.secrets, o.Key)
	}
	for name, value := range o.Headers {
		all = append(all, option.WithHeader(name, value))
		_, token, _ := strings.Cut(value, " ")
		m.secrets = append(m.secrets, value, token)
	}
	return all
}

// baseURL is the URL that "v1/messages" is below. Many write it with the version.
func baseURL(text string) (string, error) {
	if text == "" {
		return home, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("anthropic: the base URL is none: give one like " + home)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("anthropic: the base URL at %s has more than a host and a path: give the key as the key", u.Host)
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	return u.String(), nil
}
