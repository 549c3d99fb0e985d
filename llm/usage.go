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
	out := float64(u.Output) * p.Output
	cost = float64(u.Input)*p.Input + float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite + out
	return cost / million, (float64(u.Prompt())*p.Input + out) / million
}
