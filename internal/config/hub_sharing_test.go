package config_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/config"
)

// The setting of earlier versions still permits links, unless the new one is set.
func TestSharingMode(t *testing.T) {
	for _, test := range []struct {
		hub  config.Hub
		want string
	}{
		{config.Hub{}, "members"},
		{config.Hub{ShareLinks: true}, "links"},
		{config.Hub{Sharing: "off", ShareLinks: true}, "off"},
		{config.Hub{Sharing: "members", ShareLinks: true}, "members"},
		{config.Hub{Sharing: "links"}, "links"},
	} {
		if got := test.hub.SharingMode(); got != test.want {
			t.Errorf("%+v: %s, want %s", test.hub, got, test.want)
		}
	}
}
