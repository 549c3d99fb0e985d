// Package fileid tells from its metadata whether a file is the one that was
// verified before, with the same content. Start with [Of].
package fileid

import "time"

// ID identifies a file and the state of its content, owner and permissions.
type ID struct {
	Device, Inode  uint64
	Size           int64
	Mode, UID, GID uint32
	Modified       int64 // in nanoseconds
	Changed        int64 // in nanoseconds; programs cannot set it
}

// settling is how long a file may change again without a change of its times,
// which the kernel stores with the resolution of a clock tick or, on some file
// systems, of a second or two.
const settling = 3 * time.Second

// IsSettled reports whether the file had not changed for a while at a time.
// Only then does each later change alter the ID.
func (id ID) IsSettled(at time.Time) bool { return at.Sub(time.Unix(0, id.Changed)) > settling }
