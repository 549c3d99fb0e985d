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

// RetryOptions are how patient [Retry] is. The zero value is twice more, after about
// one and two seconds.
type RetryOptions struct {
	// Times is how often a request is repeated; 0 is 2, below 0 never.
	Times int
	// Wait is what the first wait is about, each further one twice as long; 0 is a second.
	Wait time.Duration
	// Longest is the longest wait; 0 is a minute. Where the vendor asks for more, its
	// refusal stands.
	Longest time.Duration
	// Tell is told of each failure that is followed by another try; nil is none.
	Tell func(err error, wait time.Duration)
}

// Retry returns a model that repeats a request that failed before anything of an
// answer came: where the vendor refused but may not the next time, or the network
// failed. What came in part is never repeated, as it has been shown.
func Retry(m Model, o *RetryOptions) Model {
	r := &retrying{Model: m}
	if o != nil {
		r.RetryOptions = *o
	}
	if r.Times == 0 {
		r.Times = 2
	}
	if r.Wait <= 0 {
		r.Wait = time.Second
	}
	if r.Longest <= 0 {
		r.Longest = time.Minute
	}
	return r
}

type retrying struct {
	Model
	RetryOptions
}

func (m *retrying) Stream(ctx context.Context, r *Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for n := 0; ; n++ {
			err := m.once(ctx, r, yield)
			if err == nil {
				return
			}
			wait, ok := m.wait(err, n)
			if !ok || ctx.Err() != nil {
				yield(nil, err)
				return
			}
			if m.Tell != nil {
				m.Tell(err, wait)
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

// once streams a request, and returns the error of one that failed before its first
// event. All else has been told when it returns nil.
func (m *retrying) once(ctx context.Context, r *Request, yield func(Event, error) bool) error {
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

// wait is how long to wait after the failure of a try, the first of which is 0, and
// whether there is to be another one.
func (m *retrying) wait(err error, n int) (time.Duration, bool) {
	if n >= m.Times || !passing(err) {
		return 0, false
	}
	d := m.Wait << min(n, 20)
	d = min(d/2+rand.N(d), m.Longest) // apart from others that failed at the same time
	var refused *StatusError
	if errors.As(err, &refused) && refused.After > d {
		d = refused.After
	}
	return d, d <= m.Longest
}

// passing reports whether the same request may succeed later.
func passing(err error) bool {
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
		return refused.Again()
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return false
	}
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
