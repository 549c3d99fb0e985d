package evaluation

import "math"

// minCases is the number of cases below which a share says little.
const minCases = 5

// Share is the share of the cases that passed.
type Share struct {
	Rate float64 `json:"rate"`
	// Low and High bound the rate with a probability of 95 % (Wilson).
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Underpowered is set for fewer than five cases, which say little.
	Underpowered bool `json:"underpowered"`
}

// tally counts cases.
type tally struct{ passed, n int }

func (t *tally) add(passed bool) {
	t.n++
	if passed {
		t.passed++
	}
}

// all reports whether all cases passed.
func (t *tally) all() bool { return t.passed == t.n }

// share returns the share of the cases that passed, which is 0 without cases.
func (t *tally) share() Share {
	out := Share{High: 1, Underpowered: t.n < minCases}
	if t.n > 0 {
		out.Rate = float64(t.passed) / float64(t.n)
		out.Low, out.High = wilson(t.passed, t.n)
	}
	return out
}

// wilson returns the interval of a rate with a probability of 95 % (E. B. Wilson, 1927).
func wilson(passed, n int) (low, high float64) {
	const z = 1.96 // standard deviations
	total := float64(n)
	rate := float64(passed) / total
	middle := (rate + z*z/(2*total)) / (1 + z*z/total)
	width := z / (1 + z*z/total) * math.Sqrt(rate*(1-rate)/total+z*z/(4*total*total))
	return max(middle-width, 0), min(middle+width, 1)
}
