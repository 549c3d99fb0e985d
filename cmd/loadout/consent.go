package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/catalog"
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
	wanted, err := c.project(ctx, name)
	if err == nil && !wanted {
		text := "The person does not want the skills of this project to be used."
		return &session.Result{State: session.StateFailed, Text: text, Problems: []string{text}}, nil
	}
	var given policy.Scope
	if err == nil {
		given, err = c.ask(ctx, name)
	}
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

// project asks, once for each project, whether its skills may tell the agent what to
// do: whoever opens a folder in a chat need not have written what is in it. Skills of
// other places are not asked about.
func (c *consent) project(ctx context.Context, name string) (bool, error) {
	e, err := c.rt.Catalog().Resolve(ctx, name)
	dir, gone := os.Getwd()
	if err != nil || gone != nil || e.Scope != catalog.Project || !strings.HasPrefix(e.Origin, "project.") {
		return true, nil
	}
	subject := policy.Digest("sha256:" + skill.Hash([]byte("skills of the project "+dir)))
	if _, err := c.grants().Find(ctx, policy.Local(), subject, c.id); err == nil {
		return true, nil
	} else if !errors.Is(err, policy.ErrNotGranted) {
		return false, err
	}
	var names []string
	for _, o := range c.rt.Catalog().Snapshot().Offered() {
		if strings.HasPrefix(o.Origin, "project.") {
			names = append(names, o.Name)
		}
	}
	id, err := c.desk.Put(ctx, ask.Ask{ID: c.id + ".project." + skill.Hash([]byte(dir)), Kind: ask.Approval, Session: c.id, Principal: policy.Local(),
		Message: fmt.Sprintf("The project in %s has skills, and the agent wants to use %s. A skill tells the agent what to do. Do you want the skills of this project to be used?\n\n%s",
			dir, e.Name, clip(strings.Join(names, ", "), 500))})
	if err != nil {
		return false, err
	}
	answer, err := c.desk.Wait(ctx, id)
	if err != nil || answer.Outcome != ask.Accepted {
		return false, err
	}
	kept, err := c.grants().Put(ctx, policy.Grant{Principal: policy.Local(), By: policy.Local(), Subject: subject, Name: dir, Origin: "skills of a project", Scope: policy.Always})
	if err == nil {
		err = c.record(ctx, "approve", kept)
	}
	return err == nil, err
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
	if err != nil || c.rt.WouldLeave(ctx, e.Key(), policy.Local(), c.id) {
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
	payload, err := json.Marshal(wants{w.Entry.Name, w.Digest, sk.AllowedTools, sk.Model})
	if err != nil {
		return "", err
	}
	own := *c.app
	own.stdout = io.Discard // a question has no colours
	var text strings.Builder
	fmt.Fprintf(&text, "The skill %s is about to be loaded. Let it use what it brings, in this conversation?\n\n%s", w.Entry.Name, own.approvalText(about, w, c.config))
	if len(sk.AllowedTools) > 0 {
		fmt.Fprintf(&text, "unasked    %s\n", strings.Join(sk.AllowedTools, ", "))
	}
	if sk.Model != "" {
		fmt.Fprintf(&text, "model      %s\n", sk.Model)
	}
	id, err := c.desk.Put(ctx, ask.Ask{ID: c.id + ".load-" + string(w.Digest), Kind: ask.Approval, Session: c.id, Principal: policy.Local(), Payload: payload, Message: withinBytes(text.String(), ask.MaxMessage)})
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

// grantTools lets the tools that a load brought be called without another question.
func (c *consent) grantTools(ctx context.Context, res *session.Result, scope policy.Scope) {
	for _, t := range res.Tools {
		if !t.NeedsPerson {
			continue
		}
		err := c.set.Grant(ctx, &tools.Call{Name: t.Name, Principal: policy.Local(), Session: c.id}, scope, false, policy.Local())
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

// withinBytes is a text of at most n bytes.
func withinBytes(text string, n int) string {
	const cut = "\n…"
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len(cut)], "") + cut
}
