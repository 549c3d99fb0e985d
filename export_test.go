package loadout

// MaxReadBytes is the maximum number of bytes of text that ReadFile returns.
const MaxReadBytes = maxReadBytes

// Errors that tests compare.
var (
	ErrNotText   = errNotText
	ErrNoServers = errNoServers
)
