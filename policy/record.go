package policy

import "time"

// Record is one entry of an audit log. Callers must not put the values of
// secrets into it, only their names.
type Record struct {
	Time      time.Time         `json:"time"` // the log sets it if it is zero
	Principal Principal         `json:"principal"`
	Action    string            `json:"action"` // "run", "approve", "revoke" …
	Subject   Digest            `json:"subject,omitempty"`
	Name      string            `json:"name,omitempty"`
	Decision  string            `json:"decision"` // one of the verdicts
	Reason    string            `json:"reason,omitempty"`
	Details   map[string]string `json:"details,omitempty"`
}
