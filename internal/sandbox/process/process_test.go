package process

import (
	"context"
	"errors"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

const digest = "sha256:allowed"

func only(allowed string) func(string) bool { return func(d string) bool { return d == allowed } }

func TestRunNeedsPermission(t *testing.T) {
	spec := func(digest string) *sandbox.Spec {
		return &sandbox.Spec{Digest: digest, Network: sandbox.Network{Host: true}}
	}
	for name, c := range map[string]struct {
		opts *Options
		spec *sandbox.Spec
	}{
		"no options":     {nil, spec(digest)},
		"nobody asked":   {&Options{}, spec(digest)},
		"another digest": {&Options{Allow: only(digest)}, spec("sha256:other")},
		"no digest":      {&Options{Allow: func(string) bool { return true }}, spec("")},
	} {
		_, err := New(c.opts).Start(context.Background(), c.spec)
		if e, ok := errors.AsType[*NotAllowedError](err); !ok || e.Digest != c.spec.Digest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyHostNetworkIsSupported(t *testing.T) {
	b := New(&Options{Allow: only(digest)})
	for _, n := range []sandbox.Network{{}, {Allow: []string{"example.com"}}} {
		_, err := b.Start(context.Background(), &sandbox.Spec{Digest: digest, Network: n})
		if e, ok := errors.AsType[*sandbox.UnsupportedError](err); !ok || e.Fix == "" {
			t.Errorf("network %+v: %v", n, err)
		}
	}
}
