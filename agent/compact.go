package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// Compact puts a short text in the place of all that was said: the model is asked what
// it came to, and the instructions of the skills used last are told again, as far as
// [Options.Attach] goes; other skills go out of force. With it the vendor's cache of
// the conversation is lost.
func (a *Agent) Compact(ctx context.Context, tell func(Event)) error {
	return a.lead(tell, func(t *turn) error {
		if err := t.start(ctx); err != nil {
			return err
		}
		if !t.answered() {
			return errors.New("there is nothing to compact")
		}
		return t.compact(ctx)
	})
}

// full reports whether the next request comes near to what the model takes, and
// compacting can help.
func (t *turn) full() bool {
	return t.opts.Window > 0 && t.answered() && t.size() > t.opts.Window/5*4
}

// answered reports whether the model said something since the conversation began or
// was compacted.
func (t *turn) answered() bool {
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

// size is how many tokens the next request has, about: what the vendor counted last,
// and what came after that.
func (t *turn) size() int {
	total := 0
	compacted, begun := false, false
	for _, e := range slices.Backward(t.session.Events(0)) {
		switch u := usageSum(e); {
		case e.Begun != nil && !begun: // the instructions are sent also after a compaction
			total += tokens(e)
			begun = true
		case e.Begun != nil || compacted: // is not sent any more
		case u > 0:
			return total + u
		default:
			total += tokens(e)
			compacted = e.Compacted != nil
		}
	}
	return total
}

// usageSum is the size of a conversation up to an answer, 0 where nobody counted it.
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

// tokens estimates what an event adds to a request.
func tokens(e session.Event) int {
	const picture = 1500
	switch {
	case e.Begun != nil:
		return skill.Tokens(e.Begun.Instructions)
	case e.Message != nil:
		n := skill.Tokens(e.Message.Text)
		for _, c := range e.Message.Calls {
			n += skill.Tokens(c.Arguments)
		}
		return n
	case e.Result != nil:
		return skill.Tokens(e.Result.Text) + picture*len(e.Result.Images)
	case e.Notice != nil:
		return skill.Tokens(e.Notice.Text)
	case e.Compacted != nil:
		return skill.Tokens(e.Compacted.Text)
	case e.Loaded != nil && e.Loaded.Direct:
		return skill.Tokens(e.Loaded.Text)
	}
	return 0
}

// inShort is what a model is asked to do with a conversation.
const inShort = `The conversation has become too long and is put in short now. Write what has to be known to go on with it, and nothing else: what the person wants, in their own words where these matter; what was found and decided, with names, paths and figures; what was done to which files; what is open, and what comes next. Call no tool. What skills say need not be repeated.`

// compact does it.
func (t *turn) compact(ctx context.Context) error {
	model := t.model()
	req := t.request()
	req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text(inShort)}})
	c := session.Compacted{Model: model.Name()}
	answer, err := llm.Ask(ctx, model, req, nil)
	status := (*llm.StatusError)(nil)
	switch {
	case errors.As(err, &status) && status.Code >= 400 && status.Code < 500 && status.Code != 401 && status.Code != 403 && status.Code != 429:
		c.Text = lastWords(t.session.Events(0)) // it is too long already, as vendors say in many ways
	case err != nil:
		return fmt.Errorf("compact the conversation: %w", err)
	default:
		c.Text, c.Usage = strings.TrimSpace(answer.Message.Words()), usage(answer.Usage)
		if c.Text == "" {
			c.Text = lastWords(t.session.Events(0))
		}
	}
	kept, events, text := t.attach()
	c.Skills, c.Text = kept, "The conversation so far, in short:\n\n"+c.Text+"\n"+text
	if said := t.unanswered(); said != "" {
		c.Text += "\nThe person said last, and you are about to do it:\n\n" + said + "\n"
	}
	if t.opts.Renew != nil {
		events = append(events, t.begun(t.opts.Renew()))
	}
	events = append(events, session.Event{Type: session.TypeCompacted, Compacted: &c})
	if err := t.session.Append(ctx, events...); err != nil {
		return err
	}
	t.announce()
	t.say(Event{Type: Compacted, Text: c.Text, Usage: c.Usage, Model: c.Model})
	return nil
}

// unanswered is what the person said last, where the model did not come to an end with
// it: it is told again as it was, whatever the model wrote of it.
func (t *turn) unanswered() string {
	for _, e := range slices.Backward(t.session.Events(0)) {
		switch {
		case e.Message == nil:
		case e.Message.Role == session.RoleUser:
			return e.Message.Text
		case !goesOn(e.Message):
			return ""
		}
	}
	return ""
}

// attach chooses the skills that stay in force, those first that were used last, and
// returns their text, and the ends of the others.
func (t *turn) attach() (kept []session.ID, gone []session.Event, text string) {
	active := t.session.Active()
	byUse := slices.SortedStableFunc(slices.Values(active), func(a, b session.Active) int {
		return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(b.Seq, a.Seq))
	})
	stays := map[session.ID]bool{}
	left := t.opts.Attach
	for _, a := range byUse {
		if n := skill.Tokens(a.Text); n <= left {
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
		gone = append(gone, session.Event{Type: session.TypeUnloaded, Unloaded: &session.Unloaded{Skill: a.Skill, Reason: "the conversation was put in short, and its instructions found no room"}})
		fmt.Fprintf(&b, "\nThe skill %s is not loaded any more. Load it again where it is needed.\n", a.Skill.Name)
	}
	return kept, gone, b.String()
}

// lastWords are the last things that were said, where nobody can put all of it in
// short.
func lastWords(events []session.Event) string {
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
