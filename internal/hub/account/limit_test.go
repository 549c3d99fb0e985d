package account_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := account.NewLimiter(10*time.Second, 3, 100)
		for i := range 3 {
			if err := l.Allow("a"); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
		for range 10 { // which does not make it worse
			limited, ok := errors.AsType[*account.RateLimitError](l.Allow("a"))
			if !ok || limited.RetryAfter != 10*time.Second {
				t.Fatalf("%v", limited)
			}
		}
		if err := l.Allow("b"); err != nil {
			t.Errorf("another key: %v", err)
		}
		time.Sleep(10 * time.Second)
		if l.Allow("a") != nil || l.Allow("a") == nil {
			t.Error("after ten seconds it is not once more")
		}
		time.Sleep(time.Hour)
		for i := range 4 {
			if err := l.Allow("a"); (err == nil) != (i < 3) {
				t.Errorf("after an hour, %d: %v", i, err)
			}
		}
	})
}

func TestLimiterCountsAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := account.NewLimiter(time.Hour, 2, 100)
		for range 2 {
			if err := l.Allow("user"); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			if l.Allow("address", "user") == nil {
				t.Fatal("over the limit")
			}
		}
		if err := errors.Join(l.Allow("address"), l.Allow("address")); err != nil {
			t.Error(err)
		}
	})
}

func TestLimiterMemoryIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := account.NewLimiter(time.Hour, 1, 10)
		for i := range 1000 {
			if err := l.Allow(fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			if i > 0 && l.Allow("0") == nil {
				t.Fatalf("after %d others, one that is always there was forgotten", i)
			}
		}
		if l.Keys() != 10 || l.Allow("999") == nil || l.Allow("1") != nil {
			t.Errorf("%d keys", l.Keys())
		}
	})
}

func TestLimiterIsConcurrent(t *testing.T) {
	l := account.NewLimiter(time.Hour, 50, 4)
	var group sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for range 8 {
		group.Go(func() {
			for range 100 {
				if l.Allow("a") == nil {
					mu.Lock()
					allowed++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if allowed != 50 {
		t.Errorf("%d, want 50", allowed)
	}
}

func BenchmarkLimiter(b *testing.B) {
	l := account.NewLimiter(time.Nanosecond, 1000, 10_000)
	keys := make([]string, 20_000)
	for i := range keys {
		keys[i] = fmt.Sprint("address ", i)
	}
	for i := 0; b.Loop(); i++ {
		_ = l.Allow(keys[i%len(keys)])
	}
}
