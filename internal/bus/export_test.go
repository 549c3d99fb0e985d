package bus

// For tests.
var (
	FormatNotification = formatNotification
	ParseNotification  = parseNotification
)

// MaxPending bounds what waits to be sent.
const MaxPending = maxPending

// Waiting is how many notes wait to be sent.
func (r *Redis) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}
