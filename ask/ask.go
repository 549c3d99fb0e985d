// Package ask is how a program asks a person or a client and gets one answer: leave
// for a call, what the server of a tool wants to know, a form, an action that only
// the client can take.
//
// An [Ask] is kept in a [Store] until it is settled, so that it survives the
// process that asked: whoever continues the conversation finds it there, and waits
// for it again. The first authorised answer settles it. Nobody answering in time,
// and taking the question back, are answers too. A [Desk] brings those who wait
// and those who answer together.
//
// The package decides nothing about what was answered, and shows nothing.
package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/policy"
)

// Kind is what is asked for.
type Kind string

// The kinds of asks.
const (
	Approval    Kind = "approval"    // leave for what the payload says
	Elicitation Kind = "elicitation" // the server of a tool asks
	Form        Kind = "form"        // values for fields
	Action      Kind = "action"      // something that the client does
)

// Ask is a question that waits for its answer.
type Ask struct {
	// ID is set by [Desk.Put] where it is "". One that is given begins with the
	// session and a dot, so that a store finds it at once.
	ID      string `json:"id"`
	Kind    Kind   `json:"kind"`
	Session string `json:"session"`
	// Principal is who may answer.
	Principal policy.Principal `json:"principal"`
	Message   string           `json:"message"`
	// Payload is what it is about, as JSON: of an approval the call.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Schema is that of the answer's content; nil is a yes or no.
	Schema   json.RawMessage `json:"schema,omitempty"`
	Asked    time.Time       `json:"asked"`             // set by [Desk.Ask]
	Deadline time.Time       `json:"deadline,omitzero"` // zero is none
}

// Outcome is how an ask was settled.
type Outcome string

// The outcomes of asks.
const (
	Accepted  Outcome = "accepted"
	Declined  Outcome = "declined"
	Cancelled Outcome = "cancelled" // it was taken back, or the person left it
	Expired   Outcome = "expired"   // nobody answered in time
)

// Answer settles an ask.
type Answer struct {
	Outcome Outcome `json:"outcome"`
	// Content is what was answered, of the form of [Ask.Schema]; of an approval the
	// arguments as the person changed them, nil as they were.
	Content json.RawMessage `json:"content,omitempty"`
	// Feedback is what the person says with the answer, as why not.
	Feedback string `json:"feedback,omitempty"`
	// Scope is for how long an approval is meant; "" is once.
	Scope policy.Scope     `json:"scope,omitempty"`
	By    policy.Principal `json:"by,omitzero"`
	At    time.Time        `json:"at"`
}

// Bounds of what is kept.
const (
	MaxMessage = 16 << 10 // bytes
	MaxPayload = 1 << 20
	MaxOpen    = 1000 // asks of one session that wait
)

// ErrUnknown says that there is no such ask.
var ErrUnknown = errors.New("there is no such question; it may have been settled long ago")

// SettledError says that somebody else was first.
type SettledError struct {
	ID     string
	Answer Answer // that stands
}

func (e *SettledError) Error() string {
	if e.Answer.By.ID == "" {
		return fmt.Sprintf("question %s is %s already", e.ID, e.Answer.Outcome)
	}
	return fmt.Sprintf("question %s was %s already by %s", e.ID, e.Answer.Outcome, e.Answer.By)
}

// NotYoursError says that a principal may not answer an ask.
type NotYoursError struct {
	ID string
	By policy.Principal
}

func (e *NotYoursError) Error() string {
	return fmt.Sprintf("question %s is not for %s to answer", e.ID, e.By)
}

// check says everything that is wrong with an ask.
func (a *Ask) check() error {
	var errs []error
	switch a.Kind {
	case Approval, Elicitation, Form, Action:
	default:
		errs = append(errs, fmt.Errorf("kind %q is none", a.Kind))
	}
	if a.Session == "" {
		errs = append(errs, errors.New("it names no session"))
	}
	if a.ID != "" && !strings.HasPrefix(a.ID, a.Session+".") {
		errs = append(errs, fmt.Errorf("its id %.100q does not begin with the session and a dot", a.ID))
	}
	if a.Principal.ID == "" {
		errs = append(errs, errors.New("it does not say who may answer"))
	}
	if len(a.Message) > MaxMessage {
		errs = append(errs, fmt.Errorf("its message has %d bytes, more than %d", len(a.Message), MaxMessage))
	}
	if n := len(a.Payload) + len(a.Schema); n > MaxPayload {
		errs = append(errs, fmt.Errorf("what it is about has %d bytes, more than %d", n, MaxPayload))
	}
	for name, raw := range map[string]json.RawMessage{"payload": a.Payload, "schema": a.Schema} {
		if len(raw) > 0 && !json.Valid(raw) {
			errs = append(errs, fmt.Errorf("its %s is no JSON", name))
		}
	}
	return errors.Join(errs...)
}

// same reports whether two asks are about the same.
func (a *Ask) same(b Ask) bool {
	return a.Kind == b.Kind && a.Session == b.Session && a.Principal == b.Principal && a.Message == b.Message &&
		bytes.Equal(a.Payload, b.Payload) && bytes.Equal(a.Schema, b.Schema)
}
