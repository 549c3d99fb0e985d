package llm

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"time"
)

// RetryOptions configures [Retry]. The zero value retries requests twice, after
// about one and two seconds.
type RetryOptions struct {
	// MaxRetries is the maximum number of retries of a request; 0 means 2, and
	// a negative value disables retries.
	MaxRetries int
	// Wait is the approximate delay before the first retry; 0 means one second.
	// The delay doubles with each retry and varies by half in both directions.
	// A longer Retry-After of the vendor replaces it.
	Wait time.Duration
	// MaxWait is the maximum delay; 0 means one minute. If the vendor asks for
	// a longer delay, the request is not retried.
	MaxWait time.Duration
	// OnRetry, if not nil, is called with the error and the delay before each
	// delay. It must be safe for concurrent use if the model is used
	// concurrently.
	OnRetry func(err error, wait time.Duration)
}

// Retry returns a model that retries requests that failed temporarily before
// the first event. Temporary failures are network errors, unless the host is
// unknown, and errors for which [StatusError.Temporary] returns true. Retry never
// retries a request after part of the response was yielded. After the last
// retry, the model yields the last error. If ctx is done during a delay, it
// yields the cause of ctx. o may be nil.
func Retry(m Model, o *RetryOptions) Model {
	r := &retryingModel{Model: m}
	if o != nil {
		r.RetryOptions = *o
	}
	if r.MaxRetries == 0 {
		r.MaxRetries = 2
	}
	if r.Wait <= 0 {
		r.Wait = time.Second
	}
	if r.MaxWait <= 0 {
		r.MaxWait = time.Minute
	}
	return r
}

type retryingModel struct {
	Model
	RetryOptions
}

func (m *retryingModel) Stream(ctx context.Context, r *Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for n := 0; ; n++ {
			err := m.once(ctx, r, yield)
			if err == nil {
				return
			}
			wait, ok := m.delay(err, n)
			if !ok || ctx.Err() != nil {
				yield(nil, err)
				return
			}
			if m.OnRetry != nil {
				m.OnRetry(err, wait)
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}

// once streams a request. If the request fails before the first event, once
// returns the error and yields nothing. Otherwise it yields all events and
// errors, and returns nil.
func (m *retryingModel) once(ctx context.Context, r *Request, yield func(Event, error) bool) error {
	begun := false
	for e, err := range m.Model.Stream(ctx, r) {
		if err != nil && !begun {
			return err
		}
		begun = true
		if !yield(e, err) {
			return nil
		}
	}
	return nil
}

// delay returns the time to wait before retrying after failed attempt n,
// counted from 0. It returns false if the request should not be retried.
func (m *retryingModel) delay(err error, n int) (time.Duration, bool) {
	if n >= m.MaxRetries || !isTemporary(err) {
		return 0, false
	}
	d := m.Wait << min(n, 20)
	d = min(d/2+rand.N(d), m.MaxWait) // jitter spreads the retries of requests that failed at the same time
	var refused *StatusError
	if errors.As(err, &refused) && refused.After > d {
		d = refused.After
	}
	return d, d <= m.MaxWait
}

// isTemporary reports whether a request that failed with err might succeed if it
// is retried.
func isTemporary(err error) bool {
	var (
		refused *StatusError
		cut     *CutError
		unknown *net.DNSError
		network net.Error
	)
	switch {
	case errors.As(err, &cut):
		return false
	case errors.As(err, &refused):
		return refused.Temporary()
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return false
	}
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
