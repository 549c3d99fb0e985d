package account

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter limits how often an operation runs, separately for each key: an
// address, a user, a token. It remembers a limited number of keys and drops the
// least recently used one, which then starts over. It counts within one
// process. It is safe for concurrent use.
type Limiter struct {
	every   time.Duration
	burst   int
	maxKeys int

	mu     sync.Mutex // guards the fields below
	keys   map[string]*list.Element
	recent *list.List // of *limitedKey, most recently used first
}

type limitedKey struct {
	key    string
	bucket *rate.Limiter
}

// NewLimiter returns a limiter that allows each key a burst and then one
// operation per interval. It remembers at most keys keys, at about 300 bytes
// each. It panics if an argument is not positive.
func NewLimiter(every time.Duration, burst, keys int) *Limiter {
	if every <= 0 || burst <= 0 || keys <= 0 {
		panic(fmt.Sprintf("account: invalid limit: every %s, burst %d, %d keys", every, burst, keys))
	}
	return &Limiter{every: every, burst: burst, maxKeys: keys, keys: map[string]*list.Element{}, recent: list.New()}
}

// RateLimitError says that an operation ran too often. Answer with 429 and a
// Retry-After header.
type RateLimitError struct {
	RetryAfter time.Duration // whole seconds
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("too many requests; try again in %s", e.RetryAfter)
}

// Allow counts one operation for each key. If that exceeds the limit of one of
// them, it counts none and fails with a [*RateLimitError].
func (l *Limiter) Allow(keys ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var taken []*rate.Reservation
	for _, key := range keys {
		r := l.bucket(key).ReserveN(now, 1)
		if wait := r.DelayFrom(now); wait > 0 {
			r.CancelAt(now)
			for _, t := range taken {
				t.CancelAt(now)
			}
			return &RateLimitError{RetryAfter: (wait + time.Second - 1).Truncate(time.Second)}
		}
		taken = append(taken, r)
	}
	return nil
}

// bucket returns the bucket of a key. The caller holds mu.
func (l *Limiter) bucket(key string) *rate.Limiter {
	if e, ok := l.keys[key]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*limitedKey).bucket
	}
	if l.recent.Len() >= l.maxKeys {
		last := l.recent.Back()
		delete(l.keys, last.Value.(*limitedKey).key)
		l.recent.Remove(last)
	}
	k := &limitedKey{key: key, bucket: rate.NewLimiter(rate.Every(l.every), l.burst)}
	l.keys[key] = l.recent.PushFront(k)
	return k.bucket
}
