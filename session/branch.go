package session

import "slices"

// Parent returns the sequence number of the event that e follows on its branch:
// that of the previous event or, if e is a [Branch], that of an earlier one. It
// returns 0 if e is the first event of its branch.
func (e *Event) Parent() int64 {
	if b := e.Branched; b != nil && b.After >= 0 && b.After < e.Seq {
		return b.After
	}
	return e.Seq - 1
}

// Path returns the events of the current branch of a conversation, in order: the
// last of the given events and everything it follows. events are consecutive
// events of a log. If the first one does not have number 1, Path ends at the
// first event that it reaches whose parent is missing.
func Path(events []Event) []Event {
	var out []Event
	for i := int64(len(events)) - 1; i >= 0; i -= events[i].Seq - events[i].Parent() {
		out = append(out, events[i])
	}
	slices.Reverse(out)
	return out
}

// branchesBefore reports whether one of the events continues the conversation before the
// event with the given sequence number.
func branchesBefore(events []Event, seq int64) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Parent() < seq })
}
