// Package openai reaches models by chat completions: those of OpenAI, and of every
// server that calls itself compatible. How these differ is in one table, [QuirksOf].
//
// One request is all there is to the protocol, and it is made here. OpenAI's own
// library would do no more than send it: what comes back has to be put together in
// another way than it does, which merges calls that have no index, adds up usage
// that is told with every chunk, and takes a cut stream for a whole one. It would
// nearly double the size of the program, and add a quarter to its start.
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

// Options say where a model is and how its server differs. The zero value is
// OpenAI without a key.
type Options struct {
	// Key is sent as a bearer token, "" sends none, as servers on this machine
	// want it.
	Key string
	// BaseURL is the address before "/chat/completions"; "" is OpenAI's.
	BaseURL string
	// MaxTokens bounds the answer where a request does not; 0 leaves it to the
	// server.
	MaxTokens int
	// HTTP makes the requests; nil is [http.DefaultClient], which goes through the
	// machine's proxy. It must have no Timeout, as that would cut long answers.
	HTTP *http.Client
	// Quirks of the server; nil is [QuirksOf] the address and the model.
	Quirks *Quirks
}

// Model is a model behind chat completions. It is safe for concurrent use.
type Model struct {
	name      string // the server's
	key       string
	maxTokens int
	quirks    Quirks
	post      func(ctx context.Context, body []byte) (*http.Response, error)
}

var _ llm.Model = (*Model)(nil)

const openAI = "https://api.openai.com/v1"

// New returns a model by the name that its server has for it. Nothing is sent
// before [Model.Stream], and no key, address or header comes from the environment,
// so that whoever shares this process does not share its keys.
func New(model string, opts *Options) (*Model, error) {
	if opts == nil {
		opts = &Options{}
	}
	if model == "" {
		return nil, errors.New("no model is named; give the name that the server has for it")
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
		return nil, fmt.Errorf("quirks name the vendor %q; give a name without a colon, as it is the part of the model's name before it", q.Vendor)
	}
	return &Model{
		name: model, key: opts.Key, maxTokens: opts.MaxTokens, quirks: q,
		post: poster(base, opts.Key, opts.HTTP),
	}, nil
}

// checkBase refuses addresses that would carry a secret in sight, or lose a part.
func checkBase(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return errors.New("the base URL cannot be read; write it as https://HOST/v1") // err repeats it, and what it may hold
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("base URL %q is not one of HTTP; write it as https://HOST/v1", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("base URL %s has a name or password in it; give the key as an option", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("base URL of %s has a query or fragment, which would be lost; leave it out", u.Host)
	}
	return nil
}

// Name is the vendor by its quirks, and the server's name of the model.
func (m *Model) Name() string { return m.quirks.Vendor + ":" + m.name }

// Stream implements [llm.Model]. A server that is asked for too much answers with
// [llm.StopLength], and one that goes silent is waited for until ctx ends.
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
			yield(nil, m.broken(ctx, a, err))
		default:
			yield(llm.Done{Answer: a.whole()}, nil)
		}
	}
}

// errStopped ends a stream whose consumer has gone.
var errStopped = errors.New("stopped by the consumer")

// read takes the answer from the stream, handing on what comes.
func (m *Model) read(res *http.Response, a *answer, yield func(llm.Event) bool) error {
	events := newEvents(res.Body)
	for {
		data, err := events.next()
		if err != nil {
			return err
		}
		if string(data) == "[DONE]" {
			return a.ended()
		}
		if data == nil { // the stream has ended
			if m.quirks.NoDone {
				return a.ended()
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

var errNoDone = fmt.Errorf("the stream ended without [DONE]: %w", io.ErrUnexpectedEOF)

// broken is the error of a stream that did not come to its end: that of a cut
// answer, unless nothing of one had come.
func (m *Model) broken(ctx context.Context, a *answer, err error) error {
	refused, ok := errors.AsType[*llm.StatusError](err)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case ok:
		refused.Vendor, refused.Message = m.quirks.Vendor, m.clean(refused.Message)
	case !a.begun():
		err = fmt.Errorf("%s began no answer: %w", m.quirks.Vendor, err)
	}
	if !a.begun() {
		return err
	}
	return &llm.CutError{Answer: a.whole(), Err: err}
}
