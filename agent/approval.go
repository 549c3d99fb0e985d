package agent

import "github.com/loadout-dev/loadout/internal/approval"

// Types that a program needs to answer the approval requests of an agent.
type (
	// ApprovalQueue stores the approval requests of conversations until they
	// are answered.
	ApprovalQueue = approval.Queue
	// ApprovalRequest is a request in an [ApprovalQueue].
	ApprovalRequest = approval.Request
	// ApprovalAnswer is the answer to an approval request.
	ApprovalAnswer = approval.Answer
)

// NewApprovalQueue returns a queue that stores its requests in files in dir, so
// that they survive a restart. If dir is "", it stores them in memory.
func NewApprovalQueue(dir string) *ApprovalQueue {
	if dir == "" {
		return approval.NewQueue(&approval.MemoryStore{})
	}
	return approval.NewQueue(approval.NewFileStore(dir))
}
