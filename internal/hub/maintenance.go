package hub

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	sweepEvery         = time.Hour
	maintenanceTimeout = 10 * time.Minute
)

// follow applies changes made by other nodes until ctx is done.
func (h *Hub) follow(ctx context.Context) {
	var workers sync.WaitGroup
	for _, m := range h.mirrors {
		workers.Go(func() { _ = m.Run(ctx) }) // returns nil after ctx is done
	}
	for name, f := range map[string]func(context.Context) error{"skills": h.library.Run, "settings": h.kinds.Run, "notes": h.wakeLibrary} {
		workers.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				h.log.Error("couldn't follow changes of other nodes", "what", name, "error", err)
			}
		})
	}
	workers.Wait()
}

// wakeLibrary notifies the library when another node has changed skills.
func (h *Hub) wakeLibrary(ctx context.Context) error {
	notes := h.bus.Subscribe(libraryStream)
	defer notes.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-notes.Ready():
			notes.Drain()
			h.library.TriggerRefresh()
		}
	}
}

// maintain runs the periodic jobs of the hub until ctx is done. Only one node at a
// time runs a job.
func (h *Hub) maintain(ctx context.Context) {
	var workers sync.WaitGroup
	workers.Go(func() { h.runPeriodically(ctx, "sweep", sweepEvery, h.sweep) })
	workers.Go(func() { h.runPeriodically(ctx, "source-checks", library.SourceCheckInterval, h.checkSources) })
	workers.Go(func() { h.runPeriodically(ctx, "search", sweepEvery, h.indexConversations) })
	workers.Wait()
}

// runPeriodically runs a job on one of the nodes. The job's lease lasts until the
// job is due again, so that starting another node does not repeat it. After a
// failure, the next node tries again.
func (h *Hub) runPeriodically(ctx context.Context, job string, every time.Duration, f func(context.Context) error) {
	tick := time.NewTicker(every / 6)
	defer tick.Stop()
	for {
		err := h.withLease(ctx, job, every, f)
		if err != nil && ctx.Err() == nil {
			h.log.Error("maintenance failed", "work", job, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// withLease runs a job unless another node has run it since it was due.
func (h *Hub) withLease(ctx context.Context, job string, every time.Duration, f func(context.Context) error) error {
	lease, err := h.db.Leases.Acquire(ctx, "upkeep/"+job, h.node, every-every/10)
	if errors.Is(err, store.ErrLeaseHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	bounded, stop := context.WithTimeout(ctx, maintenanceTimeout)
	defer stop()
	if err = f(bounded); err != nil {
		err = errors.Join(err, h.db.Leases.Release(context.WithoutCancel(ctx), lease)) // so that another node can try again
	}
	return err
}

func (h *Hub) sweep(ctx context.Context) error {
	swept, err := h.library.Sweep(ctx)
	if err == nil {
		h.log.Debug("deleted unreferenced files", "swept", swept)
	}
	_, pruned := h.db.ToolDefinitions.Prune(ctx, time.Now().AddDate(0, 0, -1))
	_, secrets := h.db.Secrets.Prune(ctx)
	_, shares := h.db.Shares.Prune(ctx)
	trials := h.chat.PruneTrials(ctx)
	invitations := h.directory.Invitations.Prune(ctx)
	return errors.Join(err, pruned, secrets, shares, trials, invitations, h.signIns.Prune(ctx))
}

// indexConversations indexes the conversations of older programs for searches. If it
// is interrupted, the next run continues.
func (h *Hub) indexConversations(ctx context.Context) error {
	for last := ""; ; {
		var err error
		if last, err = h.chat.IndexOlder(ctx, last); err != nil || last == "" {
			return err
		}
	}
}

func (h *Hub) checkSources(ctx context.Context) error {
	asked, err := h.library.CheckSources(ctx)
	if err != nil {
		return err
	}
	for place, why := range asked.Failed {
		h.log.Warn("couldn't check the source of imported skills", "source", place, "error", why)
	}
	return nil
}
