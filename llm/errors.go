package llm

import (
	"fmt"
	"time"
)

// CutError reports that a response ended before it was complete. The received
// part may be shown, but its calls must not be made.
type CutError struct {
	Answer Answer // the received part; its usage may be incomplete
	Err    error  // cause; nil if the stream ended without an error
}

// Error returns a message with the cause, but without any part of the response.
func (e *CutError) Error() string {
	if e.Err == nil {
		return "answer interrupted: stream ended before the answer was complete"
	}
	return fmt.Sprintf("answer interrupted: %v", e.Err)
}

// Unwrap returns the cause, which may be nil.
func (e *CutError) Unwrap() error { return e.Err }

// StatusError reports that a vendor rejected a request or failed while it
// responded. Its text comes from the vendor, with API keys redacted.
type StatusError struct {
	Vendor  string // part of [Model.Name] before the colon
	Code    int    // HTTP status code; for an error in a stream, the matching code or 0
	Kind    string // the vendor's name for the error; may be ""
	Message string
	After   time.Duration // from the Retry-After header (RFC 9110); 0 if there is none
}

// Error returns a text that contains the vendor, the status code, the kind and
// the message.
func (e *StatusError) Error() string {
	msg := fmt.Sprintf("%s refused the request (%d", e.Vendor, e.Code)
	if e.Kind != "" {
		msg += ", " + e.Kind
	}
	return msg + "): " + e.Message
}

// Temporary reports whether the same request might succeed if it is retried. That
// depends only on Code: 408, 409, 425, 429, 500, 502, 503, 504 and 529 are
// temporary.
func (e *StatusError) Temporary() bool {
	switch e.Code {
	case 408, 409, 425, 429, 500, 502, 503, 504, 529:
		return true
	}
	return false
}
