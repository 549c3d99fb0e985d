package catalog

import (
	"runtime"
	"sync"
	"time"
)

const (
	// statChunk is the number of subdirectories that a goroutine compares at once.
	// Directories with fewer are compared by the scan itself.
	statChunk = 128
	// maxStatWorkers is the maximum number of these goroutines.
	maxStatWorkers = 4
)

// unchanged reports for each subdirectory of d, as the last scan left it, whether
// it is a leaf in which nothing has changed. Comparing the stamps takes most of the
// time of a scan in which little has changed, so several goroutines do it. A
// subdirectory for which it reports false must be scanned. After the deadline of the
// scan, it reports false for the rest. The result is nil if there are few
// subdirectories, or if symlinks must be checked.
func (s *scan) unchanged(d *dirfd, subs []*node) []bool {
	if s.within != nil || len(subs) < 2*statChunk {
		return nil
	}
	same := make([]bool, len(subs))
	chunks := make(chan int)
	var workers sync.WaitGroup
	for range min(maxStatWorkers, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for from := range chunks {
				for i, old := range subs[from:min(from+statChunk, len(subs))] {
					same[from+i] = old.isUnchangedLeaf(d)
				}
			}
		})
	}
	for from := 0; from < len(subs) && s.ctx.Err() == nil && time.Now().Before(s.deadline); from += statChunk {
		chunks <- from
	}
	close(chunks)
	workers.Wait()
	return same
}

// isUnchangedLeaf reports whether the subdirectory of d for which n is the result of
// the last scan contains a SKILL.md and nothing else to search, and neither has
// changed.
func (n *node) isUnchangedLeaf(d *dirfd) bool {
	if n.skill == nil || len(n.subs) > 0 || n.skill.seen == 0 || n.skill.stamp.racy(n.skill.seen) {
		return false
	}
	st, links := d.statDir(n.name)
	if links < 2 || st != n.stamp || st.racy(n.seen) {
		return false
	}
	st, _, err := d.stat(n.name + "/" + n.skill.file)
	return err == nil && st == n.skill.stamp
}
