package llm

import (
	"fmt"
	"time"
)

// CutError reports an answer that broke off. The part that arrived may be
// shown, but its calls must not be made.
type CutError struct {
	Answer Answer // the part that arrived
	Err    error  // the cause; nil if the stream just ended
}

func (e *CutError) Error() string {
	if e.Err == nil {
		return "the answer broke off: the stream ended before it was done"
	}
	return fmt.Sprintf("the answer broke off: %v", e.Err)
}

func (e *CutError) Unwrap() error { return e.Err }

// StatusError reports that a vendor refused a request. Its texts are the
// vendor's and never contain keys.
type StatusError struct {
	Vendor  string
	Code    int    // HTTP status
	Kind    string // the vendor's name for the error; "" if it has none
	Message string
	After   time.Duration // how long the vendor asks to wait; 0 if it does not ask
}

func (e *StatusError) Error() string {
	msg := fmt.Sprintf("%s refused the request (%d", e.Vendor, e.Code)
	if e.Kind != "" {
		msg += ", " + e.Kind
	}
	return msg + "): " + e.Message
}

// Again reports whether the same request may succeed later.
func (e *StatusError) Again() bool {
	switch e.Code {
	case 408, 409, 425, 429, 500, 502, 503, 504, 529:
		return true
	}
	return false
}
