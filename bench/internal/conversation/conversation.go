// Package conversation runs the same conversation with each way of delivering skill
// instructions to a model, and computes what the requests cost with a prompt cache. It uses the
// agent loop and the Anthropic client of this project.
//
// The base prompt has 6,000 tokens. Each turn has a message of 150 tokens, three tool calls of
// 60 with results of 700, and a response of 400. A turn needs two skills; each remains needed
// in the next turn with a probability of 0.7. A skill that is needed but not active is loaded
// by a call in a separate request.
//
// The package opens no connection: a scripted vendor responds in its wire format within the
// process. The caller provides the token counter.
//
// Start reading at [Play] and [Meter.Bill].
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
	"github.com/loadout-dev/loadout/internal/toolname"
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

// Count returns the number of tokens in text.
type Count func(text string) int

// Play runs one conversation and returns the bodies of its requests. The skills that the
// model needs depend on the seed, but not on w. c must not be used concurrently.
func Play(ctx context.Context, c *Corpus, w *Way, turns int, seed uint64) ([][]byte, error) {
	s, err := c.runtime.NewSession(ctx, &session.Options{RetentionTurns: w.retention})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p := &play{corpus: c, way: w, session: s}
	model, err := anthropic.New("claude-sonnet-4-5", &anthropic.Options{BaseURL: "http://127.0.0.1", HTTP: &http.Client{Transport: p}})
	if err != nil {
		return nil, err
	}
	a := agent.New(&rewritingModel{model, p}, s, &agent.Options{Instructions: c.base + w.instructions(c), Tools: []agent.Tool{lookTool(c)}})
	r := rand.New(rand.NewPCG(seed, 0))
	for turn := range turns {
		p.needed, p.made = chooseSkills(r, p.needed, len(c.Skills)), 0
		if err := a.RunTurn(ctx, c.text(fmt.Sprintf("message %d", turn), userTokens), nil); err != nil {
			return nil, fmt.Errorf("run turn %d with %s: %w", turn+1, w.Name, err)
		}
	}
	return p.bodies, nil
}

// play holds the state of a conversation and its scripted vendor.
type play struct {
	corpus  *Corpus
	way     *Way
	session *loadout.Session
	needed  []int // skills needed in this turn, as indexes into the corpus
	made    int   // tool calls in this turn, without loads
	calls   int   // tool calls in all turns
	bodies  [][]byte
}

// nextAnswer returns the model's next response. The model first loads the skills that it needs,
// then calls the tool that represents its work, and then responds.
func (p *play) nextAnswer() llm.Answer {
	p.calls++
	call := func(name string, args map[string]string) llm.Answer {
		text, _ := json.Marshal(args) // cannot fail for a map of strings
		return llm.Answer{Stop: llm.StopTools, Message: llm.Message{Parts: []llm.Part{llm.Call{ID: fmt.Sprintf("toolu_%d", p.calls), Name: name, Arguments: string(text)}}}}
	}
	if name := p.missingSkill(); name != "" {
		return call(toolname.LoadSkill, map[string]string{"name": name})
	}
	if p.made < toolCalls {
		p.made++
		about := p.corpus.Skills[p.needed[p.made%slots]].Name
		return call("look", map[string]string{"skill": about, "question": p.corpus.text(fmt.Sprintf("question %d", p.calls), callTokens-15)})
	}
	return llm.Answer{Stop: llm.StopEnd, Message: llm.Message{Parts: []llm.Part{llm.Text(p.corpus.text(fmt.Sprintf("answer %d", p.calls), replyTokens))}}}
}

// missingSkill returns a skill that this turn needs but that is not active, or "".
func (p *play) missingSkill() string {
	if p.way.static {
		return ""
	}
	active := p.session.Active()
	for _, k := range p.needed {
		name := p.corpus.Skills[k].Name
		if !slices.ContainsFunc(active, func(a session.ActiveSkill) bool { return a.Skill.Name == name }) {
			return name
		}
	}
	return ""
}

// lookTool returns the tool that represents all of the model's work except loading skills. A
// call names a skill and thereby keeps it in use.
func lookTool(c *Corpus) agent.Tool {
	return agent.Tool{
		Tool: llm.Tool{Name: "look", Description: "Look something up by the rules of a skill.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"skill":{"type":"string"},"question":{"type":"string"}},"required":["skill","question"]}`)},
		ReadOnly: true, Repeatable: true,
		Call: func(_ context.Context, args json.RawMessage) (*agent.Outcome, error) {
			return &agent.Outcome{Text: c.text("result of "+string(args), toolTokens)}, nil
		},
	}
}

// chooseSkills returns the skills needed in the next turn. Each skill of the last turn is kept
// or replaced by another at random.
func chooseSkills(r *rand.Rand, last []int, skills int) []int {
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
