//go:build unix

// Package limittest makes system calls of a test fail as they do on a full disk
// or in a process with too many open files. It lowers limits of the whole
// process, so tests that use it must not run in parallel. It never runs outside
// tests. Start reading at [EachOpen], [CancelAtEach] and [FullDisk].
package limittest

import (
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// Files calls f while the process can open at most n more files and
// directories at the same time.
func Files(t testing.TB, n int, f func()) {
	t.Helper()
	probe, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	next := int(probe.Fd()) // the system uses the lowest free number
	probe.Close()
	limit(t, unix.RLIMIT_NOFILE, uint64(next+n), f)
}

// MaxFileSize is the maximum size of a file in [FullDisk], in bytes. It is
// large enough for the log that package testing writes.
const MaxFileSize = 4 << 20

// FullDisk calls f with a limit on the file size: writes beyond the first
// [MaxFileSize] bytes of a file fail.
func FullDisk(t testing.TB, f func()) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ) // the write returns an error instead
	defer signal.Reset(unix.SIGXFSZ)
	limit(t, unix.RLIMIT_FSIZE, MaxFileSize, f)
}

func limit(t testing.TB, resource int, n uint64, f func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		t.Fatal(err)
	}
	lowered := old
	setTo(&lowered.Cur, n)
	if err := unix.Setrlimit(resource, &lowered); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(resource, &old); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// setTo sets *current to n. The type of a limit differs between systems.
func setTo[T int64 | uint64](current *T, n uint64) { *current = T(n) }

// EachOpen calls f repeatedly until it succeeds. The first time, f cannot open
// any files; each time after that, it can open one more. After each failure,
// EachOpen calls check with the error. It fails the test if f still fails with
// 63 files.
func EachOpen(t testing.TB, f func() error, check func(failed error)) {
	t.Helper()
	for n := range 64 {
		var err error
		Files(t, n, func() { err = f() })
		if err == nil {
			return
		}
		check(err)
	}
	t.Fatal("fails with 63 free files")
}
