package usage_test

import (
	"math"
	"testing"

	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// Cache reads and writes have prices of their own. Without a cache all of them
// would be input.
func TestCostWithAndWithoutCache(t *testing.T) {
	p := usage.Price{Input: 3, CacheRead: 0.3, CacheWrite: 3.75, Output: 15}
	for _, tt := range []struct {
		name           string
		price          usage.Price
		usage          llm.Usage
		cost, uncached float64
	}{
		{"nothing", p, llm.Usage{}, 0, 0},
		{"a first request writes", p, llm.Usage{CacheWrite: 1_000_000}, 3.75, 3},
		{"the next one reads", p, llm.Usage{CacheRead: 1_000_000}, 0.3, 3},
		{"all of it", p, llm.Usage{Input: 1000, CacheRead: 20_000, CacheWrite: 4000, Output: 500}, 0.003 + 0.006 + 0.015 + 0.0075, 0.075 + 0.0075},
		{"no price", usage.Price{}, llm.Usage{Input: 1000, Output: 10}, 0, 0},
	} {
		if cost, uncached := tt.price.Cost(tt.usage); !near(cost, tt.cost) || !near(uncached, tt.uncached) {
			t.Errorf("%s: got %v and %v without a cache, want %v and %v", tt.name, cost, uncached, tt.cost, tt.uncached)
		}
	}
}

func TestEquivalents(t *testing.T) {
	for _, tt := range []struct {
		usage            llm.Usage
		tokens, uncached float64
	}{
		{llm.Usage{}, 0, 0},
		{llm.Usage{Input: 100}, 100, 100},
		{llm.Usage{CacheRead: 1000}, 100, 1000},
		{llm.Usage{CacheWrite: 1000}, 1250, 1000},
		{llm.Usage{Input: 10, CacheRead: 1000, CacheWrite: 100, Output: 20}, 10 + 100 + 125 + 100, 1110 + 100},
	} {
		if tokens, uncached := usage.Equivalents(tt.usage); !near(tokens, tt.tokens) || !near(uncached, tt.uncached) {
			t.Errorf("%+v: got %v and %v without a cache, want %v and %v", tt.usage, tokens, uncached, tt.tokens, tt.uncached)
		}
	}
}

func TestInputHint(t *testing.T) {
	p := usage.Price{Input: 3, Output: 15}
	for tokens, want := range map[int]string{2000: "about $0.0060 with anthropic:m", 9: "less than $0.0001 with anthropic:m", 0: "less than $0.0001 with anthropic:m"} {
		if got := p.InputHint(tokens, "anthropic:m"); got != want {
			t.Errorf("for %d tokens, got %q, want %q", tokens, got, want)
		}
	}
}
