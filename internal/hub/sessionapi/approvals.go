package sessionapi

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/policy"
)

// answerJSON is a user's answer to an approval request or question.
type answerJSON struct {
	Outcome  string          `json:"outcome" enum:"accepted,declined,cancelled"`
	Content  json.RawMessage `json:"content,omitempty" doc:"The answer in the schema of the question; for an approval, changed arguments"`
	Feedback string          `json:"feedback,omitempty" maxLength:"16384" doc:"Comment, for example the reason for a denial"`
	Scope    string          `json:"scope,omitempty" enum:",once,session,always" doc:"How long an approval is valid; default once"`
	ReadOnly bool            `json:"read_only,omitempty" doc:"Confirms that you were shown the tool's read-only declaration (read_only of the request): with scope always, read_tool may call it too"`
}

func (a answerJSON) answer() approval.Answer {
	return approval.Answer{Outcome: approval.Outcome(a.Outcome), Content: a.Content, Feedback: a.Feedback, Scope: policy.Scope(a.Scope), ReadOnly: a.ReadOnly}
}

// respondedJSON confirms that a client's response was accepted.
type respondedJSON struct {
	Success bool `json:"success"`
}

func (h *Handlers) approvalsAPI() {
	api.Add(h.Server, api.Operation("list-asks", "GET", "/asks", "List your pending approval requests in all conversations, oldest first, at most 500"), h.listRequests)
	api.Add(h.Server, api.Operation("answer-ask", "POST", "/asks/{ask}", "Answer an approval request; the first answer counts"), h.answerRequest)
	api.Add(h.Server, api.Operation("respond", "POST", "/skill-responses", "Return the result of a skill:request; the first response counts"), h.respond)
}

func (h *Handlers) listRequests(ctx context.Context, _ *api.NoBody) (*api.Body[api.ListBody[approval.Request]], error) {
	asks, err := h.Chat.ListApprovals(ctx, account.FromContext(ctx))
	return api.ListOf(asks, "", err)
}

func (h *Handlers) answerRequest(ctx context.Context, in *struct {
	Ask  string `path:"ask" maxLength:"512" doc:"ID of an approval request"`
	Body answerJSON
}) (*api.NoBody, error) {
	return nil, h.Chat.AnswerApproval(ctx, account.FromContext(ctx), in.Ask, in.Body.answer())
}

func (h *Handlers) respond(ctx context.Context, in *struct{ Body chat.Response }) (*api.Body[respondedJSON], error) {
	err := h.Chat.Respond(ctx, account.FromContext(ctx), in.Body)
	return api.BodyOf(respondedJSON{true}, err)
}
