package hub_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
)

// getAccepting requests path with an Accept header and follows no redirect.
func getAccepting(t *testing.T, url, accept string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

const browserAccept = "text/html,application/xhtml+xml,*/*;q=0.8"

func TestPageIsServedToBrowsersOnly(t *testing.T) {
	n := start(t, hub.Options{})
	for _, test := range []struct {
		path, accept string
		status       int
		page         bool
	}{
		{"/", browserAccept, 200, true},
		{"/library", browserAccept, 200, true},
		{"/chat/some-id", browserAccept, 200, true},
		{"/library/some.id", browserAccept, 200, true},
		{"/", "*/*", 200, false}, // as curl
		{"/library", "*/*", 404, false},
		{"/api/v1/nothing", browserAccept, 404, false},
		{"/assets/nothing.js", browserAccept, 404, false},
		{"/.well-known/nothing", browserAccept, 404, false},
	} {
		res, body := getAccepting(t, n.URL+test.path, test.accept)
		if page := strings.Contains(body, `<div id="app">`); res.StatusCode != test.status || page != test.page {
			t.Errorf("%s with Accept %s: status %d, page %v; want %d, %v", test.path, test.accept, res.StatusCode, page, test.status, test.page)
		}
	}
}
