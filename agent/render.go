package agent

import (
	"slices"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Render makes the request of a conversation from its events. The request of more
// events begins with that of fewer, but where the conversation was compacted: results
// of tools are part of it once all calls of a message have one.
func Render(events []session.Event) (instructions string, messages []llm.Message) {
	r := renderer{}
	for _, e := range events {
		switch {
		case e.Begun != nil:
			instructions = e.Begun.Instructions
		case e.Compacted != nil:
			r = renderer{}
			r.add(llm.User, llm.Text(e.Compacted.Text))
		case e.Loaded != nil && e.Loaded.Direct:
			r.add(llm.Notice, llm.Text(e.Loaded.Text))
		case e.Message != nil && e.Message.Role == session.RoleAssistant:
			r.answer(e.Message)
		case e.Message != nil:
			r.add(llm.User, llm.Text(e.Message.Text))
		case e.Result != nil:
			r.result(e.Result)
		case e.Notice != nil:
			r.add(llm.Notice, llm.Text(e.Notice.Text))
		case e.Unloaded != nil:
			r.add(llm.Notice, llm.Text("The skill "+e.Unloaded.Skill.Name+" is no longer in force: "+e.Unloaded.Reason+". Load it again where it is needed."))
		case e.Updated != nil:
			r.add(llm.Notice, llm.Text("The skill "+e.Updated.Skill.Name+" was changed after it was loaded. Load it again before you go by it."))
		}
	}
	return instructions, r.messages
}

// renderer collects messages. While calls wait for results, what is said besides
// waits behind them: vendors want results right after the calls.
type renderer struct {
	messages []llm.Message
	waiting  []string              // IDs of calls, in their order
	results  map[string]llm.Result // by the ID of the call
	behind   []llm.Message
}

func (r *renderer) add(role llm.Role, parts ...llm.Part) {
	m := llm.Message{Role: role, Parts: parts}
	if len(r.waiting) > 0 {
		r.behind = append(r.behind, m)
		return
	}
	r.messages = append(r.messages, m)
}

func (r *renderer) answer(m *session.Message) {
	var parts []llm.Part
	for _, t := range m.Thinking {
		parts = append(parts, llm.Thinking{Vendor: t.Vendor, Text: t.Text, Signature: t.Signature, Redacted: t.Redacted})
	}
	if m.Text != "" {
		parts = append(parts, llm.Text(m.Text))
	}
	for _, c := range m.Calls {
		parts = append(parts, llm.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	if len(parts) == 0 {
		return // an answer of nothing is none
	}
	r.settle() // what has no result by now gets none
	r.add(llm.Assistant, parts...)
	r.results = map[string]llm.Result{}
	for _, c := range m.Calls {
		if !slices.Contains(r.waiting, c.ID) {
			r.waiting = append(r.waiting, c.ID)
		}
	}
}

func (r *renderer) result(res *session.Returned) {
	if !slices.Contains(r.waiting, res.Call) {
		return
	}
	out := llm.Result{Call: res.Call, Error: res.Error, Parts: []llm.Part{llm.Text(res.Text)}}
	for _, i := range res.Images {
		out.Parts = append(out.Parts, llm.Image{MIMEType: i.MIMEType, Data: i.Data})
	}
	r.results[res.Call] = out
	if res.Instructions != "" {
		r.add(llm.Notice, llm.Text(res.Instructions))
	}
	if len(r.results) == len(r.waiting) {
		r.settle()
	}
}

// settle gives the model the results of its calls, and what was said meanwhile.
func (r *renderer) settle() {
	if len(r.waiting) == 0 {
		return
	}
	var parts []llm.Part
	for _, id := range r.waiting {
		res, ok := r.results[id]
		if !ok {
			res = llm.Result{Call: id, Error: true, Parts: []llm.Part{llm.Text("There is no result of this call.")}}
		}
		parts = append(parts, res)
	}
	r.waiting = nil
	r.messages = append(append(r.messages, llm.Message{Role: llm.User, Parts: parts}), r.behind...)
	r.behind = nil
}
