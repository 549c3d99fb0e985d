package account

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter limits how often an operation runs for each key, such as an address, a
// user or a token. If there are too many keys, it forgets the least recently used
// one. It counts only operations in this process. It is safe for concurrent use.
type Limiter struct {
	every   time.Duration
	burst   int
	maxKeys int

	mu     sync.Mutex // guards the fields below
	keys   map[string]*list.Element
	recent *list.List // holds *limitedKey, most recently used first
}

type limitedKey struct {
	key    string
	bucket *rate.Limiter
}

// NewLimiter returns a limiter that allows each key a burst of operations and then
// one operation per interval. It tracks up to maxKeys keys, each of which takes
// about 300 bytes. It panics if an argument is not positive.
func NewLimiter(interval time.Duration, burst, maxKeys int) *Limiter {
	if interval <= 0 || burst <= 0 || maxKeys <= 0 {
		panic(fmt.Sprintf("account: invalid limit: every %s, burst %d, %d keys", interval, burst, maxKeys))
	}
	return &Limiter{every: interval, burst: burst, maxKeys: maxKeys, keys: map[string]*list.Element{}, recent: list.New()}
}

// RateLimitError reports that an operation ran too often. Respond with status 429
// and a Retry-After header.
type RateLimitError struct {
	RetryAfter time.Duration // whole seconds
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("too many requests; try again in %d s", e.RetryAfter/time.Second)
}

// Allow counts an operation for each of the keys. If that would exceed any key's
// limit, it counts nothing and fails with a [*RateLimitError].
func (l *Limiter) Allow(keys ...string) error {
	limits := make([]limit, len(keys))
	for i, key := range keys {
		limits[i] = limit{l, key}
	}
	return allowAll(limits...)
}

// Undo subtracts an operation from the count of a key.
func (l *Limiter) Undo(key string) { undoAll(limit{l, key}) }

// Reset forgets the operations of a key.
func (l *Limiter) Reset(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.keys[key]; ok {
		delete(l.keys, key)
		l.recent.Remove(e)
	}
}

// limit is a [Limiter] applied to one key.
type limit struct {
	*Limiter
	key string
}

// allowAll counts an operation for each of the limits. If that would exceed any of
// them, it counts nothing and fails with a [*RateLimitError].
func allowAll(limits ...limit) error {
	now := time.Now()
	var taken []*rate.Reservation
	for _, l := range limits {
		r := l.reserve(l.key, now)
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

// undoAll subtracts one operation from the count of each limit.
func undoAll(limits ...limit) {
	now := time.Now()
	for _, l := range limits {
		l.mu.Lock()
		// A reservation of -1 adds a token, up to the burst. Reservation.CancelAt has
		// no effect after the time of the reservation.
		l.bucket(l.key).ReserveN(now, -1)
		l.mu.Unlock()
	}
}

func (l *Limiter) reserve(key string, now time.Time) *rate.Reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bucket(key).ReserveN(now, 1)
}

// bucket returns the token bucket of a key, creating it if it is missing. The
// caller must hold mu.
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
