package oauthtest

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/oauth"
)

// TestStorage tests an [oauth.Storage]. open must open the same storage on each
// call. The storage must be initially empty and support the principals ada and
// bob.
func TestStorage(t *testing.T, open func() oauth.Storage) {
	ctx := t.Context()
	k := open()
	ada, bob := oauth.Key{Principal: "ada", Server: "https://a.example.com/mcp"}, oauth.Key{Principal: "bob", Server: "https://a.example.com/mcp"}
	other := oauth.Key{Principal: "ada", Server: "https://b.example.com/mcp"}
	wants := func(of oauth.Key, want string) {
		t.Helper()
		if got, err := open().Read(ctx, of); err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("stored for %v: %q, %v; want %q", of, got, err, want)
		}
	}
	change := func(of oauth.Key, next string, fail error) error {
		return k.Change(ctx, of, func([]byte) ([]byte, error) {
			if next == "" {
				return nil, fail
			}
			return []byte(next), fail
		})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wants(ada, "")
	must(change(ada, "first", nil))
	must(change(bob, "his", nil))
	wants(ada, "first")
	wants(other, "")
	must(change(ada, "second", nil))
	must(change(ada, "second", nil))
	no := errors.New("edit failed")
	if err := change(ada, "third", no); !errors.Is(err, no) {
		t.Errorf("got error %v, want the error of edit", err)
	}
	wants(ada, "second")
	must(change(ada, "", nil))
	must(change(ada, "", nil))
	wants(ada, "")
	wants(bob, "his")

	const many = 12
	var running sync.WaitGroup
	for range many {
		k := open()
		running.Go(func() {
			err := k.Change(ctx, ada, func(old []byte) ([]byte, error) {
				n, _ := strconv.Atoi(string(old))
				return strconv.AppendInt(nil, int64(n+1), 10), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	wants(ada, strconv.Itoa(many))
}
