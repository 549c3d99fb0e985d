// Package openai implements [llm.Model] for OpenAI's chat completions API
// (https://platform.openai.com/docs/api-reference/chat) and compatible servers.
// It knows how some of them differ; [Quirks] describes others.
//
// The package implements the protocol itself, because OpenAI's own library
// merges calls without an index, adds up usage that is repeated in every chunk,
// and accepts a truncated stream as complete. The library would also nearly
// double the size of the program and increase its start time by a quarter.
package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// Options configures a model. The zero value selects OpenAI without a key.
type Options struct {
	// Key is sent as a bearer token. If it is "", no token is sent, as for
	// local servers. It is redacted from the server's error messages.
	Key string
	// BaseURL is the URL to which "/chat/completions" is appended, without user
	// name, query or fragment; "" selects OpenAI.
	BaseURL string
	// MaxTokens is the maximum number of tokens in a response if the request
	// sets no limit; 0 means the server's limit.
	MaxTokens int
	// HTTP sends the requests; nil means a client with Go's default transport,
	// which uses the proxy from the environment. New copies the client and
	// disables redirects, because they would send the key to another host. Its
	// Timeout should be 0, because a timeout truncates long responses.
	HTTP *http.Client
	// Quirks describes the server; nil selects the known quirks of its host and
	// the model.
	Quirks *Quirks
}

// model is a model that a server offers through the chat completions API.
type model struct {
	name      string // the server's name for the model
	key       string
	maxTokens int
	quirks    Quirks
	post      func(ctx context.Context, body []byte) (*http.Response, error)
}

const openAI = "https://api.openai.com/v1"

// New returns the model with the given name on the server. The Name method
// returns the vendor from the quirks, a colon and that name. New does not
// connect, so it does not detect a wrong name or key. It returns an error if
// the name is empty, the URL is invalid, or the quirks have no valid vendor.
// opts may be nil. The model is safe for concurrent use and need not be closed.
//
// New reads no key, URL or header from the environment, so that users of the
// same process do not share keys.
func New(name string, opts *Options) (llm.Model, error) {
	if opts == nil {
		opts = &Options{}
	}
	if name == "" {
		return nil, errors.New("missing model name; use a model name that the server knows")
	}
	base := opts.BaseURL
	if base == "" {
		base = openAI
	}
	if err := checkBase(base); err != nil {
		return nil, err
	}
	q := quirksOf(base, name)
	if opts.Quirks != nil {
		q = *opts.Quirks
	}
	if q.Vendor == "" || strings.Contains(q.Vendor, ":") {
		return nil, fmt.Errorf("invalid vendor %q in quirks; use a name without a colon", q.Vendor)
	}
	return &model{
		name: name, key: opts.Key, maxTokens: opts.MaxTokens, quirks: q,
		post: newPoster(base, opts.Key, opts.HTTP),
	}, nil
}

// checkBase returns an error if a URL is invalid, contains credentials, or has
// parts that would be ignored.
func checkBase(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return errors.New("invalid base URL; write https://HOST/v1") // err would contain the URL with its credentials
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("unsupported base URL %q; write https://HOST/v1", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("base URL %s contains a user name or password; pass the key as an option", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("base URL of %s must not contain a query or fragment", u.Host)
	}
	return nil
}

// Name implements [llm.Model].
func (m *model) Name() string { return m.quirks.Vendor + ":" + m.name }

// Stream implements [llm.Model]. It does not retry; see [llm.Retry]. It has no
// timeout and waits for the server until ctx is done.
//
// A response is limited to 32 MiB of content, 1,000 calls and 8 MiB per line.
// The stream that carries it is limited to 256 MiB. Before anything is sent,
// Stream fails if a tool's input schema is not valid JSON. Images in tool
// results follow in a user message, because tool messages contain only text.
func (m *model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		body, err := m.render(r)
		if err != nil {
			yield(nil, err)
			return
		}
		res, err := m.send(ctx, body)
		if err != nil {
			yield(nil, err)
			return
		}
		defer res.Body.Close()
		a := &answer{vendor: m.quirks.Vendor, at: len(r.Messages)}
		switch err := m.read(res, a, func(e llm.Event) bool { return yield(e, nil) }); {
		case errors.Is(err, errStopped):
		case err != nil:
			yield(nil, m.streamError(ctx, a, err))
		default:
			yield(llm.Done{Answer: a.whole()}, nil)
		}
	}
}

// errStopped is returned to end a stream whose consumer stopped iterating.
var errStopped = errors.New("iteration stopped by the caller")

// read adds a stream's events to the response and yields them.
func (m *model) read(res *http.Response, a *answer, yield func(llm.Event) bool) error {
	events := newEventReader(res.Body)
	for {
		data, err := events.next()
		if err != nil {
			return err
		}
		if string(data) == "[DONE]" {
			return a.endError()
		}
		if data == nil { // the stream has ended
			if m.quirks.NoDone {
				return a.endError()
			}
			return errNoDone
		}
		added, err := a.add(data)
		if err != nil {
			return err
		}
		for _, e := range added {
			if !yield(e) {
				return errStopped
			}
		}
	}
}

var errNoDone = fmt.Errorf("stream ended without [DONE]: %w", io.ErrUnexpectedEOF)

// streamError converts the error of a failed stream. It returns a
// [*llm.CutError] if part of the response was received.
func (m *model) streamError(ctx context.Context, a *answer, err error) error {
	refused, ok := errors.AsType[*llm.StatusError](err)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case ok:
		refused.Vendor, refused.Message = m.quirks.Vendor, m.redactKey(refused.Message)
	case !a.hasStarted():
		err = fmt.Errorf("no answer from %s: %w", m.quirks.Vendor, err)
	}
	if !a.hasStarted() {
		return err
	}
	return &llm.CutError{Answer: a.whole(), Err: err}
}
