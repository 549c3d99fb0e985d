package llm

// Usage is what an answer took, in tokens, as the vendor counts them. The three
// kinds of input do not overlap.
type Usage struct {
	Input      int `json:"input"`       // read anew, and not kept
	CacheRead  int `json:"cache_read"`  // found in the cache
	CacheWrite int `json:"cache_write"` // read anew, and kept
	Output     int `json:"output"`      // thinking included
}

// Add returns both together.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Output + v.Output}
}

// Prompt is all that was sent.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite }

// Price is what a model costs, in US dollars a million tokens. The zero value is
// not known.
type Price struct{ Input, CacheRead, CacheWrite, Output float64 }

// Known reports whether there is a price.
func (p Price) Known() bool { return p != Price{} }

// Cost is what a usage costs in US dollars, and what it would without a cache.
func (p Price) Cost(u Usage) (cost, uncached float64) {
	const million = 1e6
	cost, uncached = p.weigh(u)
	return cost / million, uncached / million
}

// equivalent is what tokens weigh against one that is read anew, about as vendors
// price them.
var equivalent = Price{Input: 1, CacheRead: 0.1, CacheWrite: 1.25, Output: 5}

// Equivalents is what a usage weighs in tokens of input that are read anew, for where
// no price is known: a token out of the cache a tenth, one into it a quarter more, one
// of output five. The other is what it would weigh without a cache.
func (u Usage) Equivalents() (tokens, uncached float64) { return equivalent.weigh(u) }

func (p Price) weigh(u Usage) (weight, uncached float64) {
	out := float64(u.Output) * p.Output
	weight = float64(u.Input)*p.Input + float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite + out
	return weight, float64(u.Prompt())*p.Input + out
}
