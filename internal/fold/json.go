package fold

import (
	"encoding/json"
	"errors"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Format is the version of the JSON form of a [State] and of the rules for
// folding events. It must change whenever a saved state could differ from the
// state recomputed from the same events.
const Format = 3

// savedState is the JSON form of a [State].
type savedState struct {
	Seq          int64                `json:"seq"`
	Begun        bool                 `json:"begun,omitempty"`
	Instructions string               `json:"instructions,omitempty"`
	Messages     []message            `json:"messages,omitempty"`
	Waiting      []string             `json:"waiting,omitempty"`
	Results      map[string]message   `json:"results,omitempty"` // each message has one part
	Deferred     []message            `json:"deferred,omitempty"`
	Images       []llm.Image          `json:"images,omitempty"`
	Size         int                  `json:"size"`
	Start        []string             `json:"start,omitempty"`
	Known        []string             `json:"known,omitempty"`
	Recent       []session.Event      `json:"recent,omitempty"`
	Answered     bool                 `json:"answered,omitempty"`
	Unanswered   string               `json:"unanswered,omitempty"`
	Counted      int                  `json:"counted,omitempty"`
	Later        int                  `json:"later,omitempty"`
	StartTokens  int                  `json:"start_tokens,omitempty"`
	StartLater   bool                 `json:"start_later,omitempty"`
	Last         []lastMessage        `json:"last,omitempty"`
	Usage        map[string]llm.Usage `json:"usage,omitempty"`
	Responses    int                  `json:"responses,omitempty"`
	TurnTokens   int                  `json:"turn_tokens,omitempty"`
}

// message is the JSON form of an [llm.Message].
type message struct {
	Role  llm.Role `json:"role,omitempty"`
	Parts []part   `json:"parts,omitempty"`
}

// part is the JSON form of an [llm.Part]. It has exactly one field.
type part struct {
	Text     *llm.Text     `json:"text,omitempty"`
	Image    *llm.Image    `json:"image,omitempty"`
	Thinking *llm.Thinking `json:"thinking,omitempty"`
	Call     *llm.Call     `json:"call,omitempty"`
	Result   *result       `json:"result,omitempty"`
}

// result is the JSON form of an [llm.Result].
type result struct {
	Call  string `json:"call"`
	Parts []part `json:"parts,omitempty"`
	Error bool   `json:"error,omitempty"`
}

// MarshalJSON implements [json.Marshaler]. Equal states have the same JSON
// form.
func (s *State) MarshalJSON() ([]byte, error) {
	r := &s.request
	out := savedState{
		Seq: s.seq, Begun: s.begun, Instructions: s.instructions, Messages: saveMessages(r.messages), Waiting: r.waiting, Deferred: saveMessages(r.deferred), Images: r.images, Size: r.size,
		Start: s.offered.start, Known: s.offered.known, Recent: s.recent, Answered: s.answered, Unanswered: s.unanswered,
		Counted: s.tokens.counted, Later: s.tokens.later, StartTokens: s.tokens.start, StartLater: s.tokens.startLater, Last: s.last, Usage: s.usage,
		Responses: s.turn.responses, TurnTokens: s.turn.tokens,
	}
	if len(r.waiting) > 0 {
		out.Results = map[string]message{}
		for id, res := range r.results {
			out.Results[id] = message{Parts: saveParts([]llm.Part{res})}
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *State) UnmarshalJSON(data []byte) error {
	var in savedState
	err := json.Unmarshal(data, &in)
	if err != nil {
		return err
	}
	r := renderer{waiting: in.Waiting, results: map[string]llm.Result{}, images: in.Images, size: in.Size}
	if r.messages, err = loadMessages(in.Messages); err != nil {
		return err
	}
	if r.deferred, err = loadMessages(in.Deferred); err != nil {
		return err
	}
	for id, m := range in.Results {
		parts, err := loadParts(m.Parts)
		if err != nil {
			return err
		}
		for _, p := range parts {
			res, ok := p.(llm.Result)
			if !ok {
				return errPart
			}
			r.results[id] = res
		}
	}
	*s = State{
		seq: in.Seq, begun: in.Begun, instructions: in.Instructions, request: r, offered: offeredSkills{in.Start, in.Known}, recent: in.Recent, answered: in.Answered, unanswered: in.Unanswered,
		tokens: tokenSum{in.Counted, in.Later, in.StartTokens, in.StartLater}, last: in.Last, usage: in.Usage,
		turn: turnCount{in.Responses, in.TurnTokens},
	}
	return nil
}

var errPart = errors.New("unknown message part")

func saveMessages(messages []llm.Message) []message {
	out := make([]message, len(messages))
	for i, m := range messages {
		out[i] = message{m.Role, saveParts(m.Parts)}
	}
	return out
}

func loadMessages(messages []message) ([]llm.Message, error) {
	out := make([]llm.Message, len(messages))
	for i, m := range messages {
		parts, err := loadParts(m.Parts)
		if err != nil {
			return nil, err
		}
		out[i] = llm.Message{Role: m.Role, Parts: parts}
	}
	return out, nil
}

func saveParts(parts []llm.Part) []part {
	out := make([]part, len(parts))
	for i, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			out[i].Text = &p
		case llm.Image:
			out[i].Image = &p
		case llm.Thinking:
			out[i].Thinking = &p
		case llm.Call:
			out[i].Call = &p
		case llm.Result:
			out[i].Result = &result{p.Call, saveParts(p.Parts), p.Error}
		}
	}
	return out
}

func loadParts(parts []part) ([]llm.Part, error) {
	out := make([]llm.Part, len(parts))
	for i, p := range parts {
		switch {
		case p.Text != nil:
			out[i] = *p.Text
		case p.Image != nil:
			out[i] = *p.Image
		case p.Thinking != nil:
			out[i] = *p.Thinking
		case p.Call != nil:
			out[i] = *p.Call
		case p.Result != nil:
			of, err := loadParts(p.Result.Parts)
			if err != nil {
				return nil, err
			}
			out[i] = llm.Result{Call: p.Result.Call, Parts: of, Error: p.Result.Error}
		default:
			return nil, errPart
		}
	}
	return out, nil
}
