// Package retryafter reads how long a server asks its clients to wait before a
// retry.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Limit is the longest delay that [Parse] returns.
const Limit = 24 * time.Hour

// Parse returns the delay in a response header, or 0 if there is none. It prefers
// Retry-After-Ms, which some vendors of models send, to Retry-After, which holds
// a number of seconds or a date.
func Parse(h http.Header) time.Duration {
	for _, unit := range []struct {
		header string
		length time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		n, err := strconv.ParseFloat(h.Get(unit.header), 64)
		if err == nil && n > 0 {
			return time.Duration(min(n, float64(Limit/unit.length)) * float64(unit.length))
		}
	}
	if t, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return min(max(0, time.Until(t)), Limit)
	}
	return 0
}
