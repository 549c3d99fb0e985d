package session

import "runtime"

// WaitForCallers returns when n callers wait for the load of ref.
func WaitForCallers(s *Session, ref string, n int) {
	for {
		s.mu.Lock()
		f := s.inflight[loadKey{ref: ref}]
		ok := f != nil && f.waiting >= n
		s.mu.Unlock()
		if ok {
			return
		}
		runtime.Gosched()
	}
}
