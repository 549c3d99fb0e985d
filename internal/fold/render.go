package fold

import (
	"maps"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// renderer collects the messages of a request. While tool calls have no
// results, other messages are deferred, because vendors require results right
// after the calls.
type renderer struct {
	messages []llm.Message
	waiting  []string              // IDs of calls without a result, in order
	results  map[string]llm.Result // by call ID
	deferred []llm.Message
	images   []llm.Image // of the user's last message, until the turn is complete
	size     int         // approximate number of bytes
}

// apply adds an event to the request.
func (r *renderer) apply(e *session.Event) {
	switch {
	case e.Compacted != nil:
		*r = renderer{images: r.images}
		r.addUser(e.Compacted.Text, r.images)
	case e.Loaded != nil && e.Loaded.Direct:
		r.add(llm.Notice, llm.Text(e.Loaded.Text))
	case e.Message != nil && e.Message.Role == llm.Assistant:
		if r.addAnswer(e.Message); !ContinuesTurn(e.Message) {
			r.images = nil
		}
	case e.Message != nil:
		r.images = e.Message.Images
		r.addUser(e.Message.Text, e.Message.Images)
	case e.Result != nil:
		r.addResult(e.Result)
	case e.Notice != nil:
		r.add(llm.Notice, llm.Text(e.Notice.Text))
	case e.Unloaded != nil:
		r.add(llm.Notice, llm.Text("The skill "+e.Unloaded.Skill.Name+" is no longer in force: "+e.Unloaded.Reason+". Load it again where it is needed."))
	case e.Updated != nil:
		r.add(llm.Notice, llm.Text(UpdateNotice(e.Updated)))
	}
}

// UpdateNotice returns a notice for the model about a skill that changed after
// it was loaded.
func UpdateNotice(u *session.SkillUpdate) string {
	text := "The skill " + untrusted.New(u.Skill.Name).ForModel()
	switch {
	case u.Restored:
		return text + " was changed back to the loaded version."
	case u.UserOnly:
		return text + " changed after it was loaded. Only the user can load it again."
	}
	return text + " changed after it was loaded. Load it again before you follow it."
}

// clone returns a copy that is independent of r. Messages are shared, because
// they never change.
func (r *renderer) clone() renderer {
	return renderer{slices.Clip(r.messages), slices.Clone(r.waiting), maps.Clone(r.results), slices.Clip(r.deferred), r.images, r.size}
}

func (r *renderer) add(role llm.Role, parts ...llm.Part) {
	m := llm.Message{Role: role, Parts: parts}
	r.size += partsSize(parts)
	if len(r.waiting) > 0 {
		r.deferred = append(r.deferred, m)
		return
	}
	r.messages = append(r.messages, m)
}

// addUser adds a user message, after the images that belong to it and their names.
func (r *renderer) addUser(text string, images []llm.Image) {
	var parts []llm.Part
	var names []string
	for _, i := range images {
		parts = append(parts, i)
		if i.Name != "" {
			names = append(names, untrusted.New(i.Name).ForModel())
		}
	}
	if len(names) > 0 {
		parts = append(parts, llm.Text("(Files of the images: "+strings.Join(names, ", ")+")\n\n"))
	}
	r.add(llm.User, append(parts, llm.Text(text))...)
}

func (r *renderer) addAnswer(m *session.Message) {
	var parts []llm.Part
	for _, t := range m.Thinking {
		parts = append(parts, t)
	}
	if m.Text != "" {
		parts = append(parts, llm.Text(m.Text))
	}
	for _, c := range m.Calls {
		parts = append(parts, c)
	}
	if len(parts) == 0 {
		return // skip an empty response
	}
	r.flush() // adds an error for earlier calls without a result
	r.add(llm.Assistant, parts...)
	r.results = map[string]llm.Result{}
	for _, c := range m.Calls {
		if !slices.Contains(r.waiting, c.ID) {
			r.waiting = append(r.waiting, c.ID)
		}
	}
}

func (r *renderer) addResult(res *session.CallResult) {
	if !slices.Contains(r.waiting, res.Call) {
		return
	}
	out := llm.Result{Call: res.Call, Error: res.Error, Parts: []llm.Part{llm.Text(res.Text)}}
	for _, i := range res.Images {
		out.Parts = append(out.Parts, i)
	}
	r.results[res.Call] = out
	r.size += partsSize(out.Parts)
	if res.Instructions != "" {
		r.add(llm.Notice, llm.Text(res.Instructions))
	}
	if len(r.results) == len(r.waiting) {
		r.flush()
	}
}

// flush appends the results of the tool calls and then the deferred messages.
func (r *renderer) flush() {
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
	r.messages = append(append(r.messages, llm.Message{Role: llm.User, Parts: parts}), r.deferred...)
	r.deferred = nil
}

// partsSize returns the approximate size of a message in bytes.
func partsSize(parts []llm.Part) int {
	n := eventOverhead
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += len(p)
		case llm.Image:
			n += len(p.Data) + len(p.Name) + len(p.Ref)
		case llm.Thinking:
			n += len(p.Text) + len(p.Signature) + len(p.Redacted)
		case llm.Call:
			n += len(p.Arguments)
		}
	}
	return n
}
