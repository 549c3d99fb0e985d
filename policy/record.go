package policy

import "time"

// Record is an entry in an audit log. It must contain only the names of
// secrets, not their values.
type Record struct {
	Time      time.Time         `json:"time"`              // set by the log if zero
	Principal Principal         `json:"principal"`         // who acts
	Action    string            `json:"action"`            // "run", "approve", "revoke" …
	Subject   Digest            `json:"subject,omitempty"` // skill, tool or configuration acted on
	Name      string            `json:"name,omitempty"`    // display name of the subject
	Decision  string            `json:"decision"`          // [Allow], [Ask] or [Deny]
	Reason    string            `json:"reason,omitempty"`
	Details   map[string]string `json:"details,omitempty"`
}
