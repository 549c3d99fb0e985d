package fold

import (
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// PendingCall is a call without a recorded result.
type PendingCall struct {
	llm.Call
	Message int64 // sequence number of the call's message; vendors reuse call IDs
	Started bool  // whether the call may have run
}

// PendingCalls returns the calls in the model's last message that have no recorded
// result, in order. The events may be those of [State.Recent].
func PendingCalls(events []session.Event) []PendingCall {
	var out []PendingCall
	for _, e := range events {
		switch {
		case e.Compacted != nil:
			out = nil
		case e.Message != nil && e.Message.Role == llm.Assistant:
			out = nil
			for _, c := range e.Message.Calls {
				out = append(out, PendingCall{Call: c, Message: e.Seq})
			}
		case e.CallStarted != nil:
			for i := range out {
				out[i].Started = out[i].Started || out[i].ID == e.CallStarted.Call
			}
		case e.Result != nil:
			for i := range out {
				if out[i].ID == e.Result.Call {
					out = append(out[:i:i], out[i+1:]...)
					break
				}
			}
		}
	}
	return out
}
