package session

import "runtime"

// WaitForCallers returns when as many callers as n wait for the load of ref.
func WaitForCallers(s *Session, ref string, n int) {
	for {
		s.mu.Lock()
		f := s.flights[flightKey{ref: ref}]
		ok := f != nil && f.waiting >= n
		s.mu.Unlock()
		if ok {
			return
		}
		runtime.Gosched()
	}
}
