package usage

// ModelCost is a model's usage with its cost.
type ModelCost struct {
	Model
	// Cost and Uncached are the costs in US dollars, with and without the
	// vendor's prompt cache. They are null if no price is configured.
	Cost     *float64 `json:"cost_usd"`
	Uncached *float64 `json:"cost_uncached_usd"`
	// Equivalents and UncachedEquivalents are the costs in input tokens, which
	// do not depend on the price.
	Equivalents         float64 `json:"equivalents"`
	UncachedEquivalents float64 `json:"equivalents_uncached"`
}

// AtPrice returns the usage with its cost at price p. known must be false if no
// price is configured.
func (m Model) AtPrice(p Price, known bool) ModelCost {
	out := ModelCost{Model: m}
	out.Equivalents, out.UncachedEquivalents = Equivalents(m.Usage)
	if known {
		cost, uncached := p.Cost(m.Usage)
		out.Cost, out.Uncached = &cost, &uncached
	}
	return out
}
