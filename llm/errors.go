package llm

import (
	"fmt"
	"time"
)

// CutError reports that a response ended before it was complete. The received
// part may be shown, but its calls must not be made.
type CutError struct {
	Answer Answer // the received part
	Err    error  // cause; nil if the stream ended without an error
}

func (e *CutError) Error() string {
	if e.Err == nil {
		return "answer interrupted: stream ended before the answer was complete"
	}
	return fmt.Sprintf("answer interrupted: %v", e.Err)
}

func (e *CutError) Unwrap() error { return e.Err }

// StatusError reports that a vendor rejected a request. Its text comes from the
// vendor and never contains keys.
type StatusError struct {
	Vendor  string
	Code    int    // HTTP status code
	Kind    string // the vendor's name for the error; may be ""
	Message string
	After   time.Duration // how long the vendor asks the client to wait; may be 0
}

func (e *StatusError) Error() string {
	msg := fmt.Sprintf("%s refused the request (%d", e.Vendor, e.Code)
	if e.Kind != "" {
		msg += ", " + e.Kind
	}
	return msg + "): " + e.Message
}

// Again reports whether the same request might succeed if it is retried.
func (e *StatusError) Again() bool {
	switch e.Code {
	case 408, 409, 425, 429, 500, 502, 503, 504, 529:
		return true
	}
	return false
}
