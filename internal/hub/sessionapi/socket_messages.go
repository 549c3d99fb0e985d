package sessionapi

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

type clientMessage struct {
	Type       string         `json:"type"`
	ID         string         `json:"id"` // chosen by the client; the reply repeats it
	Session    string         `json:"session"`
	After      int64          `json:"after"`      // last known event
	AfterStep  *int64         `json:"after_step"` // step after which a message continues the conversation
	Text       string         `json:"text"`
	Skill      string         `json:"skill"`
	Key        string         `json:"key"` // idempotency key of a message
	Images     []messageImage `json:"images"`
	ApprovalID string         `json:"ask"`
	answerJSON
	chat.Response
}

// maxMessageID is the maximum length of a message ID, in bytes.
const maxMessageID = 200

// handleMessage handles a message. It returns the reply, and a function to call
// after sending it, or nil.
func (s *socket) handleMessage(data []byte) (answer reply, then func()) {
	ctx, stop := context.WithTimeoutCause(s.ctx, api.OperationTimeout, api.ErrTimeout)
	defer stop()
	if err := s.h.Gate.CountRequest(api.RequestFrom(s.ctx)); err != nil {
		return s.refusal(readMessageID(data), err), nil
	}
	var m clientMessage
	if err := json.Unmarshal(data, &m); err != nil || len(m.ID) > maxMessageID {
		return s.refusal("", &api.Problem{Status: 400, Code: "malformed", Detail: "malformed message", Next: "see the expected format: GET /openapi.json, path /ws"}), nil
	}
	answer = reply{Type: "ok", To: m.ID, Success: m.Type == "skill:response"}
	var err error
	switch m.Type {
	case "attach":
		then, err = s.attach(ctx, m.Session, m.After)
	case "message":
		answer.Input, err = s.h.Chat.SendMessage(ctx, s.principal(), m.Session, chat.Message{Text: m.Text, Skill: m.Skill, Images: toImageRefs(m.Images), Key: m.Key, After: m.AfterStep})
	default:
		err = s.execute(ctx, m)
	}
	if err != nil {
		return s.refusal(m.ID, err), nil
	}
	return answer, then
}

// readMessageID returns the ID of a message that cannot be handled, or "" if the
// message has no valid ID.
func readMessageID(data []byte) string {
	var m struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &m) != nil || len(m.ID) > maxMessageID {
		return ""
	}
	return m.ID
}

// execute handles a message whose reply contains no data.
func (s *socket) execute(ctx context.Context, m clientMessage) error {
	switch m.Type {
	case "detach":
		s.detach(m.Session)
		return nil
	case "cancel":
		return s.h.Chat.Cancel(ctx, s.principal(), m.Session)
	case "answer":
		return s.h.Chat.AnswerApproval(ctx, s.principal(), m.ApprovalID, m.answer())
	case "skill:response":
		return s.h.Chat.Respond(ctx, s.principal(), m.Response)
	}
	return &api.Problem{Status: 400, Code: "malformed", Detail: "unknown type of message", Next: "see the types: GET /openapi.json, path /ws"}
}
