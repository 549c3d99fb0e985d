package conversation

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Way is a way of delivering skill instructions to a model.
type Way struct {
	Name string

	static    bool // whether the system prompt contains all instructions
	retention int  // session retention in turns; 0 is the default, negative keeps skills active
	// rewrite converts the messages of a request to this way's form; nil leaves them unchanged.
	rewrite  func(p *play, r *llm.Request) []llm.Message
	unlisted bool // whether the system prompt omits the list of skills
}

// Ours is the [Way] that Loadout uses.
var Ours = &Way{Name: "tool result, the default: active for 5 turns after its last use"}

// Ways lists the ways to compare. The first is the baseline.
var Ways = []*Way{
	{Name: "static: all instructions in the system prompt", static: true},
	Ours,
	{Name: "tool result, always active", retention: -1},
	{Name: "tool result, removed when no longer active", rewrite: removeInactive},
	{Name: "message: hidden messages after a short result", rewrite: useMessages},
	{Name: "system: a block before the history, replaced in each request", rewrite: useBlock, unlisted: true},
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
	return "\n\nSkills:\n" + c.runtime.CatalogText(0)
}

// rewritingModel is a model that rewrites each request to the form of another
// [Way].
type rewritingModel struct {
	llm.Model
	*play
}

// Stream implements [llm.Model].
func (m *rewritingModel) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	if m.way.rewrite != nil {
		other := *r
		other.Messages = m.way.rewrite(m.play, r)
		r = &other
	}
	return m.Model.Stream(ctx, r)
}

// loadedSkills maps the IDs of load_skill calls to the skills that they name.
func loadedSkills(all []llm.Message) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for _, p := range m.Parts {
			if c, ok := p.(llm.Call); ok && c.Name == toolname.LoadSkill {
				out[c.ID] = strings.TrimSuffix(strings.TrimPrefix(c.Arguments, `{"name":"`), `"}`)
			}
		}
	}
	return out
}

// replaceResults rewrites the results of load_skill calls. For each call,
// replace returns the new text, or "" to keep the old one, and messages to
// insert after the message with the result.
func replaceResults(all []llm.Message, replace func(call, skill string) (text string, after []llm.Message)) []llm.Message {
	loaded := loadedSkills(all)
	var out []llm.Message
	for _, m := range all {
		var parts []llm.Part
		var after []llm.Message
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok && loaded[r.Call] != "" {
				text, more := replace(r.Call, loaded[r.Call])
				if text != "" {
					r.Parts = []llm.Part{llm.Text(text)}
				}
				p, after = r, append(after, more...)
			}
			parts = append(parts, p)
		}
		out = append(append(out, llm.Message{Role: m.Role, Parts: parts}), after...)
	}
	return out
}

// removeInactive removes the instructions of inactive skills, and earlier copies of skills that
// were loaded again.
func removeInactive(p *play, r *llm.Request) []llm.Message {
	last := map[string]string{} // last call that loaded each skill
	replaceResults(r.Messages, func(call, skill string) (string, []llm.Message) {
		last[skill] = call
		return "", nil
	})
	active := map[string]bool{}
	for _, a := range p.session.Active() {
		active[last[a.Skill.Name]] = true
	}
	return replaceResults(r.Messages, func(call, skill string) (string, []llm.Message) {
		if active[call] { // even if the result only refers to an earlier copy, which was removed
			return p.corpus.instructions(skill), nil
		}
		return "Skill " + skill + " was loaded here. Its instructions were removed because it was not used for 5 turns.", nil
	})
}

// useMessages delivers instructions as [session.Activation] messages.
func useMessages(p *play, r *llm.Request) []llm.Message {
	return replaceResults(r.Messages, func(_, skill string) (string, []llm.Message) {
		loaded := session.LoadResult{State: session.StateLoaded, Skill: &session.Skill{ID: session.ID{Name: skill}}, Text: p.corpus.instructions(skill)}
		a := loaded.Activation(skill)
		var after []llm.Message
		for _, m := range a.Messages {
			if text, ok := m.Content.(string); ok { // other content, such as permissions, is not meant for the model
				after = append(after, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text(text)}})
			}
		}
		return "The skill " + skill + " is loading.", after
	})
}

// useBlock delivers the list of skills and the instructions of active skills as one block
// before the history.
func useBlock(p *play, r *llm.Request) []llm.Message {
	var available []session.Skill
	for _, s := range p.corpus.Skills {
		available = append(available, session.Skill{ID: session.ID{Name: s.Name}, Description: s.Description})
	}
	active := p.session.Active()
	for i := range active {
		active[i].Text = p.corpus.instructions(active[i].Skill.Name)
	}
	_, text := session.RenderBlock(available, active, false)
	said := replaceResults(r.Messages, func(_, skill string) (string, []llm.Message) {
		return "Skill '" + skill + "' has been loaded. Its instructions were added to the context of the conversation; follow them.", nil
	})
	return slices.Insert(said, 0, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text(text)}})
}
