//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
)

// After a base prompt, each turn has a user message, some tool calls and a response. Every call
// is a request with the whole history. A turn needs two skills; each remains needed in the next
// turn with probability sticky.
const (
	turns       = 10
	seeds       = 4000 // number of simulated conversations; with only 40, the error of the mean is 7,000 tokens
	baseTokens  = 6000
	userTokens  = 150
	toolCalls   = 3
	callTokens  = 60 // written by the model
	toolTokens  = 700
	replyTokens = 400
	slots       = 2
	sticky      = 0.7
)

// Prices of tokens written to and read from the prompt cache.
const (
	writePrice = 1.25
	readPrice  = 0.1
)

// prompt is the part of a conversation that the vendor bills as input tokens.
type prompt struct {
	size, cached int
	tokens       int     // sum over all requests
	cost         float64 // in uncached input tokens
}

func (p *prompt) add(tokens int) { p.size += tokens }

// sendRequest bills a request with the whole history. History never changes, so the previous
// request is read from the cache.
func (p *prompt) sendRequest() {
	p.tokens += p.size
	p.cost += writePrice*float64(p.size-p.cached) + readPrice*float64(p.cached)
	p.cached = p.size
}

// strategy is a way of delivering skills in a conversation.
type strategy struct {
	name   string
	system int   // tokens in the base prompt
	load   []int // tokens for loading each skill; nil if skills are not loaded
	goal   float64
}

func newStrategies(n count, all []deliveredSkill) []strategy {
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
	catalogText := n(catalog.Format(entries, catalog.FormatOptions{}))
	strategies := []strategy{
		{name: "static: every body in the base prompt", system: everything},
		{name: "baseline: bare bodies as tool results, names and descriptions in the base prompt", system: names, load: bare},
		{name: "tool result as rendered, catalog text in the base prompt", system: catalogText, load: rendered, goal: 230},
	}
	for i, cl := range recordedClients {
		var load []int
		for _, s := range all {
			load = append(load, n(s.shown[i]))
		}
		strategies = append(strategies, strategy{name: "load_skill as " + cl.name + " shows it, catalog text in the base prompt", system: catalogText, load: load, goal: 230})
	}
	return strategies
}

// play simulates one conversation and returns its billed prompts.
func (s strategy) play(seed uint64, skills int) prompt {
	r := rand.New(rand.NewPCG(seed, 0))
	p := prompt{size: baseTokens + s.system}
	inHistory := map[int]bool{}
	needed := chooseSkills(r, nil, skills)
	for turn := range turns {
		if turn > 0 {
			needed = chooseSkills(r, needed, skills)
		}
		p.add(userTokens)
		for _, k := range needed {
			if s.load == nil || inHistory[k] {
				continue
			}
			inHistory[k] = true
			p.sendRequest() // the response is a load_skill call
			p.add(callTokens + s.load[k])
		}
		for range toolCalls {
			p.sendRequest()
			p.add(callTokens + toolTokens)
		}
		p.sendRequest()
		p.add(replyTokens)
	}
	return p
}

// chooseSkills returns the skills needed in the next turn. Each skill of the last turn is kept
// or replaced by another at random.
func chooseSkills(r *rand.Rand, last []int, skills int) []int {
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

// strategyRows simulates every strategy with the same seeds and returns a table.
func strategyRows(n count, all []deliveredSkill) [][]string {
	rows := [][]string{{"strategy", "prompt tokens, median", "cost, mean", "range", "against static", "goal"}}
	static := 0.0
	for _, s := range newStrategies(n, all) {
		var tokens, costs []float64
		sum := 0.0
		for seed := range seeds {
			p := s.play(uint64(seed), len(all))
			tokens, costs = append(tokens, float64(p.tokens)/1e3), append(costs, p.cost/1e3)
			sum += p.cost / 1e3
		}
		mean := sum / seeds
		if static == 0 {
			static = mean
		}
		goal := ""
		if s.goal > 0 {
			goal = measure.FormatVerdict(fmt.Sprintf("≤ %s", measure.FormatNumber(s.goal)), mean <= s.goal)
		}
		rows = append(rows, []string{s.name, measure.FormatNumber(measure.Quantile(tokens, 0.5)), measure.FormatNumber(mean),
			measure.FormatNumber(measure.Quantile(costs, 0)) + "–" + measure.FormatNumber(measure.Quantile(costs, 1)),
			fmt.Sprintf("%+.0f %%", 100*(mean/static-1)), goal})
	}
	return rows
}
