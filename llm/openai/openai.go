// Package openai implements [llm.Model] for OpenAI's chat completions API and
// compatible servers. [QuirksOf] returns how a server differs from others.
//
// The package makes the requests itself, because OpenAI's own library merges
// calls without an index, adds up usage that is repeated in every chunk, and
// accepts a truncated stream as complete. The library would also nearly double
// the size of the program and increase its start time by a quarter.
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
	// Key is sent as a bearer token; "" sends no token, which local servers
	// accept.
	Key string
	// BaseURL is the URL to which "/chat/completions" is appended; "" selects
	// OpenAI.
	BaseURL string
	// MaxTokens limits the answer if the request sets no limit; 0 means the
	// limit of the server.
	MaxTokens int
	// HTTP sends the requests; nil means [http.DefaultClient], which uses the
	// proxy from the environment. Its Timeout must be 0, because a timeout
	// would truncate long answers.
	HTTP *http.Client
	// Quirks describes the server; nil means the result of [QuirksOf].
	Quirks *Quirks
}

// Model is a model on a server with the chat completions API. It is safe for
// concurrent use.
type Model struct {
	name      string // name of the model on the server
	key       string
	maxTokens int
	quirks    Quirks
	post      func(ctx context.Context, body []byte) (*http.Response, error)
}

var _ llm.Model = (*Model)(nil)

const openAI = "https://api.openai.com/v1"

// New returns the model with the given name on its server. It does not connect.
// It reads no key, address or header from the environment, so that users who
// share a process do not share keys.
func New(model string, opts *Options) (*Model, error) {
	if opts == nil {
		opts = &Options{}
	}
	if model == "" {
		return nil, errors.New("model name missing; use the name that the server uses")
	}
	base := opts.BaseURL
	if base == "" {
		base = openAI
	}
	if err := checkBase(base); err != nil {
		return nil, err
	}
	q := QuirksOf(base, model)
	if opts.Quirks != nil {
		q = *opts.Quirks
	}
	if q.Vendor == "" || strings.Contains(q.Vendor, ":") {
		return nil, fmt.Errorf("invalid vendor %q in quirks; use a name without a colon", q.Vendor)
	}
	return &Model{
		name: model, key: opts.Key, maxTokens: opts.MaxTokens, quirks: q,
		post: poster(base, opts.Key, opts.HTTP),
	}, nil
}

// checkBase rejects URLs that contain credentials, or parts that would be
// ignored.
func checkBase(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return errors.New("invalid base URL; write https://HOST/v1") // err would repeat the URL with its credentials
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("unsupported base URL %q; write https://HOST/v1", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("base URL %s contains a user name or password; pass the key as an option", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("base URL of %s contains a query or fragment; remove it", u.Host)
	}
	return nil
}

// Name returns the vendor from the quirks and the name of the model on the
// server.
func (m *Model) Name() string { return m.quirks.Vendor + ":" + m.name }

// Stream implements [llm.Model]. It has no timeout: it waits for the server
// until ctx is done.
func (m *Model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
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

// errStopped ends a stream whose consumer stopped.
var errStopped = errors.New("stopped by the consumer")

// read adds the events of a stream to the answer and yields them.
func (m *Model) read(res *http.Response, a *answer, yield func(llm.Event) bool) error {
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
		news, err := a.add(data)
		if err != nil {
			return err
		}
		for _, e := range news {
			if !yield(e) {
				return errStopped
			}
		}
	}
}

var errNoDone = fmt.Errorf("stream ended without [DONE]: %w", io.ErrUnexpectedEOF)

// streamError returns the error of a stream that failed. It is a
// [*llm.CutError] if part of the answer was received.
func (m *Model) streamError(ctx context.Context, a *answer, err error) error {
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
