package catalog

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sharedBudget limits the total work of scanning all sources in a project during a
// reload. Each directory from the working directory up to the repository root adds
// sources, so a cloned repository determines how many there are. A sharedBudget is
// safe for concurrent use.
type sharedBudget struct {
	limits   DirOptions   // only MaxDirs, MaxEntries and MaxTime are used
	sources  int          // number of sources that share the budget
	begin    sync.Once    // sets deadline
	deadline time.Time    // see end
	dirs     atomic.Int64 // directories searched
	names    atomic.Int64 // names read
}

// add registers a source that shares the budget. Each limit of the budget is
// the highest limit among these sources. Call add before the first scan.
func (b *sharedBudget) add(d *dirSource) {
	b.sources++
	b.limits.MaxDirs = max(b.limits.MaxDirs, d.opts.MaxDirs)
	b.limits.MaxEntries = max(b.limits.MaxEntries, d.opts.MaxEntries)
	b.limits.MaxTime = max(b.limits.MaxTime, d.opts.MaxTime)
}

// end returns the deadline for scans. The time limit starts with the first
// call, so that projects read earlier do not use it up.
func (b *sharedBudget) end() time.Time {
	b.begin.Do(func() { b.deadline = time.Now().Add(b.limits.MaxTime) })
	return b.deadline
}

// dirsLeft reports whether the scan may search another directory.
func (s *scan) dirsLeft() bool {
	return s.dirs < s.opts.MaxDirs && (s.shared == nil || s.shared.dirs.Load() < int64(s.shared.limits.MaxDirs))
}

// countDir counts a searched directory.
func (s *scan) countDir() {
	s.dirs++
	if s.shared != nil {
		s.shared.dirs.Add(1)
	}
}

// namesLeft returns the number of names that the scan may still read.
func (s *scan) namesLeft() int {
	left := s.opts.MaxEntries - s.names
	if s.shared != nil {
		left = min(left, s.shared.limits.MaxEntries-int(s.shared.names.Load()))
	}
	return max(0, left)
}

// countNames counts names that were read from a directory.
func (s *scan) countNames(n int) {
	s.names += n
	if s.shared != nil {
		s.shared.names.Add(int64(n))
	}
}

// callOnDir calls s.onDir, if it is set, with the path of the directory name in
// dir, or of dir if name is empty. It is called after a directory has been inspected
// and before its files are read.
func (s *scan) callOnDir(dir, name string) {
	if s.onDir != nil {
		s.onDir(strings.TrimSuffix(dir+"/"+name, "/"))
	}
}
