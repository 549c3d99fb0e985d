package hub

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/kit"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/hub/signin"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/demo"
)

// Streams of the bus besides those of packages kinds and chat.
const libraryStream = "hub/library"

const (
	defaultRuns = 4   // pieces of code at once on a node
	maxRuns     = 200 // that wait for a place
)

// openParts opens what keeps skills, kinds and conversations. Where it fails, Close
// closes what is open.
func (h *Hub) openParts(ctx context.Context) (err error) {
	o := h.opts
	node, err := nodeDir(o.Data)
	if err != nil {
		return err
	}
	h.unlock = node.unlock
	h.kinds = kinds.New(h.db, &kinds.Options{Sealer: h.sealer, Servers: o.Servers, Bundled: bundled.Names(), Private: o.Private, Bus: h.bus, Logger: h.log, ApplySkill: h.applySkill})
	h.library, err = library.New(h.db, &library.Options{
		CacheDir: filepath.Join(o.Data, "files"), TempDir: node.temp,
		Tell:       func() { h.bus.Publish(libraryStream, 0) },
		Unbind:     h.kinds.Unbind,
		Credential: h.credential,
		Private:    func(host string) bool { return privateHost(o.Private, host) },
	})
	if err != nil {
		return err
	}
	h.runs, h.drafts = queue.New(o.Runs, maxRuns), queue.New(draftsAtOnce, maxRuns)
	h.signIns = signin.New(signin.Options{DB: h.db, Kinds: h.kinds, Sealer: h.sealer, Private: o.Private, Node: h.node, Page: o.Public, Logger: h.log})
	h.kits = kit.New(kit.Options{DB: h.db, Library: h.library, Kinds: h.kinds, Model: h.model, Sandbox: o.Sandbox, Bounds: o.Bounds, Packages: o.Packages, Getenv: o.Getenv, Runs: h.runs,
		Command: o.Command, Dir: node.kits, Private: o.Private, SignIns: h.signIns, Stop: h.stopTurn, Decided: noteDecision, Version: o.Version, Logger: h.log})
	h.chat = chat.New(h.db, chat.Options{Setup: h.kits.Setup, Principal: h.principal, Token: h.tokenNow, Bus: h.bus, Dir: node.talks, Trace: h.followTurn, Logger: h.log})
	h.inUse = &heldTokens{good: h.people.Tokens.Good, held: map[string]map[*heldToken]bool{}}
	looks, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stopLooking = stop
	h.looking.Go(func() { h.lookAtTokens(looks) })
	return nil
}

// stopTurn ends what a conversation is busy with on this node.
func (h *Hub) stopTurn(conversation, reason string) {
	h.chat.Stop(func(c chat.Conversation) bool { return c.ID == conversation }, reason)
}

// demonstration is the model of a hub that was given none.
func demonstration(choice *kinds.ModelChoice, _ string) (llm.Model, error) {
	if choice != nil && choice.Vendor != "demo" {
		return nil, fmt.Errorf("the model %s: this program has none of the vendor %s", choice.Name, choice.Vendor)
	}
	return demo.New(nil), nil
}

func (h *Hub) principal(ctx context.Context, user account.UserID) (account.Principal, error) {
	if h.Single() {
		return h.people.SignIns.Single(ctx)
	}
	return h.people.SignIns.Principal(ctx, user)
}

// closeParts closes what openParts opened. Turns that run have [Options.Drain] from when
// clients are gone.
func (h *Hub) closeParts() error {
	var errs []error
	h.endStreams()
	if h.endpoints != nil {
		h.endpoints.close()
	}
	if h.stopLooking != nil {
		h.stopLooking()
		h.looking.Wait()
	}
	if h.chat != nil {
		ctx, stop := context.WithTimeout(context.Background(), h.opts.Drain)
		defer stop()
		errs = append(errs, h.chat.Close(ctx))
	}
	if h.kits != nil {
		errs = append(errs, h.kits.Close())
	}
	if h.library != nil {
		errs = append(errs, h.library.Close())
	}
	if h.unlock != nil {
		errs = append(errs, h.unlock())
	}
	return errors.Join(errs...)
}

// dirs are the directories of a node. What is in them is of one process alone.
type dirs struct {
	temp, talks, kits string
	unlock            func() error
}

// nodeDir makes the directories of a node, empty.
func nodeDir(data string) (dirs, error) {
	base := filepath.Join(data, "node")
	unlock, err := lockDir(data)
	if err != nil {
		return dirs{}, err
	}
	if err := os.RemoveAll(base); err != nil { // of a process that was killed
		return dirs{}, errors.Join(fmt.Errorf("empty the directory of the node: %w", err), unlock())
	}
	d := dirs{temp: filepath.Join(base, "temp"), talks: filepath.Join(base, "talks"), kits: filepath.Join(base, "kits"), unlock: unlock}
	for _, dir := range []string{d.temp, d.talks, d.kits} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return dirs{}, errors.Join(err, unlock())
		}
	}
	return d, nil
}

// privateHost reports whether a host is an address among those that are let through
// though they are not public.
func privateHost(among []netip.Prefix, host string) bool {
	at, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, p := range among {
		if p.Contains(at.Unmap()) {
			return true
		}
	}
	return false
}
