package catalog

import (
	"runtime"
	"sync"
	"time"
)

const (
	// statChunk is the number of subdirectories that a goroutine compares at once.
	// If there are fewer than two chunks, the scan itself compares them.
	statChunk = 128
	// maxStatWorkers is the maximum number of these goroutines.
	maxStatWorkers = 4
)

// unchanged reports for each subdirectory of d, as the last scan left it, whether
// it is a leaf in which nothing has changed. Comparing the stamps takes most of the
// time of a scan in which little has changed, so several goroutines do it. A
// subdirectory for which it reports false must be scanned. After the deadline of the
// scan, it reports false for the rest. The result is nil if there are few
// subdirectories, or if symlinks must be checked: see isUnchanged.
func (s *scan) unchanged(d *dirfd, subs []*node) []bool {
	if s.within != nil || len(subs) < 2*statChunk {
		return nil
	}
	same := make([]bool, len(subs))
	chunks := make(chan int)
	var workers sync.WaitGroup
	for range min(maxStatWorkers, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			var buf nameBuffer
			for from := range chunks {
				for i, old := range subs[from:min(from+statChunk, len(subs))] {
					same[from+i] = old.isUnchangedLeaf(d, &buf)
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

// isUnchanged reports whether the subdirectory subs[i] of d is a leaf in which nothing
// has changed. same is the result of unchanged.
func (s *scan) isUnchanged(d *dirfd, subs []*node, i int, same []bool) bool {
	if same != nil {
		return same[i]
	}
	return s.within == nil && subs[i].isUnchangedLeaf(d, &s.name)
}

// isUnchangedLeaf reports whether the subdirectory of d for which n is the result of
// the last scan contains a SKILL.md and nothing else to search, and neither has
// changed.
func (n *node) isUnchangedLeaf(d *dirfd, buf *nameBuffer) bool {
	if n.skill == nil || len(n.subs) > 0 || n.skill.seen == 0 || n.stamp.racy(n.seen) || n.skill.stamp.racy(n.skill.seen) {
		return false
	}
	ofDir, ofFile, ok := d.statLeaf(buf, n.name, n.skill.file)
	return ok && ofDir == n.stamp && ofFile == n.skill.stamp
}
