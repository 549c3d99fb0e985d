package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/retryafter"
)

func TestParse(t *testing.T) {
	const ms, s = "Retry-After-Ms", "Retry-After"
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for name, c := range map[string]struct {
		header   map[string]string
		min, max time.Duration
	}{
		"no header":         {nil, 0, 0},
		"seconds":           {map[string]string{s: "30"}, 30 * time.Second, 30 * time.Second},
		"parts of a second": {map[string]string{s: "2.5"}, 2500 * time.Millisecond, 2500 * time.Millisecond},
		"milliseconds":      {map[string]string{ms: "1500"}, 1500 * time.Millisecond, 1500 * time.Millisecond},
		"both":              {map[string]string{ms: "1500", s: "30"}, 1500 * time.Millisecond, 1500 * time.Millisecond},
		"invalid first":     {map[string]string{ms: "soon", s: "30"}, 30 * time.Second, 30 * time.Second},
		"zero":              {map[string]string{s: "0"}, 0, 0},
		"negative":          {map[string]string{s: "-3"}, 0, 0},
		"not a number":      {map[string]string{s: "NaN"}, 0, 0},
		"too long":          {map[string]string{ms: "1e300"}, retryafter.Limit, retryafter.Limit},
		"infinite":          {map[string]string{s: "Inf"}, retryafter.Limit, retryafter.Limit},
		"a date":            {map[string]string{s: in(time.Hour)}, 50 * time.Minute, time.Hour},
		"a past date":       {map[string]string{s: in(-time.Hour)}, 0, 0},
		"a distant date":    {map[string]string{s: in(1000 * time.Hour)}, retryafter.Limit, retryafter.Limit},
	} {
		h := http.Header{}
		for k, v := range c.header {
			h.Set(k, v)
		}
		for range 20 { // the order of headers does not matter
			if got := retryafter.Parse(h); got < c.min || got > c.max {
				t.Errorf("%s: %v, want %v to %v", name, got, c.min, c.max)
			}
		}
	}
}
