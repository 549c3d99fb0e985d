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

// settling is the time after a change during which another change might leave the
// file's times the same. The kernel stores these times with the resolution of a clock
// tick or, on some file systems, of one or two seconds.
const settling = 3 * time.Second

// IsSettled reports whether, at the given time, the last change of the file was long
// enough ago that any later change alters the ID.
func (id ID) IsSettled(at time.Time) bool { return at.Sub(time.Unix(0, id.Changed)) > settling }
