package api

import (
	"errors"
	"net/http"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
)

// chatProblem converts err to a problem if it comes from a conversation or an
// approval request, and returns nil otherwise.
func chatProblem(err error) *Problem {
	if e, ok := errors.AsType[*approval.ResolvedError](err); ok {
		return &Problem{Status: 409, Code: "settled", Detail: e.Error(), Next: "there is nothing left to answer"}
	}
	if e, ok := errors.AsType[*chat.DraftLimitError](err); ok {
		return &Problem{Status: 409, Code: "too_many_drafts", Detail: e.Error(), Next: "delete conversations that try a draft: they have draft in GET " + Prefix + "/sessions"}
	}
	if e, ok := errors.AsType[*chat.ImageError](err); ok {
		return &Problem{Status: 422, Code: e.Code, Detail: e.Error(), Next: "remove the image from the message, or attach another one"}
	}
	if e, ok := errors.AsType[*chat.CommandError](err); ok {
		return commandProblem(e)
	}
	if _, ok := errors.AsType[*approval.NotAllowedError](err); ok || errors.Is(err, approval.ErrNotFound) {
		return conditions[0].problem(store.ErrNotFound)
	}
	for _, c := range []condition{
		{chat.ErrQueueFull, 429, "waiting", "too many messages are queued in the conversation", "wait for its turn to end, or cancel it"},
		{chat.ErrClosed, 503, "closing", "the node is shutting down", "try again; another node will handle it"},
		{chat.ErrNoRequestID, 422, "no_request_id", "Missing request_id", "send the request_id of the skill:request"},
		{chat.ErrNoRequest, 404, "no_request", "No pending request found", "it was answered already, or it expired"},
		{chat.ErrKeyUsed, 422, "key_used", "another message was sent to this conversation with the same key", "send each message with its own key, and repeat a message with the same key"},
		{chat.ErrStep, 422, "invalid", "", "use after or last of a message in GET " + Prefix + "/sessions/{id}/messages"},
		{chat.ErrNoFolder, 422, "no_folder", "this folder does not exist", "choose another folder"},
		{chat.ErrNoSharing, 409, "no_accounts", "", "start the hub with accounts: loadout serve --accounts"},
		{chat.ErrSharingOff, 403, "sharing_disabled", "", "export the conversation instead, or ask the operator about hub.sharing"},
		{chat.ErrUnchecked, 409, "secrets_unchecked", "", "set the secret again, or ask the operator to restore the encryption key"},
		{chat.ErrNoLinks, 403, "links_disabled", "", "share with signed-in users, or ask the operator to set hub.sharing to links"},
		{chat.ErrPreviewChanged, 409, "preview_changed", "", "get the preview again, and confirm its digest"},
		{chat.ErrInvalid, 422, "invalid", "", "fix the request and send it again"},
	} {
		if errors.Is(err, c.matches) {
			p := c.problem(err)
			if c.status == 429 {
				p.Header = http.Header{"Retry-After": {"5"}}
			}
			return p
		}
	}
	return nil
}

// commandProblem converts the error of a command in a conversation to a
// problem.
func commandProblem(e *chat.CommandError) *Problem {
	if e.Reason == chat.Cancelled {
		return &Problem{Status: 409, Code: "cancelled", Detail: e.Error(), Next: "send it again"}
	}
	return &Problem{Status: 409, Code: "failed", Detail: e.Error(), Next: "fix the problem and send it again"}
}
