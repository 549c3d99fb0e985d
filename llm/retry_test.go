package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/llm"
)

// tries is a model whose attempts have scripted results.
type tries struct {
	script []func(yield func(llm.Event, error) bool)
	at     []time.Time
}

func (m *tries) Name() string { return "test:tries" }

func (m *tries) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		m.at = append(m.at, time.Now())
		m.script[min(len(m.at), len(m.script))-1](yield)
	}
}

func fails(err error) func(func(llm.Event, error) bool) {
	return func(yield func(llm.Event, error) bool) { yield(nil, err) }
}

func says(words string) func(func(llm.Event, error) bool) {
	return func(yield func(llm.Event, error) bool) {
		if yield(llm.TextDelta(words), nil) {
			yield(llm.Done{Answer: llm.Answer{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text(words)}}}}, nil)
		}
	}
}

var busy = &llm.StatusError{Vendor: "test", Code: 429, Message: "slow down"}

func TestRetryRepeatsTemporaryErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		tries int
	}{
		"too many requests":   {busy, 3},
		"overloaded":          {&llm.StatusError{Code: 529}, 3},
		"wrapped":             {fmt.Errorf("test: %w", busy), 3},
		"wrong request":       {&llm.StatusError{Code: 400}, 1},
		"no such key":         {&llm.StatusError{Code: 401}, 1},
		"connection refused":  {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, 3},
		"connection cut":      {fmt.Errorf("test: %w", io.ErrUnexpectedEOF), 3},
		"no such host":        {&net.DNSError{Err: "no such host", IsNotFound: true}, 1},
		"an answer broke off": {&llm.CutError{Err: busy}, 1},
		"cannot be sent":      {errors.New("the tool has no name"), 1},
		"canceled":            {context.Canceled, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &tries{script: []func(func(llm.Event, error) bool){fails(c.err)}}
				_, err := llm.Ask(t.Context(), llm.Retry(m, nil), &llm.Request{}, nil)
				if !errors.Is(err, c.err) || len(m.at) != c.tries {
					t.Errorf("got %v after %d tries, want %v after %d", err, len(m.at), c.err, c.tries)
				}
			})
		})
	}
}

func TestRetryBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &tries{script: []func(func(llm.Event, error) bool){fails(busy)}}
		reported := 0
		_, err := llm.Ask(t.Context(), llm.Retry(m, &llm.RetryOptions{MaxRetries: 4, MaxWait: 5 * time.Second, OnRetry: func(error, time.Duration) { reported++ }}), &llm.Request{}, nil)
		if !errors.Is(err, busy) || len(m.at) != 5 || reported != 4 {
			t.Fatalf("got %v after %d tries, %d told", err, len(m.at), reported)
		}
		least := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}
		for i, want := range least {
			if got := m.at[i+1].Sub(m.at[i]); got < want || got > min(3*want, 5*time.Second) {
				t.Errorf("wait %d = %v, want %v to %v", i, got, want, min(3*want, 5*time.Second))
			}
		}
	})
}

func TestRetryHonorsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &tries{script: []func(func(llm.Event, error) bool){fails(&llm.StatusError{Code: 429, After: 20 * time.Second}), says("hello")}}
		a, err := llm.Ask(t.Context(), llm.Retry(m, nil), &llm.Request{}, nil)
		if err != nil || a.Message.Text() != "hello" || m.at[1].Sub(m.at[0]) != 20*time.Second {
			t.Errorf("got %v, %v after %v", a, err, m.at)
		}
	})
}

// A delay of an hour is neither waited for nor shortened, because the vendor
// would refuse again.
func TestRetryGivesUpOnLongRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &tries{script: []func(func(llm.Event, error) bool){fails(&llm.StatusError{Code: 429, After: time.Hour})}}
		start := time.Now()
		_, err := llm.Ask(t.Context(), llm.Retry(m, nil), &llm.Request{}, nil)
		var refused *llm.StatusError
		if !errors.As(err, &refused) || refused.After != time.Hour || len(m.at) != 1 || time.Since(start) != 0 {
			t.Errorf("got %v after %d tries and %v", err, len(m.at), time.Since(start))
		}
	})
}

func TestRetryNeverRepeatsStartedResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &tries{script: []func(func(llm.Event, error) bool){
			fails(busy),
			func(yield func(llm.Event, error) bool) {
				_ = yield(llm.TextDelta("hel"), nil) && yield(nil, busy)
			},
		}}
		var words string
		_, err := llm.Ask(t.Context(), llm.Retry(m, nil), &llm.Request{}, func(e llm.Event) {
			if d, ok := e.(llm.TextDelta); ok {
				words += string(d)
			}
		})
		if !errors.Is(err, busy) || len(m.at) != 2 || words != "hel" {
			t.Errorf("got %q, %v after %d tries", words, err, len(m.at))
		}
	})
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped by hand")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(stopped) })
		m := &tries{script: []func(func(llm.Event, error) bool){fails(&llm.StatusError{Code: 429, After: 30 * time.Second})}}
		start := time.Now()
		_, err := llm.Ask(ctx, llm.Retry(m, nil), &llm.Request{}, nil)
		if !errors.Is(err, stopped) || len(m.at) != 1 || time.Since(start) != 5*time.Second {
			t.Errorf("got %v after %d tries and %v", err, len(m.at), time.Since(start))
		}
	})
}

func TestRetryEndsWithItsConsumer(t *testing.T) {
	m := &tries{script: []func(func(llm.Event, error) bool){says("hello")}}
	for range llm.Retry(m, nil).Stream(t.Context(), &llm.Request{}) {
		break
	}
	if len(m.at) != 1 {
		t.Errorf("%d tries", len(m.at))
	}
}
