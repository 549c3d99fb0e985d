package chat

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/callid"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// skillConsent asks the user for consent, once for each version of a skill in a
// conversation. The consent covers running the skill's scripts and servers,
// calling the tools that they provide in the sandbox, and making the calls
// listed in allowed-tools.
type skillConsent struct {
	*Host
	rt     *loadout.Runtime
	config *config.Config
	queue  *approval.Queue
	id     string // ID of the conversation
}

// loadSkill asks the user to approve a skill's permissions, and loads the skill
// for a model. If the user declines or does not answer, the skill is loaded
// without the permissions.
func (c *skillConsent) loadSkill(ctx context.Context, name string, load func() (*session.LoadResult, error)) (*session.LoadResult, error) {
	err := c.requestConsent(ctx, name)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	res, failed := load()
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		res.Problems = append(res.Problems, "cannot ask for its permissions: "+err.Error())
	}
	return res, nil
}

// consentRequest is the payload of an approval request that asks for consent to
// a skill.
type consentRequest struct {
	Skill   string        `json:"skill"`
	Digest  policy.Digest `json:"digest"`
	Allowed []string      `json:"allowed_tools,omitempty"`
	Model   string        `json:"model,omitempty"`
}

// requestConsent asks the user to approve the skill if the skill needs
// approval.
func (c *skillConsent) requestConsent(ctx context.Context, name string) error {
	q, err := c.ReviewSkill(ctx, c.rt, c.config, c.FormatReview, name, c.id)
	if q == nil {
		return err
	}
	w, r, sk := q.Review.Request, q.Review, q.Skill
	payload, err := json.Marshal(consentRequest{w.Entry.Name, w.Digest, sk.AllowedTools, sk.Model})
	if err != nil {
		return err
	}
	id, err := c.queue.Submit(ctx, approval.Request{ID: c.id + ".load." + callid.From(ctx) + "." + w.Digest.Short(), Kind: approval.KindApproval, Session: c.id, Principal: policy.LocalUser(), Payload: payload, Message: q.Text})
	if err != nil {
		return err
	}
	answer, err := c.queue.Wait(ctx, id)
	if err != nil || answer.Outcome != approval.Accepted {
		return err
	}
	g := r.Grant()
	g.Presence = answeredInChat
	if answer.Scope != policy.Always {
		g.Scope, g.Session = policy.ForSession, c.id
	}
	kept, err := c.GrantStore().Put(ctx, g)
	if err == nil {
		err = c.RecordGrant(ctx, "approve", kept)
	}
	return err
}

// answeredInChat is the value of Presence in grants that the user approved at a
// prompt in the chat.
const answeredInChat = "answered in loadout chat"
