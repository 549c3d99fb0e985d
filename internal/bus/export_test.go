package bus

// For tests.
var (
	FormatNote = formatNote
	ParseNote  = parseNote
)

// MaxWaiting bounds what waits to be sent.
const MaxWaiting = maxWaiting

// Waiting is how many notes wait to be sent.
func (r *Redis) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}
