// Package conversation plays one conversation, the same for every way to tell a model
// the instructions of skills, with the loop and the Anthropic client of this project,
// and says what its requests come to at a vendor that keeps prompts in a cache.
//
// The conversation: a turn is a message of 150 tokens, three calls of a tool of 60 with
// results of 700, and an answer of 400, after a base prompt of 6,000. A turn needs two
// skills; each of the two stays for the next turn with a chance of 0.7. A skill that is
// needed and not in force is loaded by a call and a request of its own.
//
// It opens no connection: what stands for the vendor answers in its wire format inside
// of the process. How tokens are counted is the caller's.
package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/session"
)

const (
	baseTokens  = 6000
	userTokens  = 150
	toolCalls   = 3
	callTokens  = 60
	toolTokens  = 700
	replyTokens = 400
	slots       = 2
	sticky      = 0.7
)

// Count is how many tokens a text has.
type Count func(text string) int

// Play has one conversation of so many turns, and returns the bodies of its requests.
// The same seed needs the same skills in every way. c is not used by others meanwhile.
func Play(ctx context.Context, c *Corpus, w *Way, turns int, seed uint64) ([][]byte, error) {
	s, err := c.runtime.NewSession(ctx, &loadout.SessionOptions{Retention: w.retention})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p := &play{corpus: c, way: w, session: s}
	model, err := anthropic.New("claude-sonnet-4-5", &anthropic.Options{BaseURL: "http://127.0.0.1", HTTP: &http.Client{Transport: p}})
	if err != nil {
		return nil, err
	}
	a := agent.New(&rewriting{model, p}, s, &agent.Options{Instructions: c.base + w.instructions(c), Tools: []agent.Tool{look(c)}})
	r := rand.New(rand.NewPCG(seed, 0))
	for turn := range turns {
		p.needed, p.made = choose(r, p.needed, len(c.Skills)), 0
		if err := a.Turn(ctx, c.text(fmt.Sprintf("message %d", turn), userTokens), nil); err != nil {
			return nil, fmt.Errorf("turn %d of a conversation with %s: %w", turn+1, w.Name, err)
		}
	}
	return p.bodies, nil
}

// play is a conversation under way, and the vendor in it.
type play struct {
	corpus  *Corpus
	way     *Way
	session *loadout.Session
	needed  []int // in this turn, by their place in the corpus
	made    int   // calls of this turn, but for loads
	calls   int   // of all turns
	bodies  [][]byte
}

// next is what the model says to a request: it loads what it needs, calls its tool,
// and answers.
func (p *play) next() llm.Answer {
	p.calls++
	call := func(name string, args map[string]string) llm.Answer {
		text, _ := json.Marshal(args) // texts always can be
		return llm.Answer{Stop: llm.StopTools, Message: llm.Message{Parts: []llm.Part{llm.Call{ID: fmt.Sprintf("toolu_%d", p.calls), Name: name, Arguments: string(text)}}}}
	}
	if name := p.missing(); name != "" {
		return call("load_skill", map[string]string{"name": name})
	}
	if p.made < toolCalls {
		p.made++
		about := p.corpus.Skills[p.needed[p.made%slots]].Name
		return call("look", map[string]string{"skill": about, "question": p.corpus.text(fmt.Sprintf("question %d", p.calls), callTokens-15)})
	}
	return llm.Answer{Stop: llm.StopEnd, Message: llm.Message{Parts: []llm.Part{llm.Text(p.corpus.text(fmt.Sprintf("answer %d", p.calls), replyTokens))}}}
}

// missing is a skill that this turn needs and that is not in force, "" for none.
func (p *play) missing() string {
	if p.way.static {
		return ""
	}
	active := p.session.Active()
	for _, k := range p.needed {
		name := p.corpus.Skills[k].Name
		if !slices.ContainsFunc(active, func(a session.Active) bool { return a.Skill.Name == name }) {
			return name
		}
	}
	return ""
}

// look is the tool that stands for all that a model does besides loading skills. It is
// of the skill that a call names, which is thereby in use.
func look(c *Corpus) agent.Tool {
	return agent.Tool{
		Tool: llm.Tool{Name: "look", Description: "Look something up by the rules of a skill.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"skill":{"type":"string"},"question":{"type":"string"}},"required":["skill","question"]}`)},
		Reads: true, Repeatable: true,
		Call: func(_ context.Context, args json.RawMessage) (*agent.Outcome, error) {
			return &agent.Outcome{Text: c.text("result of "+string(args), toolTokens)}, nil
		},
	}
}

// choose is what the next turn needs: what the last did, each by chance replaced by
// any other.
func choose(r *rand.Rand, last []int, skills int) []int {
	var next []int
	for slot := range slots {
		k := -1
		if last != nil && r.Float64() < sticky {
			k = last[slot]
		}
		for k < 0 || slices.Contains(next, k) {
			k = r.IntN(skills)
		}
		next = append(next, k)
	}
	return next
}
