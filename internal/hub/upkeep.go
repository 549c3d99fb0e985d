package hub

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
)

const (
	sweepEvery = time.Hour
	askEvery   = 6 * time.Hour // the places that skills were imported from
	upkeepTime = 10 * time.Minute
)

// follow keeps up with what other nodes change, until ctx ends.
func (h *Hub) follow(ctx context.Context) {
	var workers sync.WaitGroup
	for name, f := range map[string]func(context.Context) error{"skills": h.library.Run, "settings": h.kinds.Run, "notes": h.wakeLibrary} {
		workers.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				h.log.Error("this node no longer keeps up with others", "what", name, "error", err)
			}
		})
	}
	workers.Wait()
}

// wakeLibrary has the library look when another node changed skills.
func (h *Hub) wakeLibrary(ctx context.Context) error {
	notes := h.bus.Subscribe(libraryStream)
	defer notes.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-notes.Ready():
			notes.Take()
			h.library.Wake()
		}
	}
}

// lookAfter does, now and then, what one node at a time does for all, until ctx ends.
func (h *Hub) lookAfter(ctx context.Context) {
	var workers sync.WaitGroup
	workers.Go(func() { h.nowAndThen(ctx, "sweep", sweepEvery, h.sweep) })
	workers.Go(func() { h.nowAndThen(ctx, "places", askEvery, h.askPlaces) })
	workers.Wait()
}

// nowAndThen does a work of all nodes, by whichever of them is first. Its lease lasts until
// it is to be done again, so that a node that starts does not do it once more; where it
// failed, whoever looks next tries again.
func (h *Hub) nowAndThen(ctx context.Context, work string, every time.Duration, f func(context.Context) error) {
	tick := time.NewTicker(every / 6)
	defer tick.Stop()
	for {
		err := h.alone(ctx, work, every, f)
		if err != nil && ctx.Err() == nil {
			h.log.Error("upkeep failed", "work", work, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// alone does a work unless another node did it in the time since it was due.
func (h *Hub) alone(ctx context.Context, work string, every time.Duration, f func(context.Context) error) error {
	lease, err := h.db.Leases.Take(ctx, "upkeep/"+work, h.node, every-every/10)
	if errors.Is(err, store.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	bounded, stop := context.WithTimeout(ctx, upkeepTime)
	defer stop()
	if err = f(bounded); err != nil {
		err = errors.Join(err, h.db.Leases.Release(context.WithoutCancel(ctx), lease)) // so that another node tries
	}
	return err
}

func (h *Hub) sweep(ctx context.Context) error {
	swept, err := h.library.Sweep(ctx)
	if err == nil {
		h.log.Debug("files that no skill names were removed", "swept", swept)
	}
	_, pruned := h.db.Definitions.Prune(ctx, time.Now().AddDate(0, 0, -1))
	return errors.Join(err, pruned, h.signIns.Prune(ctx))
}

func (h *Hub) askPlaces(ctx context.Context) error {
	asked, err := h.library.AskPlaces(ctx)
	if err != nil {
		return err
	}
	for place, why := range asked.Failed {
		h.log.Warn("a place that skills are from could not be asked", "place", place, "error", why)
	}
	return nil
}
