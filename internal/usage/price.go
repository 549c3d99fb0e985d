package usage

import (
	"fmt"

	"github.com/loadout-dev/loadout/llm"
)

// Price is the price of a model in US dollars per million tokens. The zero
// value means an unknown price.
type Price struct{ Input, CacheRead, CacheWrite, Output float64 }

// Cost returns the cost of the tokens in u in US dollars, and what the cost
// would be without a cache.
func (p Price) Cost(u llm.Usage) (cost, uncached float64) {
	const million = 1e6
	cost, uncached = p.weigh(u)
	return cost / million, uncached / million
}

// InputHint formats the cost of uncached input tokens of a model with this price,
// such as "about $0.0030 with anthropic:m".
func (p Price) InputHint(tokens int, model string) string {
	cost, _ := p.Cost(llm.Usage{Input: tokens})
	if cost < 0.0001 {
		return "less than $0.0001 with " + model
	}
	return fmt.Sprintf("about $%.4f with %s", cost, model)
}

// equivalent holds the weights of tokens relative to an uncached input token.
// They approximate vendors' price ratios.
var equivalent = Price{Input: 1, CacheRead: 0.1, CacheWrite: 1.25, Output: 5}

// Equivalents converts u to a number of uncached input tokens, for models whose
// price is unknown. A cache read counts as 0.1, a cache write as 1.25, and an
// output token as 5. uncached is the number without a cache.
func Equivalents(u llm.Usage) (tokens, uncached float64) { return equivalent.weigh(u) }

func (p Price) weigh(u llm.Usage) (weight, uncached float64) {
	out := float64(u.Output) * p.Output
	weight = float64(u.Input)*p.Input + float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite + out
	return weight, float64(u.Prompt())*p.Input + out
}
