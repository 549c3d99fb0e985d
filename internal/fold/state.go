// Package fold computes the state of a conversation from its events, one event
// after another, so that a program need not read the whole transcript for each
// turn. Start reading at [State].
package fold

import (
	"maps"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// State holds what an agent needs to know about a conversation: the next
// request to the model, and what happened since the model's last message. The
// zero value is the state before the first event. A State depends only on the
// applied events, so it can always be recomputed from them.
//
// A State is not safe for concurrent use, but its clones are independent.
type State struct {
	seq          int64
	begun        bool   // whether the conversation has started
	instructions string // system prompt
	request      renderer
	offered      offeredSkills
	recent       []session.Event // result of Recent
	answered     bool            // result of HasAnswer
	unanswered   string          // result of Unanswered
	tokens       tokenSum
	last         []lastMessage // messages for LastMessages
	usage        map[string]llm.Usage
	turn         turnCount // result of TurnCount
}

// turnCount counts the responses in the last turn and their tokens.
type turnCount struct{ responses, tokens int }

// offeredSkills holds the names of the skills that the model was notified of.
type offeredSkills struct {
	start []string // named in the last start event
	known []string // named in the last event that is still part of the request; empty if unknown
}

// lastMessage is a message that [State.LastMessages] may include.
type lastMessage struct {
	Role llm.Role `json:"role"`
	Text string   `json:"text"`
}

func (m lastMessage) size() int      { return len(m.Role) + len(": ") + len(m.Text) }
func (m lastMessage) String() string { return string(m.Role) + ": " + m.Text }

// Seq returns the sequence number of the last applied event.
func (s *State) Seq() int64 { return s.seq }

// Apply updates the state with an event. Apply the events of a branch once each, in
// order; see [session.Path]. The state shares the event's data, which must not be modified.
func (s *State) Apply(e session.Event) {
	s.seq = e.Seq
	s.request.apply(&e)
	s.tokens.apply(&e)
	switch {
	case e.Start != nil:
		s.begun, s.instructions = true, e.Start.Instructions
		s.offered = offeredSkills{e.Start.Skills, e.Start.Skills}
	case e.Notice != nil && len(e.Notice.Skills) > 0:
		s.offered.known = e.Notice.Skills
	case e.Compacted != nil:
		s.offered.known = s.offered.start // the request no longer contains the notices
		s.answered = false
		s.addUsage(e.Compacted.Model, e.Compacted.Usage)
	case e.Message != nil:
		s.addMessage(e.Message)
	}
	if e.Message != nil || e.CallStarted != nil || e.Result != nil || e.Compacted != nil || e.Loaded != nil && !e.Loaded.Direct {
		s.recent = append(s.recent, e)
	}
}

func (s *State) addMessage(m *session.Message) {
	if m.Role == llm.Assistant {
		s.answered, s.recent = true, nil
		s.turn.responses++
		if m.Usage != nil {
			u := *m.Usage
			s.turn.tokens += u.Prompt() + u.Output
		}
		if !ContinuesTurn(m) {
			s.unanswered = ""
		}
	} else {
		s.unanswered, s.turn = m.Text, turnCount{}
	}
	s.addUsage(m.Model, m.Usage)
	if m.Text == "" {
		return
	}
	s.last = append(s.last, lastMessage{m.Role, m.Text})
	size := 0
	for i := len(s.last) - 1; i > 0; i-- {
		if size += s.last[i].size(); size > maxLast {
			s.last = slices.Clone(s.last[i:])
			return
		}
	}
}

func (s *State) addUsage(model string, u *llm.Usage) {
	if u == nil {
		return
	}
	if s.usage == nil {
		s.usage = map[string]llm.Usage{}
	}
	s.usage[model] = s.usage[model].Add(*u)
}

// StopCut is the [session.Message.Stop] of a message that was only partly
// received.
const StopCut = "cut"

// ContinuesTurn reports whether the turn continues after the given message from
// the model.
func ContinuesTurn(m *session.Message) bool {
	return len(m.Calls) > 0 || m.Stop == string(llm.StopPause) || m.Stop == StopCut
}

// Clone returns a copy that is independent of s. It takes little time, because
// messages and events are shared.
func (s *State) Clone() *State {
	c := *s
	c.request, c.recent, c.last, c.usage = s.request.clone(), slices.Clip(s.recent), slices.Clip(s.last), maps.Clone(s.usage)
	return &c
}

// HasStarted reports whether the conversation has a start event.
func (s *State) HasStarted() bool { return s.begun }

// Request returns the system prompt and the messages of the next request. As
// events are added, each request starts with the previous one until the
// conversation is compacted. Tool results are included once all calls in a
// message have results. The caller must not modify the messages, but may append
// to them.
func (s *State) Request() (instructions string, messages []llm.Message) {
	return s.instructions, slices.Clip(s.request.messages)
}

// Recent returns the events of the model's last message and of all later
// messages, calls, results, compactions, and skills that the model loaded. If
// the model has not responded, it returns all events of these kinds. The caller
// must not modify them.
func (s *State) Recent() []session.Event { return slices.Clip(s.recent) }

// Calls returns the calls in the model's last message.
func (s *State) Calls() []llm.Call {
	for _, e := range s.recent {
		if e.Message != nil && e.Message.Role == llm.Assistant {
			return e.Message.Calls
		}
	}
	return nil
}

// HasAnswer reports whether the model has responded since the conversation
// started or was last compacted.
func (s *State) HasAnswer() bool { return s.answered }

// Unanswered returns the user's last message if its turn is not complete, and ""
// otherwise.
func (s *State) Unanswered() string { return s.unanswered }

// OfferedSkills returns the names of the skills that the model was last notified
// of. It returns an empty list if the names are unknown.
func (s *State) OfferedSkills() []string { return s.offered.known }

// Tokens estimates the number of tokens in the next request: the vendor's last
// count plus an estimate for later events.
func (s *State) Tokens() int { return s.tokens.sum() }

// Usage returns the number of tokens used so far, by model.
func (s *State) Usage() map[string]llm.Usage { return maps.Clone(s.usage) }

// maxLast is the maximum number of bytes that LastMessages returns.
const maxLast = 8000

// TurnCount returns the number of the model's responses since the user's last
// message, and the number of tokens that they used. It includes responses
// before an interruption of the turn.
func (s *State) TurnCount() (responses, tokens int) { return s.turn.responses, s.turn.tokens }

// LastMessages returns up to 8,000 bytes of the last messages, including those
// before a compaction.
func (s *State) LastMessages() string {
	var parts []string
	size := 0
	for _, m := range slices.Backward(s.last) {
		part := m.String()
		if size += len(part); size > maxLast {
			if len(parts) == 0 {
				parts = append(parts, strings.ToValidUTF8(part[:maxLast], ""))
			}
			break
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n")
}

// Size returns the approximate size of the state in bytes.
func (s *State) Size() int {
	n := len(s.instructions) + s.request.size
	for _, e := range s.recent {
		n += eventOverhead
		if e.Loaded != nil {
			n += len(e.Loaded.Text)
		}
	}
	return n
}

// eventOverhead is the approximate size, in bytes, of an event or a message
// without its text.
const eventOverhead = 250

// tokenSum estimates the number of tokens in the next request.
type tokenSum struct {
	counted    int  // reported by the vendor for the last response; 0 if unknown
	later      int  // estimated for the events after that, except start events
	start      int  // estimated for the last start event
	startLater bool // whether that start event follows the response
}

func (t *tokenSum) sum() int {
	if t.counted > 0 && !t.startLater {
		return t.counted + t.later
	}
	return t.counted + t.later + t.start
}

func (t *tokenSum) apply(e *session.Event) {
	switch u := reportedTokens(e); {
	case e.Start != nil:
		t.start, t.startLater = tokencount.Estimate(e.Start.Instructions), true
	case u > 0:
		t.counted, t.later, t.startLater = u, 0, false
	case e.Compacted != nil: // the instructions are also sent after a compaction
		t.counted, t.later = 0, estimateTokens(e)
	default:
		t.later += estimateTokens(e)
	}
}

// reportedTokens returns the number of tokens in the conversation up to a
// response, or 0 if the vendor did not report any usage.
func reportedTokens(e *session.Event) int {
	if e.Message == nil || e.Message.Usage == nil {
		return 0
	}
	u := *e.Message.Usage
	if u.Prompt() == 0 {
		return 0
	}
	return u.Prompt() + u.Output
}

// estimateTokens estimates the number of tokens that an event other than a start
// event adds to a request.
func estimateTokens(e *session.Event) int {
	const picture = 1500
	switch {
	case e.Message != nil:
		n := tokencount.Estimate(e.Message.Text) + picture*len(e.Message.Images)
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
