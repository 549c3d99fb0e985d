// Package approval sends a question to a user or a client and waits for one
// answer: approval of a tool call, an elicitation of an MCP server, a form, or
// an action that only a client can perform.
//
// A [Request] stays in a [Store] until it is resolved, so it outlives the
// process that submitted it. A process that continues the conversation can wait
// for it again. The first authorized answer resolves a request. Expiry and
// cancellation are answers too. A [Queue] connects the code that waits with the
// code that answers.
//
// The package never acts on an answer and displays nothing. Start reading at
// [Queue].
package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/policy"
)

// Kind is the kind of a [Request].
type Kind string

// Kinds of requests.
const (
	KindApproval    Kind = "approval"    // approval of the action in the payload
	KindElicitation Kind = "elicitation" // a question from a tool's MCP server
	KindForm        Kind = "form"        // input for the fields of a form
	KindAction      Kind = "action"      // an action that only a client can perform
)

// Request is a question for a user or client. It stays pending until it is
// answered, withdrawn or expired.
type Request struct {
	// ID is set by [Queue.Submit] if it is "". Any other ID must start with the
	// session and a dot, so that a store can find the request by its ID.
	ID      string `json:"id"`
	Kind    Kind   `json:"kind"`
	Session string `json:"session"`
	// Principal is the only principal that is allowed to answer.
	Principal policy.Principal `json:"principal"`
	Message   string           `json:"message"`
	// Payload is JSON that describes what the request is about. For the
	// approval of a tool call, it is the call.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Schema is the JSON Schema of the answer's content. If it is nil, the
	// answer is yes or no.
	Schema   json.RawMessage `json:"schema,omitempty"`
	Created  time.Time       `json:"asked"`             // set by [Queue.Submit]
	Deadline time.Time       `json:"deadline,omitzero"` // zero means none
}

// Outcome is the way in which a request was resolved.
type Outcome string

// Outcomes of requests.
const (
	Accepted  Outcome = "accepted"
	Declined  Outcome = "declined"
	Cancelled Outcome = "cancelled" // withdrawn, or dismissed by the user
	Expired   Outcome = "expired"   // not answered before the deadline
)

// Answer is the answer that resolves a request.
type Answer struct {
	Outcome Outcome `json:"outcome"`
	// Content matches [Request.Schema]. For an approval, it contains the
	// arguments as modified by the user, or nil if they are unmodified.
	Content json.RawMessage `json:"content,omitempty"`
	// Feedback is the user's comment, such as why the call was declined.
	Feedback string `json:"feedback,omitempty"`
	// Scope is how long an approval is valid; "" means once.
	Scope policy.Scope `json:"scope,omitempty"`
	// ReadOnly is set if the user was shown the tool's declaration that it only
	// reads.
	ReadOnly   bool             `json:"read_only,omitempty"`
	By         policy.Principal `json:"by,omitzero"`
	ResolvedAt time.Time        `json:"at"`
}

// Limits on requests and answers.
const (
	MaxMessage = 16 << 10 // bytes
	MaxPayload = 1 << 20
	MaxOpen    = 1000 // pending requests per session
)

// ErrNotFound is returned if a request does not exist.
var ErrNotFound = errors.New("approval request not found; it may have expired")

// ResolvedError is returned if a request was already resolved.
type ResolvedError struct {
	ID     string
	Answer Answer // the answer that resolved it
}

func (e *ResolvedError) Error() string {
	if e.Answer.By.ID == "" {
		return fmt.Sprintf("approval request %s is already %s", e.ID, e.Answer.Outcome)
	}
	return fmt.Sprintf("approval request %s was already %s by %s", e.ID, e.Answer.Outcome, e.Answer.By)
}

// NotAllowedError is returned if a principal is not allowed to answer a
// request.
type NotAllowedError struct {
	ID string
	By policy.Principal
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("%[2]s may not answer approval request %[1]s", e.ID, e.By)
}

// validate returns an error that joins all problems of a request.
func (a *Request) validate() error {
	var errs []error
	switch a.Kind {
	case KindApproval, KindElicitation, KindForm, KindAction:
	default:
		errs = append(errs, fmt.Errorf("unknown kind %q", a.Kind))
	}
	if a.Session == "" {
		errs = append(errs, errors.New("missing session"))
	}
	if a.ID != "" && !strings.HasPrefix(a.ID, a.Session+".") {
		errs = append(errs, fmt.Errorf("invalid ID %.100q: want prefix %.100q", a.ID, a.Session+"."))
	}
	if a.Principal.ID == "" {
		errs = append(errs, errors.New("missing principal"))
	}
	if len(a.Message) > MaxMessage {
		errs = append(errs, fmt.Errorf("message too long (%d bytes, limit %d)", len(a.Message), MaxMessage))
	}
	if n := len(a.Payload) + len(a.Schema); n > MaxPayload {
		errs = append(errs, fmt.Errorf("payload and schema too large (%d bytes, limit %d)", n, MaxPayload))
	}
	for name, raw := range map[string]json.RawMessage{"payload": a.Payload, "schema": a.Schema} {
		if len(raw) > 0 && !json.Valid(raw) {
			errs = append(errs, fmt.Errorf("%s is not valid JSON", name))
		}
	}
	return errors.Join(errs...)
}

// sameContent reports whether a stored request has the same content as b. The
// stored request may be from an earlier version.
func (a *Request) sameContent(b Request) bool {
	return a.Kind == b.Kind && a.Session == b.Session && a.Principal == b.Principal && a.Message == b.Message &&
		samePayload(a.Payload, b.Payload) && bytes.Equal(a.Schema, b.Schema)
}

// samePayload reports whether a stored payload has the same content as another.
// Earlier versions did not store whether a tool declares itself read-only.
func samePayload(stored, payload json.RawMessage) bool {
	if bytes.Equal(stored, payload) {
		return true
	}
	var a, b map[string]json.RawMessage
	if json.Unmarshal(stored, &a) != nil || json.Unmarshal(payload, &b) != nil {
		return false
	}
	if _, ok := a["read_only"]; !ok {
		delete(b, "read_only")
	}
	return maps.EqualFunc(a, b, func(v, w json.RawMessage) bool { return bytes.Equal(v, w) })
}
