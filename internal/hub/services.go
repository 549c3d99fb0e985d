package hub

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/credential"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/llm"
)

// libraryStream is the bus stream that announces skill changes.
const libraryStream = "hub/library"

const (
	defaultRuns = 4   // programs running at the same time on a node
	maxWaiting  = 200 // programs or drafts waiting for a slot
)

// openServices opens the services for skills, agents and conversations. If it
// fails, Close closes those already open.
func (h *Hub) openServices(ctx context.Context) (err error) {
	o := h.opts
	node, err := createNodeDirs(o.Data)
	if err != nil {
		return err
	}
	h.unlock = node.unlock
	identity, predecessor, unsaved, err := claimIdentity(o.Data, node.lock)
	if err != nil {
		return err
	}
	if unsaved != nil {
		h.log.Warn("couldn't save the identity of this node; after a crash, its conversations wait for its leases to expire", "error", unsaved)
	}
	h.identity = identity
	h.kinds = agents.New(h.db, &agents.Options{Cipher: h.cipher, Servers: o.Servers, Bundled: bundled.Names(), Private: o.Private, Single: h.Single(), Bus: h.bus, Logger: h.log, ApplySkill: h.applySkill, WithheldReason: h.withheldReason, Quotas: h.directory.Quotas.Quotas})
	h.library, err = library.New(h.db, &library.Options{
		CacheDir: filepath.Join(o.Data, "files"), TempDir: node.temp,
		Notify:     func() { h.bus.Publish(libraryStream, 0) },
		Unbind:     h.kinds.UnbindSkill,
		Quotas:     h.directory.Quotas.Quotas,
		Credential: credential.Store{DB: h.db, Cipher: h.cipher}.Get,
		Private:    func(host string) bool { return isPrivateHost(o.Private, host) },
		ImportFrom: o.ImportFrom,
	})
	if err != nil {
		return err
	}
	if err = h.openMirrors(ctx); err != nil {
		return err
	}
	h.runs = queue.New(o.Runs, maxWaiting)
	h.signIns = serverauth.New(serverauth.Options{DB: h.db, Kinds: h.kinds, Cipher: h.cipher, Private: o.Private, Node: h.node, Page: o.Public, Logger: h.log})
	h.assemblies = assembly.New(assembly.Options{DB: h.db, Library: h.library, Agents: h.kinds, Single: h.Single(), Model: h.model, Images: o.Images, Window: o.Window, Sandbox: o.Sandbox, Bounds: o.Bounds, Packages: o.Packages, Getenv: o.Getenv, RunQueue: h.runs,
		Executable: o.Command, Dir: node.setups, PrivateNetworks: o.Private, SignIns: h.signIns, StopTurn: h.stopTurn, OnDecision: metrics.RecordDecision, Version: o.Version, Logger: h.log})
	h.credentialWatch = auth.NewCredentialWatch(h.directory)
	h.chat = chat.New(h.db, chat.Options{Setup: h.assemblies.ChatSetup, Principal: h.gate.PrincipalOf, Token: h.credentialWatch.CurrentScopes, Bus: h.bus, Dir: node.chats, Node: identity.Process, Predecessor: predecessor, Trace: h.followTurn, Updates: o.Updates, Quotas: h.directory.Quotas.Quotas, Sharing: h.sharing(), Titles: h.titles(), Logger: h.log})
	looks, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stopCredentialChecks = stop
	h.credentialChecks.Go(func() { h.credentialWatch.Run(looks, h.log) })
	return nil
}

// Values of [Options.Sharing].
const (
	SharingOff     = "off"
	SharingMembers = "members" // signed-in users
	SharingLinks   = "links"   // also anyone with the link, if the owner chooses that
)

// sharing configures shares of conversations. On a hub of one user, there is nobody to
// share with.
func (h *Hub) sharing() *chat.Sharing {
	if h.Single() {
		return nil
	}
	return &chat.Sharing{Off: h.opts.Sharing == SharingOff, Links: h.opts.Sharing == SharingLinks, MaxDays: h.opts.ShareDays,
		Secrets: func(ctx context.Context, p account.Principal, conversation string, skills []string) ([]chat.StoredSecret, error) {
			found, err := h.kinds.Secrets().ToRedact(ctx, p, conversation, skills)
			out := make([]chat.StoredSecret, len(found))
			for i, s := range found {
				out[i] = chat.StoredSecret{Owner: string(s.Owner), Name: s.Name, Value: s.Value, Own: s.Own, Skills: s.Skills, Servers: s.Servers}
			}
			return out, err
		}}
}

// titles configures the titles of conversations. The demo model is not asked for
// titles.
func (h *Hub) titles() *chat.Titles {
	if !h.opts.ModelTitles {
		return &chat.Titles{}
	}
	return &chat.Titles{AskModel: func(model string) bool { return !vendors.IsDemo(model) }}
}

// stopTurn cancels a conversation's turn on this node.
func (h *Hub) stopTurn(conversation, reason string) {
	h.chat.StopTurns(func(c chat.Conversation) bool { return c.ID == conversation }, reason)
}

// demoModel returns the built-in demo, for hubs without a configured model.
func demoModel(choice *agents.ModelChoice, _ string) (llm.Model, error) {
	if choice != nil && choice.Vendor != "demo" {
		return nil, fmt.Errorf("model %s: unsupported vendor %s", choice.Name, choice.Vendor)
	}
	return demo.New(nil), nil
}

// closeServices closes what openServices opened. It disconnects clients and then
// gives running turns [Options.Drain] to finish.
func (h *Hub) closeServices() error {
	var errs []error
	h.endStreams()
	if h.mcp != nil {
		h.mcp.Close()
	}
	if h.stopCredentialChecks != nil {
		h.stopCredentialChecks()
		h.credentialChecks.Wait()
	}
	if h.chat != nil {
		ctx, stop := context.WithTimeout(context.Background(), h.opts.Drain)
		defer stop()
		errs = append(errs, h.chat.Close(ctx))
	}
	if h.assemblies != nil {
		errs = append(errs, h.assemblies.Close())
	}
	if h.library != nil {
		errs = append(errs, h.library.Close())
	}
	if h.unlock != nil {
		errs = append(errs, h.unlock())
	}
	return errors.Join(errs...)
}

// dirs holds the directories of a node, which only this process uses.
type dirs struct {
	temp, chats, setups string
	unlock              func() error
	lock                string // identifies the lock file; see lockDir
}

// createNodeDirs creates a node's directories and removes their previous
// content.
func createNodeDirs(data string) (dirs, error) {
	base := filepath.Join(data, "node")
	unlock, lock, err := lockDir(data)
	if err != nil {
		return dirs{}, err
	}
	if err := os.RemoveAll(base); err != nil { // may be left by a killed process
		return dirs{}, errors.Join(fmt.Errorf("clear node directory: %w", err), unlock())
	}
	d := dirs{temp: filepath.Join(base, "temp"), chats: filepath.Join(base, "talks"), setups: filepath.Join(base, "kits"), unlock: unlock, lock: lock}
	for _, dir := range []string{d.temp, d.chats, d.setups} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return dirs{}, errors.Join(err, unlock())
		}
	}
	return d, nil
}

// isPrivateHost reports whether a host is an IP address in one of the allowed
// networks.
func isPrivateHost(allowed []netip.Prefix, host string) bool {
	at, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, p := range allowed {
		if p.Contains(at.Unmap()) {
			return true
		}
	}
	return false
}

// endStreams ends all long-lived connections and waits for them to close. Each
// connection has its own timeout.
func (h *Hub) endStreams() {
	h.drain.Do(func() { close(h.draining) })
	if h.sessions != nil {
		h.sessions.Close()
	}
}

// followTurn starts a turn's span and returns a trace that counts the turn's events.
func (h *Hub) followTurn(ctx context.Context, c chat.Conversation, kind chat.InputKind) (context.Context, chat.Trace) {
	ctx, span := h.opts.Tracer.StartTurn(ctx, c.ID, c.Agent)
	return ctx, h.metrics.ObserveTurn(span, kind)
}

// model returns a model from [Options.Model], instrumented with metrics and traces.
func (h *Hub) model(choice *agents.ModelChoice, key string) (llm.Model, error) {
	m, err := h.opts.Model(choice, key)
	if err != nil {
		return nil, err
	}
	return h.opts.Tracer.TraceModel(h.metrics.CountModel(m)), nil
}
