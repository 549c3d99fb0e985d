//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
)

// The conversation: a turn is a message of the user, some calls of other tools
// and an answer, with so many tokens each, after a base prompt. Every call is
// a request to the model with all that came before. A turn needs two skills;
// each of the two stays from turn to turn with a chance.
const (
	turns       = 10
	seeds       = 4000 // the mean of 40 is uncertain by 7,000
	baseTokens  = 6000
	userTokens  = 150
	toolCalls   = 3
	callTokens  = 60 // what the model writes to call a tool
	toolTokens  = 700
	replyTokens = 400
	slots       = 2
	sticky      = 0.7
)

// The prompt cache: what was not in the request before is written to it.
const (
	write = 1.25
	read  = 0.1
)

// prompt is a conversation as the model's provider bills it.
type prompt struct {
	size, cached int
	tokens       int     // of all requests together
	cost         float64 // in input tokens at the plain price
}

func (p *prompt) add(tokens int) { p.size += tokens }

// request sends everything there is. Nothing before was changed, so what was
// sent is cached.
func (p *prompt) request() {
	p.tokens += p.size
	p.cost += write*float64(p.size-p.cached) + read*float64(p.cached)
	p.cached = p.size
}

// A strategy is how skills get into a conversation: what the base prompt holds
// of them, and what a load of each adds, nil where nothing is loaded.
type strategy struct {
	name   string
	system int
	load   []int
	goal   float64
}

func strategies(n count, all []loaded) []strategy {
	var bare, rendered []int
	var entries []*catalog.Entry
	everything, names := 0, 0
	for _, s := range all {
		entries = append(entries, s.entry)
		body := n(s.material.Instructions)
		everything += body
		names += n(s.entry.Name) + n(s.entry.Description)
		bare, rendered = append(bare, body), append(rendered, n(session.Render(s.material)))
	}
	return []strategy{
		{name: "static: every body in the base prompt", system: everything},
		{name: "limit: bare bodies as tool results, names and descriptions in the base prompt", system: names, load: bare},
		{name: "tool result as rendered, catalog text in the base prompt", system: n(catalog.Text(entries, catalog.TextOptions{})), load: rendered, goal: 230},
	}
}

// converse plays one conversation.
func (s strategy) converse(seed uint64, skills int) prompt {
	r := rand.New(rand.NewPCG(seed, 0))
	p := prompt{size: baseTokens + s.system}
	in := map[int]bool{} // loaded; it stays in the history
	needed := choose(r, nil, skills)
	for turn := range turns {
		if turn > 0 {
			needed = choose(r, needed, skills)
		}
		p.add(userTokens)
		for _, k := range needed {
			if s.load == nil || in[k] {
				continue
			}
			in[k] = true
			p.request() // answered by a call of load_skill
			p.add(callTokens + s.load[k])
		}
		for range toolCalls {
			p.request()
			p.add(callTokens + toolTokens)
		}
		p.request()
		p.add(replyTokens)
	}
	return p
}

// choose is what the next turn needs: what the last did, each by chance
// replaced by any other.
func choose(r *rand.Rand, last []int, skills int) []int {
	var next []int
	used := map[int]bool{}
	for slot := range slots {
		k := -1
		if last != nil && r.Float64() < sticky {
			k = last[slot]
		}
		for k < 0 || used[k] {
			k = r.IntN(skills)
		}
		used[k] = true
		next = append(next, k)
	}
	return next
}

// conversations plays every strategy with the same seeds.
func conversations(n count, all []loaded) [][]string {
	rows := [][]string{{"strategy", "prompt tokens, median", "cost, mean", "range", "against static", "goal"}}
	static := 0.0
	for _, s := range strategies(n, all) {
		var tokens, costs []float64
		sum := 0.0
		for seed := range seeds {
			p := s.converse(uint64(seed), len(all))
			tokens, costs = append(tokens, float64(p.tokens)/1e3), append(costs, p.cost/1e3)
			sum += p.cost / 1e3
		}
		mean := sum / seeds
		if static == 0 {
			static = mean
		}
		goal := ""
		if s.goal > 0 {
			goal = measure.Verdict(fmt.Sprintf("≤ %s", measure.Number(s.goal)), mean <= s.goal)
		}
		rows = append(rows, []string{s.name, measure.Number(measure.Quantile(tokens, 0.5)), measure.Number(mean),
			measure.Number(measure.Quantile(costs, 0)) + "–" + measure.Number(measure.Quantile(costs, 1)),
			fmt.Sprintf("%+.0f %%", 100*(mean/static-1)), goal})
	}
	return rows
}
