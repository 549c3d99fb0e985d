package llm

// Usage is the number of tokens that a request used, as reported by the vendor.
// The three input counts do not overlap. The zero value means that the vendor
// reported nothing.
type Usage struct {
	Input      int `json:"input"`       // neither read from nor written to the cache
	CacheRead  int `json:"cache_read"`  // read from the cache
	CacheWrite int `json:"cache_write"` // written to the cache
	Output     int `json:"output"`      // includes thinking
}

// Add returns the sum of u and v. It can be used to total the requests of a
// conversation.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Output + v.Output}
}

// Prompt returns the total number of input tokens, cached or not.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite }
