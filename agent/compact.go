package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Compact replaces the conversation with a summary written by the model. It
// keeps the instructions of the most recently used skills, up to
// [Options.AttachTokens]; other skills become inactive. This invalidates the
// vendor's prompt cache for the conversation. onEvent is as in [Agent.RunTurn].
//
// If the vendor rejects the request as too long, the last 8,000 bytes of
// messages replace the summary. Because vendors report this in many ways, any
// 4xx status except 401, 403 and 429 is treated as such a rejection. Compact
// returns an error if the model has not responded since the last compaction, or
// if the request fails for another reason.
func (a *Agent) Compact(ctx context.Context, onEvent func(Event)) error {
	return a.withTurn(onEvent, func(t *turn) error {
		if err := t.start(ctx); err != nil {
			return err
		}
		if !t.folded().HasAnswer() {
			return errors.New("nothing to compact")
		}
		return t.compact(ctx)
	})
}

// needsCompaction reports whether the conversation nearly fills the context
// window and can be compacted.
func (t *turn) needsCompaction() bool {
	return t.opts.ContextWindow > 0 && t.folded().HasAnswer() && t.folded().Tokens() > t.opts.ContextWindow/5*4
}

// compactPrompt asks the model for a summary of the conversation.
const compactPrompt = `The conversation is too long and will be compacted. Write a summary with everything needed to continue it, and nothing else: what the user wants, in their own words where these matter; findings and decisions, with names, paths and numbers; changes to files; open questions and next steps. Do not call tools. Do not repeat the instructions of skills.`

// compact replaces the conversation with a summary and the instructions of the
// skills that stay active.
func (t *turn) compact(ctx context.Context) error {
	model := t.currentModel()
	req := t.request()
	req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text(compactPrompt)}})
	c := session.Compaction{Model: model.Name()}
	answer, err := llm.Ask(ctx, model, req, nil)
	status := (*llm.StatusError)(nil)
	switch {
	case errors.As(err, &status) && status.Code >= 400 && status.Code < 500 && status.Code != 401 && status.Code != 403 && status.Code != 429:
		c.Text = t.lastMessages() // the request is too long; vendors report this in many ways
	case err != nil:
		return fmt.Errorf("compact conversation: %w", err)
	default:
		c.Text, c.Usage = strings.TrimSpace(answer.Message.Text()), new(answer.Usage)
		if c.Text == "" {
			c.Text = t.lastMessages()
		}
	}
	kept, events, text := t.chooseSkills()
	c.Skills, c.Text = kept, "The conversation so far, in short:\n\n"+c.Text+"\n"+text
	if said := t.folded().Unanswered(); said != "" {
		c.Text += "\nThe user's last message, which is not answered yet:\n\n" + said + "\n"
	}
	if t.opts.RenewInstructions != nil {
		events = append(events, t.startEvent(t.opts.RenewInstructions()))
	}
	events = append(events, session.Event{Compacted: &c})
	if err := t.session.Append(ctx, events...); err != nil {
		return err
	}
	t.emitSkillEvents()
	t.emit(Event{Type: Compacted, Text: c.Text, Usage: c.Usage, Model: c.Model})
	return nil
}

// chooseSkills selects the skills that stay active, most recently used first.
// It returns their IDs and text, and unload events for the other skills.
func (t *turn) chooseSkills() (kept []session.ID, gone []session.Event, text string) {
	active := t.session.Active()
	byUse := slices.SortedStableFunc(slices.Values(active), func(a, b session.ActiveSkill) int {
		return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(b.Seq, a.Seq))
	})
	stays := map[session.ID]bool{}
	left := t.opts.AttachTokens
	for _, a := range byUse {
		if n := tokencount.Estimate(a.Text); n <= left {
			left -= n
			stays[a.Skill] = true
		}
	}
	var b strings.Builder
	for _, a := range active {
		if stays[a.Skill] {
			kept = append(kept, a.Skill)
			b.WriteString("\n" + a.Text + "\n")
			if a.Current != a.Digest { // the earlier notice is not part of the summary
				b.WriteString("\n" + fold.UpdateNotice(&session.SkillUpdate{Skill: a.Skill, UserOnly: a.UserOnly}) + "\n")
			}
			continue
		}
		gone = append(gone, session.Event{Unloaded: &session.SkillUnload{Skill: a.Skill, Reason: "the conversation was compacted and its instructions did not fit"}})
		fmt.Fprintf(&b, "\nThe skill %s is not loaded any more. Load it again where it is needed.\n", a.Skill.Name)
	}
	return kept, gone, b.String()
}

// lastMessages returns the last messages of the conversation. It is the
// fallback if no summary is available.
func (t *turn) lastMessages() string {
	return "(Earlier messages are not available.)\n" + t.folded().LastMessages()
}
