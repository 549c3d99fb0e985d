package llm

import (
	"fmt"
	"time"
)

// CutError says that an answer broke off: what had come by then is there, and may
// be shown; its calls must not be made.
type CutError struct {
	Answer Answer // as far as it came
	Err    error  // why, nil where the stream just ended
}

func (e *CutError) Error() string {
	if e.Err == nil {
		return "the answer broke off: the stream ended before it was done"
	}
	return fmt.Sprintf("the answer broke off: %v", e.Err)
}

func (e *CutError) Unwrap() error { return e.Err }

// StatusError says that a vendor refused a request, in its own words. Keys are in
// none of them.
type StatusError struct {
	Vendor  string
	Code    int    // of HTTP
	Kind    string // the vendor's name for it, "" for none
	Message string
	After   time.Duration // the vendor asks to wait for so long; 0 is nothing
}

func (e *StatusError) Error() string {
	msg := fmt.Sprintf("%s refused the request (%d", e.Vendor, e.Code)
	if e.Kind != "" {
		msg += ", " + e.Kind
	}
	return msg + "): " + e.Message
}

// Again says whether the same request may succeed later.
func (e *StatusError) Again() bool {
	switch e.Code {
	case 408, 409, 425, 429, 500, 502, 503, 504, 529:
		return true
	}
	return false
}
