package hub

import (
	"errors"
	"net/http"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
)

// ofChat is what an error of conversations and questions is over HTTP.
func ofChat(err error) *Problem {
	if e, ok := errors.AsType[*ask.SettledError](err); ok {
		return &Problem{Status: 409, Code: "settled", Detail: e.Error(), Next: "there is nothing left to answer"}
	}
	if e, ok := errors.AsType[*chat.DraftsError](err); ok {
		return &Problem{Status: 409, Code: "too_many_drafts", Detail: e.Error(), Next: "delete conversations that try a draft: they have draft in GET " + base + "/sessions"}
	}
	if e, ok := errors.AsType[*chat.CommandError](err); ok {
		return undone(e)
	}
	if _, ok := errors.AsType[*ask.NotYoursError](err); ok || errors.Is(err, ask.ErrUnknown) {
		return conditions[0].problem(store.ErrNotFound)
	}
	for _, c := range []condition{
		{chat.ErrWaiting, 429, "waiting", "too much waits in the conversation", "wait for its turn to end, or cancel it"},
		{chat.ErrClosed, 503, "closing", "the node is about to end", "try again: another one does it"},
		{chat.ErrNoRequestID, 422, "no_request_id", "Missing request_id", "send the request_id of the skill:request"},
		{chat.ErrNoRequest, 404, "no_request", "No pending request found", "it was answered already, or took too long"},
		{chat.ErrKeyUsed, 422, "key_used", "another message was sent to this conversation with the same key", "send each message with a key of its own, and the same message again with the same key"},
		{chat.ErrInvalid, 422, "invalid", "", "mend it, and send it again"},
	} {
		if errors.Is(err, c.is) {
			p := c.problem(err)
			if c.status == 429 {
				p.header = http.Header{"Retry-After": {"5"}}
			}
			return p
		}
	}
	return nil
}

// undone is a command in a conversation that was not done.
func undone(e *chat.CommandError) *Problem {
	if e.Reason == chat.Cancelled {
		return &Problem{Status: 409, Code: "cancelled", Detail: e.Error(), Next: "send it again"}
	}
	return &Problem{Status: 409, Code: "failed", Detail: e.Error(), Next: "mend what is wrong, and send it again"}
}
