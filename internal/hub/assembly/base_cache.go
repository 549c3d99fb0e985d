package assembly

import (
	"context"
	"errors"
	"time"
)

// acquireBase returns the base for a plan and increments its number of users. If
// several callers need a new base, the first one opens it and the others wait.
func (k *Assembler) acquireBase(ctx context.Context, p *plan) (*base, error) {
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	b, first, err := k.reserveBase(key, p)
	if err != nil {
		return nil, err
	}
	if first {
		b.err = b.open(context.WithoutCancel(ctx)) // others wait for b.ready
		close(b.ready)
	}
	select {
	case <-b.ready:
		err = b.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil && !first {
		err = b.refresh(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, k.releaseBase(b))
	}
	return b, nil
}

// reserveBase returns the base with the given key and increments its number of
// users. If the base is new, first is true and the caller must open it.
func (k *Assembler) reserveBase(key string, p *plan) (b *base, first bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, false, errClosed
	}
	b = k.bases[key]
	if b == nil {
		b, first = k.newBase(key, p), true
		k.bases[key] = b
	}
	b.users++
	if b.idle != nil {
		b.idle.Stop()
	}
	return b, first, nil
}

// releaseBase decrements the number of users of a base. An unused base remains
// open for a while.
func (k *Assembler) releaseBase(b *base) error {
	over := k.removeUser(b)
	if over == nil {
		return nil
	}
	return k.endBase(over)
}

// removeUser decrements the number of users of a base. It returns a base to
// close, or nil if there is none.
func (k *Assembler) removeUser(b *base) *base {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.users--; b.users > 0 {
		return nil
	}
	if k.closed || k.o.IdleTimeout < 0 || b.hasFailed() {
		return b
	}
	b.since = time.Now()
	b.idle = time.AfterFunc(k.o.IdleTimeout, func() {
		if err := k.endBase(b); err != nil {
			k.o.Logger.Warn("cannot close unused base", "error", err)
		}
	})
	return k.oldestIdle()
}

// hasFailed reports whether the base could not be opened.
func (b *base) hasFailed() bool {
	select {
	case <-b.ready:
		return b.err != nil
	default:
		return false
	}
}

// oldestIdle returns the base that has been unused for the longest time if too
// many bases are unused, and otherwise nil. The caller must hold k.mu.
func (k *Assembler) oldestIdle() *base {
	var oldest *base
	idle := 0
	for _, b := range k.bases {
		if b.users > 0 {
			continue
		}
		if idle++; oldest == nil || b.since.Before(oldest.since) {
			oldest = b
		}
	}
	if idle <= maxIdle {
		return nil
	}
	return oldest
}

// endBase closes a base unless it is in use.
func (k *Assembler) endBase(b *base) error {
	k.mu.Lock()
	if b.users > 0 || k.bases[b.key] != b {
		k.mu.Unlock()
		return nil
	}
	delete(k.bases, b.key)
	if b.idle != nil {
		b.idle.Stop()
	}
	k.ending.Add(1)
	k.mu.Unlock()
	defer k.ending.Done()
	<-b.ready
	return b.close()
}

// findBase returns the base whose connections have the given identity, or nil if
// it is closed.
func (k *Assembler) findBase(identity string) *base {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bases[identity]
}
