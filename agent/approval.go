package agent

import "github.com/loadout-dev/loadout/internal/approval"

// Types for programs that answer an agent's approval requests.
type (
	// ApprovalQueue stores the approval requests of conversations until they
	// are answered. It is safe for concurrent use and need not be closed.
	ApprovalQueue = approval.Queue
	// ApprovalRequest is a request in an [ApprovalQueue].
	ApprovalRequest = approval.Request
	// ApprovalAnswer is the user's answer to an [ApprovalRequest].
	ApprovalAnswer = approval.Answer
)

// NewApprovalQueue returns a queue that stores its requests as files in dir, so
// that they survive a restart. The directory is created when it is needed.
// Several processes can use it at the same time. If dir is "", requests are
// stored in memory.
func NewApprovalQueue(dir string) *ApprovalQueue {
	if dir == "" {
		return approval.NewQueue(&approval.MemoryStore{})
	}
	return approval.NewQueue(approval.NewFileStore(dir))
}
