package hub

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// heard is what a client says over a socket.
type heard struct {
	Type    string `json:"type"`
	ID      string `json:"id"` // the client's own, for the answer
	Session string `json:"session"`
	After   int64  `json:"after"`
	Text    string `json:"text"`
	Skill   string `json:"skill"`
	Key     string `json:"key"` // of a message
	Ask     string `json:"ask"`
	answerJSON
	responseJSON
}

// maxHeardID bounds what is repeated of a message, in bytes.
const maxHeardID = 200

// heed does what a message says, and returns what is answered, and what is done after
// that, nil for nothing.
func (s *socket) heed(data []byte) (answer reply, then func()) {
	ctx, stop := context.WithTimeoutCause(s.ctx, operationTime, errSlow)
	defer stop()
	if err := s.h.door.count(visitOf(s.ctx)); err != nil {
		return s.refusal(idOf(data), err), nil
	}
	var m heard
	if err := json.Unmarshal(data, &m); err != nil || len(m.ID) > maxHeardID {
		return s.refusal("", &Problem{Status: 400, Code: "malformed", Detail: "the message cannot be read", Next: "see what is expected: GET /openapi.json, of /ws"}), nil
	}
	answer = reply{Type: "ok", To: m.ID, Success: m.Type == "skill:response"}
	var err error
	switch m.Type {
	case "attach":
		then, err = s.attach(ctx, m.Session, m.After)
	case "message":
		answer.Input, err = s.h.chat.Say(ctx, s.principal(), m.Session, chat.Message{Text: m.Text, Skill: m.Skill, Key: m.Key})
	default:
		err = s.do(ctx, m)
	}
	if err != nil {
		return s.refusal(m.ID, err), nil
	}
	return answer, then
}

// idOf is the id of a message that is not looked at any further.
func idOf(data []byte) string {
	var m struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &m) != nil || len(m.ID) > maxHeardID {
		return ""
	}
	return m.ID
}

// do does what a message says of which nothing more is answered.
func (s *socket) do(ctx context.Context, m heard) error {
	switch m.Type {
	case "detach":
		s.detach(m.Session)
		return nil
	case "cancel":
		return s.h.chat.Cancel(ctx, s.principal(), m.Session)
	case "answer":
		return s.h.chat.Answer(ctx, s.principal(), m.Ask, m.answer())
	case "skill:response":
		return s.h.chat.Respond(ctx, s.principal(), chat.Response(m.responseJSON))
	}
	return &Problem{Status: 400, Code: "malformed", Detail: "there is no such type of message", Next: "see which there are: GET /openapi.json, of /ws"}
}
