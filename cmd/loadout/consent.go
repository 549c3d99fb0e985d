package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
)

// consent asks the person, once for each state of a skill in a conversation, for all
// that the skill will foreseeably need: to run its scripts and servers, to call the
// tools that these bring, and to make the calls that it names unasked.
type consent struct {
	*app
	rt     *loadout.Runtime
	config *config.Config
	set    *tools.Set
	desk   *ask.Desk
	id     string // of the conversation
}

// load loads a skill for a model, asking before. Where the person says no, or nobody
// answers, the skill is loaded without what it would need.
func (c *consent) load(ctx context.Context, name string, load func() (*session.Result, error)) (*session.Result, error) {
	given, err := c.ask(ctx, name)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	res, failed := load()
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		res.Problems = append(res.Problems, "what it needs could not be asked for: "+err.Error())
	case given != "":
		c.grantTools(ctx, res, given)
	}
	return res, nil
}

// wants is the payload of the question.
type wants struct {
	Skill   string        `json:"skill"`
	Digest  policy.Digest `json:"digest"`
	Allowed []string      `json:"allowed_tools,omitempty"`
	Model   string        `json:"model,omitempty"`
}

// ask returns for how long the person gives what the skill needs; "" is that there is
// nothing to give, or that they do not.
func (c *consent) ask(ctx context.Context, name string) (policy.Scope, error) {
	e, err := c.rt.Catalog().Resolve(ctx, name)
	if err != nil || e.DisableModelInvocation || c.rt.WouldLeave(ctx, e.Key(), policy.Local(), c.id) {
		return "", nil // the load says why there is none
	}
	w, err := c.rt.Wish(ctx, e.Key())
	if err != nil {
		return "", nil // what cannot be told cannot be approved; the load says it
	}
	sk, _, err := c.rt.Catalog().Read(ctx, e)
	if err != nil {
		return "", nil
	}
	allows := c.allowsOf(ctx, w)
	about := approvalOf(w, allows)
	if len(about.Scripts)+len(about.Servers)+len(sk.AllowedTools) == 0 && sk.Model == "" {
		return "", nil
	}
	about.Findings = c.advise(ctx, c.rt, w.Entry)
	payload, err := json.Marshal(wants{w.Entry.Name, w.Digest, sk.AllowedTools, sk.Model})
	if err != nil {
		return "", err
	}
	text, err := c.question(about, w, sk)
	if err != nil {
		return "", err
	}
	id, err := c.desk.Put(ctx, ask.Ask{ID: c.id + ".load." + agent.CallID(ctx) + "." + w.Digest.Short(), Kind: ask.Approval, Session: c.id, Principal: policy.Local(), Payload: payload, Message: text})
	if err != nil {
		return "", err
	}
	answer, err := c.desk.Wait(ctx, id)
	if err != nil || answer.Outcome != ask.Accepted {
		return "", err
	}
	scope := policy.ForSession
	g := policy.Grant{Principal: policy.Local(), By: policy.Local(), Subject: w.Digest, Name: w.Entry.Name, Origin: w.Entry.Origin, Allows: allows, Needs: w.Needs, Scope: scope, Session: c.id}
	if answer.Scope == policy.Always {
		scope, g.Scope, g.Session = policy.Always, policy.Always, ""
	}
	kept, err := c.grants().Put(ctx, g)
	if err == nil {
		err = c.record(ctx, "approve", kept)
	}
	return scope, err
}

// maxScripts bounds the scripts that a question names.
const maxScripts = 10

// question is what the person decides about: first what the skill could do, then what
// it has. One of which a part would be cut off is not asked.
func (c *consent) question(about *approval, w *loadout.Wish, sk *skill.Skill) (string, error) {
	own := *c.app
	own.stdout = io.Discard // a question has no colours
	short := *about
	if rest := len(short.Scripts) - maxScripts; rest > 0 {
		short.Scripts = append(slices.Clone(short.Scripts[:maxScripts]), fmt.Sprintf("and %d more", rest))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The skill %s is about to be loaded. Let it use what it brings, in this conversation?\n\n", plain(w.Entry.Name))
	if len(sk.AllowedTools) > 0 {
		fmt.Fprintf(&b, "unasked    %s\n", plain(strings.Join(sk.AllowedTools, ", ")))
	}
	if sk.Model != "" {
		fmt.Fprintf(&b, "model      %s\n", plain(sk.Model))
	}
	b.WriteString(own.approvalText(&short, w, c.config))
	if b.Len() > ask.MaxMessage {
		return "", fmt.Errorf("it wants more than a question can show; look at it with: loadout approve %s --dry-run", quoted(w.Entry.Name))
	}
	return b.String(), nil
}

// grantTools lets the tools that the skill's own servers bring be called without another
// question; those of the person's servers, which it only names, and what may destroy
// something are asked about as before.
func (c *consent) grantTools(ctx context.Context, res *session.Result, scope policy.Scope) {
	for _, t := range res.Tools {
		if !t.NeedsPerson {
			continue
		}
		err := c.set.GrantBrought(ctx, &tools.Call{Name: t.Name, Principal: policy.Local(), Session: c.id}, scope, policy.Local())
		if err != nil {
			res.Problems = append(res.Problems, fmt.Sprintf("a person is asked before each call of %s: %v", t.Name, err))
		}
	}
}

// standing says whether a skill is approved as it is now, so that what it allows counts.
func (c *consent) standing(ctx context.Context, id session.ID) bool {
	return c.rt.WouldLeave(ctx, id.Key(), policy.Local(), c.id)
}

// offers are the skills that a model is told of.
func offers(rt *loadout.Runtime) []agent.Offer {
	var out []agent.Offer
	for _, e := range rt.Catalog().Snapshot().Offered() {
		out = append(out, agent.Offer{Name: e.Name, Description: e.Description})
	}
	return out
}
