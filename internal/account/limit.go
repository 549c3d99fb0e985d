package account

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter limits how often something is done, for each key by itself: an address, a
// user, a token. It remembers so many keys and forgets the one that was away for the
// longest, which then begins anew. Limits are of one process. It is safe for
// concurrent use.
type Limiter struct {
	every time.Duration
	burst int
	most  int

	mu     sync.Mutex // guards what follows, for moments
	keys   map[string]*list.Element
	recent *list.List // of *limited, the last used first
}

type limited struct {
	key    string
	bucket *rate.Limiter
}

// NewLimiter lets each key do something burst times at once, and then once in every
// so long. It remembers at most so many keys, at about 300 bytes each. It panics for
// what is not above zero.
func NewLimiter(every time.Duration, burst, keys int) *Limiter {
	if every <= 0 || burst <= 0 || keys <= 0 {
		panic(fmt.Sprintf("account: a limit of one in %s, %d at once, for %d keys", every, burst, keys))
	}
	return &Limiter{every: every, burst: burst, most: keys, keys: map[string]*list.Element{}, recent: list.New()}
}

// LimitedError says that something is done too often. Answer with 429, and with After
// as Retry-After.
type LimitedError struct {
	After time.Duration // in whole seconds
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too often; try again in %s", e.After)
}

// Allow counts one time for each of the keys, or fails with a [*LimitedError] and
// counts none, as one of them would be too often.
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
			return &LimitedError{After: (wait + time.Second - 1).Truncate(time.Second)}
		}
		taken = append(taken, r)
	}
	return nil
}

// bucket is that of a key. mu is held.
func (l *Limiter) bucket(key string) *rate.Limiter {
	if e, ok := l.keys[key]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*limited).bucket
	}
	if l.recent.Len() >= l.most {
		last := l.recent.Back()
		delete(l.keys, last.Value.(*limited).key)
		l.recent.Remove(last)
	}
	k := &limited{key: key, bucket: rate.NewLimiter(rate.Every(l.every), l.burst)}
	l.keys[key] = l.recent.PushFront(k)
	return k.bucket
}
