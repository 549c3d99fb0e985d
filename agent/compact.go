package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Compact replaces the conversation with a summary written by the model. It
// keeps the instructions of the most recently used skills, up to
// [Options.AttachTokens]; other skills become inactive. The vendor's cache of
// the conversation can no longer be used. tell is as in [Agent.RunTurn].
//
// If the vendor rejects the request as too long, the last 8,000 bytes of
// messages replace the summary. Because vendors report this in many ways, any
// status 4xx except 401, 403 and 429 counts. Compact returns an error if the
// model has not responded since the last compaction, or if the request fails
// otherwise.
func (a *Agent) Compact(ctx context.Context, tell func(Event)) error {
	return a.withTurn(tell, func(t *turn) error {
		if err := t.start(ctx); err != nil {
			return err
		}
		if !t.hasAnswer() {
			return errors.New("nothing to compact")
		}
		return t.compact(ctx)
	})
}

// needsCompaction reports whether the next request comes close to the context
// window and a compaction can help.
func (t *turn) needsCompaction() bool {
	return t.opts.ContextWindow > 0 && t.hasAnswer() && t.requestTokens() > t.opts.ContextWindow/5*4
}

// hasAnswer reports whether the model has responded since the conversation
// started or was last compacted.
func (t *turn) hasAnswer() bool {
	for _, e := range slices.Backward(t.session.Events(0)) {
		switch {
		case e.Compacted != nil:
			return false
		case e.Message != nil && e.Message.Role == session.RoleAssistant:
			return true
		}
	}
	return false
}

// requestTokens estimates the number of tokens in the next request: the
// vendor's last count plus an estimate for later events.
func (t *turn) requestTokens() int {
	total := 0
	compacted, begun := false, false
	for _, e := range slices.Backward(t.session.Events(0)) {
		switch u := usageSum(e); {
		case e.Start != nil && !begun: // the instructions are also sent after a compaction
			total += eventTokens(e)
			begun = true
		case e.Start != nil || compacted: // no longer sent
		case u > 0:
			return total + u
		default:
			total += eventTokens(e)
			compacted = e.Compacted != nil
		}
	}
	return total
}

// usageSum returns the number of tokens in the conversation up to a response,
// or 0 if the vendor did not report it.
func usageSum(e session.Event) int {
	if e.Message == nil || e.Message.Usage == nil {
		return 0
	}
	u := llm.Usage(*e.Message.Usage)
	if u.Prompt() == 0 {
		return 0
	}
	return u.Prompt() + u.Output
}

// eventTokens estimates the number of tokens that an event adds to a request.
func eventTokens(e session.Event) int {
	const picture = 1500
	switch {
	case e.Start != nil:
		return tokencount.Estimate(e.Start.Instructions)
	case e.Message != nil:
		n := tokencount.Estimate(e.Message.Text)
		for _, c := range e.Message.Calls {
			n += tokencount.Estimate(c.Arguments)
		}
		return n
	case e.Result != nil:
		return tokencount.Estimate(e.Result.Text) + picture*len(e.Result.Images)
	case e.Notice != nil:
		return tokencount.Estimate(e.Notice.Text)
	case e.Compacted != nil:
		return tokencount.Estimate(e.Compacted.Text)
	case e.Loaded != nil && e.Loaded.Direct:
		return tokencount.Estimate(e.Loaded.Text)
	}
	return 0
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
		c.Text = lastMessages(t.session.Events(0)) // the request is too long; vendors report this in many ways
	case err != nil:
		return fmt.Errorf("compact conversation: %w", err)
	default:
		c.Text, c.Usage = strings.TrimSpace(answer.Message.Words()), sessionUsage(answer.Usage)
		if c.Text == "" {
			c.Text = lastMessages(t.session.Events(0))
		}
	}
	kept, events, text := t.chooseSkills()
	c.Skills, c.Text = kept, "The conversation so far, in short:\n\n"+c.Text+"\n"+text
	if said := t.unansweredMessage(); said != "" {
		c.Text += "\nThe person said last, and you are about to do it:\n\n" + said + "\n"
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

// unansweredMessage returns the user's last message if its turn is not
// complete. It is repeated verbatim after the summary.
func (t *turn) unansweredMessage() string {
	for _, e := range slices.Backward(t.session.Events(0)) {
		switch {
		case e.Message == nil:
		case e.Message.Role == session.RoleUser:
			return e.Message.Text
		case !continuesTurn(e.Message):
			return ""
		}
	}
	return ""
}

// chooseSkills selects the skills that stay active, most recently used first.
// It returns their IDs and text, and the unloads of the other skills.
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
			continue
		}
		gone = append(gone, session.Event{Unloaded: &session.SkillUnload{Skill: a.Skill, Reason: "the conversation was compacted and its instructions did not fit"}})
		fmt.Fprintf(&b, "\nThe skill %s is not loaded any more. Load it again where it is needed.\n", a.Skill.Name)
	}
	return kept, gone, b.String()
}

// lastMessages returns the last messages of the conversation. It is the
// fallback if no summary is available.
func lastMessages(events []session.Event) string {
	const most = 8000 // bytes
	var parts []string
	size := 0
	for _, e := range slices.Backward(events) {
		if e.Message == nil || e.Message.Text == "" {
			continue
		}
		part := string(e.Message.Role) + ": " + e.Message.Text
		if size += len(part); size > most {
			if len(parts) == 0 {
				parts = append(parts, strings.ToValidUTF8(part[:most], ""))
			}
			break
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return "(What was said before this is not known any more.)\n" + strings.Join(parts, "\n")
}
