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
	Changed        int64 // in nanoseconds; cannot be set without the right to set the clock
}

// timeResolution is the time after a change during which another change might leave
// the file's times the same. The kernel stores these times with the resolution of a
// clock tick or, on some file systems, of one or two seconds.
const timeResolution = 3 * time.Second

// DetectsChangesSince reports whether any change of the file since the given time
// alters the ID. It does not if the file changed shortly before.
func (id ID) DetectsChangesSince(at time.Time) bool {
	return at.Sub(time.Unix(0, id.Changed)) > timeResolution
}
