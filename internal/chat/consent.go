package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/callid"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// skillConsent asks the user for consent, once for each version of a skill in a
// conversation. The consent covers what can be foreseen: running the skill's
// scripts and servers, the tools that they provide in the sandbox, and the calls
// listed in allowed-tools.
type skillConsent struct {
	*Host
	rt     *loadout.Runtime
	config *config.Config
	desk   *approval.Queue
	id     string // ID of the conversation
}

// loadSkill asks for consent and loads a skill for a model. If the user
// declines or does not answer, the skill is loaded without these permissions.
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

// consentRequest is the payload of a consent's approval request.
type consentRequest struct {
	Skill   string        `json:"skill"`
	Digest  policy.Digest `json:"digest"`
	Allowed []string      `json:"allowed_tools,omitempty"`
	Model   string        `json:"model,omitempty"`
}

// requestConsent asks the user to approve the skill, if there is something to
// approve.
func (c *skillConsent) requestConsent(ctx context.Context, name string) error {
	if c.config.Managed() {
		return nil // an answer would not count
	}
	e, err := c.rt.Catalog().Resolve(ctx, name)
	if err != nil || e.DisableModelInvocation || c.rt.CanAcquireLease(ctx, e.Key(), policy.LocalUser(), c.id) {
		return nil // load reports the error
	}
	w, err := c.rt.ReadApprovalRequest(ctx, e.Key())
	if err != nil {
		return nil // load reports the error
	}
	sk, _, err := c.rt.Catalog().Read(ctx, e)
	if err != nil {
		return nil
	}
	r := review.New(w, review.Options{Secrets: c.GrantedSecrets(ctx, w.Digest, w.Needs)})
	refusal := textRefusal(ctx, c.rt, e.Key())
	refused := refusal != nil && refusal.Skill == e.Name
	if len(r.Scripts)+len(r.Servers)+len(sk.AllowedTools) == 0 && sk.Model == "" && !refused {
		return nil
	}
	if err := r.ReadHidden(ctx, c.rt); err != nil {
		return err
	}
	r.Scan(ctx, c.rt, review.PromptScanTimeout)
	payload, err := json.Marshal(consentRequest{w.Entry.Name, w.Digest, sk.AllowedTools, sk.Model})
	if err != nil {
		return err
	}
	text, err := c.formatQuestion(r, sk, refused)
	if err != nil {
		return err
	}
	id, err := c.desk.Submit(ctx, approval.Request{ID: c.id + ".load." + callid.From(ctx) + "." + w.Digest.Short(), Kind: approval.KindApproval, Session: c.id, Principal: policy.LocalUser(), Payload: payload, Message: text})
	if err != nil {
		return err
	}
	answer, err := c.desk.Wait(ctx, id)
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

// textRefusal returns why a skill is not loaded before the user approves its
// hidden characters, or nil.
func textRefusal(ctx context.Context, rt *loadout.Runtime, ref string) *loadout.RefusedError {
	_, err := rt.Fetch(ctx, ref)
	refused, _ := errors.AsType[*loadout.RefusedError](err)
	return refused
}

// answeredInChat is the presence of a user who answered a prompt of the chat.
const answeredInChat = "answered in loadout chat"

// maxScripts is the maximum number of scripts listed in an approval request.
const maxScripts = 10

// formatQuestion returns the text of the approval request: what the skill can
// do, then its contents. textRefused says that the skill is not loaded before the
// user approves its hidden characters. It returns an error if the text is too
// long to show in full.
func (c *skillConsent) formatQuestion(r *review.Review, sk *skill.Skill, textRefused bool) (string, error) {
	short := *r
	if rest := len(short.Scripts) - maxScripts; rest > 0 {
		short.Scripts = append(slices.Clone(short.Scripts[:maxScripts]), fmt.Sprintf("and %d more", rest))
	}
	var b strings.Builder
	question := "wants to use its scripts, servers and tools. Allow it in this conversation?"
	if textRefused {
		question = "has characters that you cannot see, and may want to use scripts, servers and tools. Let the agent read and use it in this conversation?"
	}
	fmt.Fprintf(&b, "%s %s\n\n", terminal.Plain(r.Name), question)
	if len(sk.AllowedTools) > 0 {
		fmt.Fprintf(&b, "no prompt  %s\n", terminal.Plain(strings.Join(sk.AllowedTools, ", ")))
	}
	if sk.Model != "" {
		fmt.Fprintf(&b, "model      %s\n", terminal.Plain(sk.Model))
	}
	b.WriteString(c.FormatReview(&short, c.config))
	if b.Len() > approval.MaxMessage {
		return "", fmt.Errorf("permissions too long for a prompt; review them with: loadout approve %s --dry-run", console.ShellQuote(r.Name))
	}
	return b.String(), nil
}
