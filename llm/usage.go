package llm

// Usage is the number of tokens that a request used, as reported by the vendor.
// The three input counts do not overlap.
type Usage struct {
	Input      int `json:"input"`       // neither read from nor written to the cache
	CacheRead  int `json:"cache_read"`  // read from the cache
	CacheWrite int `json:"cache_write"` // written to the cache
	Output     int `json:"output"`      // includes thinking
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Output + v.Output}
}

// Prompt returns the total number of input tokens.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite }

// Price is the price of a model in US dollars per million tokens. The zero
// value means an unknown price.
type Price struct{ Input, CacheRead, CacheWrite, Output float64 }

// Known reports whether the price is known.
func (p Price) Known() bool { return p != Price{} }

// Cost returns the cost of the tokens in u in US dollars, and what it would be
// without a cache.
func (p Price) Cost(u Usage) (cost, uncached float64) {
	const million = 1e6
	cost, uncached = p.weigh(u)
	return cost / million, uncached / million
}

// equivalent holds the weights of tokens relative to an uncached input token.
// They approximate vendors' price ratios.
var equivalent = Price{Input: 1, CacheRead: 0.1, CacheWrite: 1.25, Output: 5}

// Equivalents converts u to a number of uncached input tokens, for models whose
// price is unknown. A cache read counts as 0.1, a cache write as 1.25, and an
// output token as 5. uncached is the number without a cache.
func (u Usage) Equivalents() (tokens, uncached float64) { return equivalent.weigh(u) }

func (p Price) weigh(u Usage) (weight, uncached float64) {
	out := float64(u.Output) * p.Output
	weight = float64(u.Input)*p.Input + float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite + out
	return weight, float64(u.Prompt())*p.Input + out
}
