// Package pathwatch reports whether paths may have changed. It needs one system call
// instead of one for each path.
//
// The kernel queues an event inside the system call that changes a file.
// [Watch.Changed] reads the queue itself, without waiting, and so sees each
// change that was completed before it was called. A watch covers everything on
// which the meaning of its paths depends: missing files and directories,
// directories that are renamed, and symlinks. It does not see writes through a
// memory mapping, mounts, or changes on other machines. File systems that
// several machines can change are not supported.
package pathwatch

import "errors"

// ErrUnsupported is returned if the paths cannot be watched. Stat them instead.
var ErrUnsupported = errors.New("paths cannot be watched")
