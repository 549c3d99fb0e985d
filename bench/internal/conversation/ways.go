package conversation

import (
	"context"
	"iter"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Way is how the instructions of skills get to a model.
type Way struct {
	Name string

	static    bool // all of them are told first
	retention int  // of the session, in turns: 0 is what ships, less is for good
	// rewrite makes the requests of other ways from ours, nil leaves them.
	rewrite func(p *play, r *llm.Request) []llm.Message
	// unlisted says that the names of the skills are not told first.
	unlisted bool
}

// Ours is what Loadout does.
var Ours = &Way{Name: "tool result, as it ships: in force for 5 turns after its last use"}

// Ways are those that are compared, the first of which is what the others are measured
// by.
var Ways = []*Way{
	{Name: "static: all instructions in the system prompt", static: true},
	Ours,
	{Name: "tool result, in force for good", retention: -1},
	{Name: "tool result, taken out when it is no longer in force", rewrite: cut},
	{Name: "message: hidden messages after a short result", rewrite: message},
	{Name: "system: a block before the history, made anew for each request", rewrite: block, unlisted: true},
}

func (w *Way) instructions(c *Corpus) string {
	var b strings.Builder
	if w.static {
		for _, s := range c.Skills {
			b.WriteString("\n\n# " + s.Name + "\n\n" + s.Instructions)
		}
		return b.String()
	}
	if w.unlisted {
		return ""
	}
	return "\n\nSkills:\n" + c.runtime.CatalogText(loadout.TextOptions{})
}

// rewriting is a model that is sent requests in the form of another way.
type rewriting struct {
	llm.Model
	*play
}

// Stream implements [llm.Model].
func (m *rewriting) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	if m.way.rewrite != nil {
		other := *r
		other.Messages = m.way.rewrite(m.play, r)
		r = &other
	}
	return m.Model.Stream(ctx, r)
}

// loads are the skills that calls of a conversation load, by the ID of the call.
func loads(all []llm.Message) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for _, p := range m.Parts {
			if c, ok := p.(llm.Call); ok && c.Name == "load_skill" {
				out[c.ID] = strings.TrimSuffix(strings.TrimPrefix(c.Arguments, `{"name":"`), `"}`)
			}
		}
	}
	return out
}

// told gives the results of loads another text, "" leaves one, and puts messages
// behind the message that they are in.
func told(all []llm.Message, of func(call, skill string) (text string, behind []llm.Message)) []llm.Message {
	loaded := loads(all)
	var out []llm.Message
	for _, m := range all {
		var parts []llm.Part
		var behind []llm.Message
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok && loaded[r.Call] != "" {
				text, more := of(r.Call, loaded[r.Call])
				if text != "" {
					r.Parts = []llm.Part{llm.Text(text)}
				}
				p, behind = r, append(behind, more...)
			}
			parts = append(parts, p)
		}
		out = append(append(out, llm.Message{Role: m.Role, Parts: parts}), behind...)
	}
	return out
}

// cut takes the instructions of skills that are not in force out of the conversation,
// and those of one that was loaded again from where it was loaded before.
func cut(p *play, r *llm.Request) []llm.Message {
	last := map[string]string{} // the call that loaded a skill last
	told(r.Messages, func(call, skill string) (string, []llm.Message) {
		last[skill] = call
		return "", nil
	})
	inForce := map[string]bool{}
	for _, a := range p.session.Active() {
		inForce[last[a.Skill.Name]] = true
	}
	return told(r.Messages, func(call, skill string) (string, []llm.Message) {
		if inForce[call] { // also where it was a short note, as what that is about was taken out
			return p.corpus.instructions(skill), nil
		}
		return "Skill " + skill + " was loaded here. Its instructions were taken out, as it was not used for 5 turns.", nil
	})
}

// message tells instructions as the messages of [session.Activation].
func message(p *play, r *llm.Request) []llm.Message {
	return told(r.Messages, func(_, skill string) (string, []llm.Message) {
		a := session.NewActivation(&session.Material{ID: session.ID{Name: skill}}, p.corpus.instructions(skill))
		var behind []llm.Message
		for _, m := range a.Messages {
			if text, ok := m.Content.(string); ok { // permissions are not for a model
				behind = append(behind, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text(text)}})
			}
		}
		return "The skill " + skill + " is loading.", behind
	})
}

// block tells all skills and the instructions of those in force as one block before
// everything that was said.
func block(p *play, r *llm.Request) []llm.Message {
	var available []session.Listed
	for _, s := range p.corpus.Skills {
		available = append(available, session.Listed{Name: s.Name, Description: s.Description})
	}
	active := p.session.Active()
	for i := range active {
		active[i].Text = p.corpus.instructions(active[i].Skill.Name)
	}
	_, text := session.BlockMessage(session.RenderBlock(available, active), false)
	said := told(r.Messages, func(_, skill string) (string, []llm.Message) {
		return "Skill '" + skill + "' has been loaded. Its instructions were added to the context of the conversation; follow them.", nil
	})
	return session.WithBlock(said, func(llm.Message) bool { return false }, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text(text)}})
}
