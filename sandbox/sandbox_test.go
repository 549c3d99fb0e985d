package sandbox_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

func TestSecretPrintsAsItsName(t *testing.T) {
	s := sandbox.NewSecret("KEY", "hunter2hunter2")
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "spec", sandbox.Spec{Secrets: []sandbox.Secret{s}})
	js, _ := s.MarshalText()
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s, s, s), fmt.Sprintf("%+v %#v", sandbox.Spec{Secrets: []sandbox.Secret{s}}, struct{ S sandbox.Secret }{s}), log.String(), string(js)} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("the value is in %s", text)
		}
	}
	if s.Reveal() != "hunter2hunter2" {
		t.Error("the value is lost")
	}
}

func TestMissingLayers(t *testing.T) {
	r := sandbox.Report{Layers: []sandbox.Layer{{Name: "inodes"}, {Name: "memory", Enforced: true}, {Name: "network"}}}
	if got := r.Missing(); !slices.Equal(got, []string{"inodes", "network"}) {
		t.Errorf("missing %q", got)
	}
	r.Layers = r.Layers[1:2]
	if got := r.Missing(); got != nil {
		t.Errorf("missing %q, want none", got)
	}
}
