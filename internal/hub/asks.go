package hub

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/policy"
)

// answerJSON is the answer to a question.
type answerJSON struct {
	Outcome  string          `json:"outcome" enum:"accepted,declined,cancelled"`
	Content  json.RawMessage `json:"content,omitempty" doc:"What is answered, as the schema of the question has it; of an approval the arguments, where they are to be others"`
	Feedback string          `json:"feedback,omitempty" maxLength:"16384" doc:"What is said with it, as why not"`
	Scope    string          `json:"scope,omitempty" enum:",once,session,always" doc:"For how long an approval is meant; without, for once"`
}

func (a answerJSON) answer() ask.Answer {
	return ask.Answer{Outcome: ask.Outcome(a.Outcome), Content: a.Content, Feedback: a.Feedback, Scope: policy.Scope(a.Scope)}
}

// respondedJSON says that a response was taken.
type respondedJSON struct {
	Success bool `json:"success"`
}

func (h *Hub) asksAPI(api huma.API) {
	add(h, api, operation("list-asks", "GET", "/asks", "The questions that wait for you, in all conversations, those asked first first: 500 at most"), h.listAsks)
	add(h, api, operation("answer-ask", "POST", "/asks/{ask}", "Answer a question; the first answer counts"), h.answerAsk)
	add(h, api, operation("respond", "POST", "/skill-responses", "Say what came of a skill:request; the first response counts"), h.respond)
}

func (h *Hub) listAsks(ctx context.Context, _ *nothing) (*body[listed[ask.Ask]], error) {
	asks, err := h.chat.Asks(ctx, account.FromContext(ctx))
	return page(asks, "", err, func(a ask.Ask) ask.Ask { return a })
}

func (h *Hub) answerAsk(ctx context.Context, in *struct {
	Ask  string `path:"ask" maxLength:"512" doc:"The id of a question"`
	Body answerJSON
}) (*nothing, error) {
	return nil, h.chat.Answer(ctx, account.FromContext(ctx), in.Ask, in.Body.answer())
}

// responseJSON is a skill:response. What is missing is said in the words of older systems,
// and so nothing is required here.
type responseJSON struct {
	Request string          `json:"request_id,omitempty" maxLength:"512"`
	Skill   string          `json:"skill_name,omitempty" maxLength:"1024"`
	Action  string          `json:"action,omitempty" maxLength:"1024"`
	Success bool            `json:"success,omitempty"`
	Result  json.RawMessage `json:"result,omitempty" doc:"What came of it"`
	Error   json.RawMessage `json:"error,omitempty" doc:"What went wrong"`
}

func (h *Hub) respond(ctx context.Context, in *struct{ Body responseJSON }) (*body[respondedJSON], error) {
	err := h.chat.Respond(ctx, account.FromContext(ctx), chat.Response(in.Body))
	return answered(respondedJSON{true}, err)
}
