package skillapi

import (
	"net/http"
	"testing"
)

func TestMatchesETag(t *testing.T) {
	const tag = `"abc"`
	for _, tt := range []struct {
		header []string
		want   bool
	}{
		{nil, false}, {[]string{""}, false}, {[]string{`"abd"`}, false}, {[]string{"abc"}, false},
		{[]string{tag}, true}, {[]string{"W/" + tag}, true}, {[]string{"*"}, true},
		{[]string{`"x", ` + tag + `, "y"`}, true}, {[]string{`"x"`, tag}, true}, {[]string{`"x", "y"`}, false},
	} {
		if got := matchesETag(&http.Request{Header: http.Header{"If-None-Match": tt.header}}, tag); got != tt.want {
			t.Errorf("If-None-Match %q: %t, want %t", tt.header, got, tt.want)
		}
	}
}
