package setup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// FormatReview describes what a skill can do, as text without colors.
type FormatReview func(*review.Review, *config.Config) string

// maxScripts is the maximum number of scripts listed in a question.
const maxScripts = 10

// SkillQuestion is the question that the user must answer before a chat or an
// MCP client loads a skill.
type SkillQuestion struct {
	Review *review.Review
	Skill  *skill.Skill
	Text   string
}

// ReviewSkill returns the question about a skill that session may not use yet. It returns nil if
// the skill is approved or has nothing to approve. It also returns nil if the skill cannot be read,
// because loading the skill reports that. In managed mode, it always returns nil.
func (s *Setup) ReviewSkill(ctx context.Context, rt *loadout.Runtime, c *config.Config, format FormatReview, name, session string) (*SkillQuestion, error) {
	if s.IsManaged() {
		return nil, nil
	}
	e, err := rt.Catalog().Resolve(ctx, name)
	if err == nil && e.Server != "" {
		return s.reviewServed(ctx, rt, c, format, e, session)
	}
	if err != nil || e.DisableModelInvocation || rt.Runner().CanAcquireLease(ctx, e.Key(), execution.Caller{Principal: policy.LocalUser(), Session: session}) {
		return nil, nil
	}
	request, err := rt.ReadApprovalRequest(ctx, e.Key())
	if err != nil {
		return nil, nil
	}
	sk, _, err := rt.Catalog().Read(ctx, e)
	if err != nil {
		return nil, nil
	}
	r := review.New(request, review.Options{Secrets: s.GrantedSecrets(ctx, request.Digest, request.Needs)})
	refusal := TextRefusal(ctx, rt, e.Key())
	refused := refusal != nil && refusal.Skill == e.Name
	if len(r.Scripts)+len(r.Servers)+len(sk.AllowedTools) == 0 && sk.Model == "" && !refused {
		return nil, nil
	}
	if err := r.ReadHidden(ctx, rt); err != nil {
		return nil, err
	}
	r.Scan(ctx, rt, review.PromptScanTimeout)
	q := &SkillQuestion{Review: r, Skill: sk, Text: formatSkillQuestion(r, sk, refused, c, format)}
	if len(q.Text) > approval.MaxMessage {
		return nil, fmt.Errorf("permissions too long for a prompt; review them with: loadout approve %s --dry-run", console.ShellQuote(r.Name))
	}
	return q, nil
}

// reviewServed is like ReviewSkill for a skill of an MCP server. It fetches no
// file.
func (s *Setup) reviewServed(ctx context.Context, rt *loadout.Runtime, c *config.Config, format FormatReview, e *catalog.Entry, session string) (*SkillQuestion, error) {
	if e.DisableModelInvocation || rt.IsServedApproved(ctx, e, session) {
		return nil, nil
	}
	request, err := rt.ReadApprovalRequest(ctx, e.Key())
	if err != nil {
		return nil, nil
	}
	sk, err := rt.Catalog().Head(e)
	if err != nil {
		return nil, nil
	}
	r := review.New(request, review.Options{})
	q := &SkillQuestion{Review: r, Skill: sk}
	q.Text = fmt.Sprintf("%s is a skill of the MCP server %s. Let the agent read and use it?\n\n%s", terminal.Plain(r.Name), terminal.Plain(e.Server), format(r, c))
	if len(q.Text) > approval.MaxMessage {
		return nil, fmt.Errorf("list of files too long for a prompt; review them with: loadout approve %s --dry-run", console.ShellQuote(r.Name))
	}
	return q, nil
}

// TextRefusal returns the error from loading the skill ref if it cannot be
// loaded until the user approves its hidden characters. It returns nil if the
// skill can be loaded without that, or if loading it fails with another error.
func TextRefusal(ctx context.Context, rt *loadout.Runtime, ref string) *loadout.RefusedError {
	_, err := rt.Fetch(ctx, ref)
	refused, _ := errors.AsType[*loadout.RefusedError](err)
	return refused
}

// formatSkillQuestion describes what the skill can do, and then its contents.
// textRefused means that the skill is not loaded until the user approves its
// hidden characters.
func formatSkillQuestion(r *review.Review, sk *skill.Skill, textRefused bool, c *config.Config, format FormatReview) string {
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
	b.WriteString(format(&short, c))
	return b.String()
}

// SkillReviewer returns a function for [mcpserver.Options.ReviewSkill] that
// reviews the skills of rt.
func (s *Setup) SkillReviewer(rt *loadout.Runtime, c *config.Config, format FormatReview) func(context.Context, string) (*mcpserver.SkillReview, error) {
	return func(ctx context.Context, name string) (*mcpserver.SkillReview, error) {
		q, err := s.ReviewSkill(ctx, rt, c, format, name, "")
		if q == nil {
			return nil, err
		}
		g := q.Review.Grant()
		permits, err := json.Marshal(g)
		if err != nil {
			return nil, err
		}
		return &mcpserver.SkillReview{Text: q.Text, Digest: policy.Digest(fmt.Sprintf("sha256:%x", sha256.Sum256(permits))), Approve: func(ctx context.Context, scope policy.Scope, expires time.Time, presence string) error {
			g := g
			g.Presence, g.Scope, g.Expires = presence, scope, expires
			kept, err := s.GrantStore().Put(ctx, g)
			if err != nil {
				return err
			}
			return s.RecordGrant(ctx, "approve", kept)
		}}, nil
	}
}
