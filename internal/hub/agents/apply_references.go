package agents

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// resolveReferences looks at what a document names, and returns it as it is kept. What keeps
// the document out is a finding; the error is about the database.
func (a *application) resolveReferences(ctx context.Context, i int, old store.Kind) ([]store.Reference, error) {
	named := map[string]bool{}
	bound := func(id string) bool { return named[id] }
	if old.ID != "" {
		before, err := a.Refs.ListFrom(ctx, old.Kind, old.ID)
		if err != nil {
			return nil, err
		}
		for _, r := range before {
			named[r.ToID] = true
		}
	}
	var out []store.Reference
	for _, ref := range a.docs[i].Spec.references() {
		kept := store.Reference{Slot: ref.slot, ToKind: ref.kind, ToName: ref.name, ToID: ref.ref.ID, Digest: ref.ref.Digest}
		var err error
		if ref.kind == SkillKind {
			kept.ToNamespace, err = a.resolveSkillReference(ctx, i, ref, bound)
		} else {
			kept.ToNamespace, err = a.resolveKindReference(ctx, i, ref)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, kept)
	}
	return out, nil
}

// resolveKindReference looks at a name of another kind and returns the namespace that was
// written. It has to be there, or to come with these documents.
func (a *application) resolveKindReference(ctx context.Context, i int, ref reference) (store.Namespace, error) {
	in, err := a.refNamespaces(ctx, a.namespaces[i], ref.in)
	if ignoreNotFound(err) != nil {
		return "", err
	}
	var written store.Namespace
	if ref.in != "" && ref.in != "default" && err == nil {
		written = in[0]
	}
	if err == nil && slices.ContainsFunc(in, func(n store.Namespace) bool { _, comes := a.declared[identity{ref.kind, n, ref.name}]; return comes }) {
		return written, nil
	}
	if err == nil && ref.kind == ServerKind && a.r.isOperatorServer(ref.name) {
		return written, nil
	}
	if err == nil {
		_, err = a.findKind(ctx, account.KindRead, a.namespaces[i], ref.kind, Ref{ref.name, ref.in})
	}
	if errors.Is(err, store.ErrNotFound) {
		a.addRefusal(i, "ref-missing", fmt.Sprintf("%s: there is no %s %s that it may name", ref.slot, ref.kind, quote(Ref{ref.name, ref.in}.String())), "apply it first, or with this document; what is a group's or public names nothing that is one person's")
		return written, nil
	}
	return written, err
}

// resolveSkillReference looks at a name of a skill. One that is named precisely has to be
// there; a name alone is looked for when it is used.
func (a *application) resolveSkillReference(ctx context.Context, i int, ref reference, bound func(id string) bool) (store.Namespace, error) {
	var written store.Namespace
	if ref.ref.Public {
		written = store.Public
	} else if ref.ref.Namespace != "" {
		in, err := a.resolveNamespace(ctx, ref.ref.Namespace)
		if ignoreNotFound(err) != nil {
			return "", err
		}
		written = in
	}
	if slices.ContainsFunc(a.visibleNamespaces(), func(n store.Namespace) bool { _, comes := a.declared[identity{SkillKind, n, ref.name}]; return comes }) && ref.ref.ID == "" {
		return written, nil
	}
	_, err := a.findSkill(ctx, account.SkillBind, a.namespaces[i], ref.name, ref.ref, bound)
	switch {
	case errors.Is(err, store.ErrConflict):
		a.addRefusal(i, "skill-ref", err.Error(), "write the name and the id of one skill")
		return written, nil
	case !errors.Is(err, store.ErrNotFound):
		return written, err
	case a.r.isBundled(ref.name, ref.ref):
	case ref.ref.ID != "" || ref.ref.Digest != "" || ref.ref.Namespace != "" || ref.ref.Public:
		a.addRefusal(i, "skill-ref", "there is no skill "+quote(ref.name)+" as skill_refs says that you may bind", "look it up again, or leave it to the name")
	default:
		a.addFinding(i, skill.Warning, "skill-missing", "there is no skill "+quote(ref.name)+" yet that you may bind; it is looked for when it is used", "upload it")
	}
	return written, nil
}

// checkAddresses refuses addresses that only this machine, or its network, has. What a name
// leads to is looked at when it is dialled.
func (a *application) checkAddresses(i int) {
	for _, u := range documentURLs(a.docs[i]) {
		if why := a.r.nonPublicReason(u); why != "" {
			a.addRefusal(i, "address-private", "it names an address that is not public ("+why+")", "have the operator of the hub allow it, or write another one")
			return
		}
	}
}

// documentURLs are the URLs in a document.
func documentURLs(d *Document) []string {
	var configs []*upstream.Config
	switch s := d.Spec.(type) {
	case *Model:
		return []string{s.BaseURL}
	case *MCPServer:
		if c, err := s.parseConfig(d.Name); err == nil {
			configs = []*upstream.Config{c}
		}
	default:
		if have := selectionOf(s); have != nil {
			configs, _, _ = have.parseServers() // that it can be read was seen before
		}
	}
	var out []string
	for _, c := range configs {
		out = append(out, c.URLs...)
	}
	return out
}

// nonPublicReason says why the host of a URL, where that is written out, may not be named.
func (r *Registry) nonPublicReason(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "" // which is dialled by nobody, or has a variable
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	ip, err := netip.ParseAddr(host)
	if err != nil && (strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost")) {
		ip, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	ip = ip.Unmap()
	if err != nil || slices.ContainsFunc(r.opts.Private, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return ""
	}
	return address.NonPublicReason(ip)
}

// isOperatorServer reports whether the operator's own configuration has a server.
func (r *Registry) isOperatorServer(name string) bool {
	return slices.ContainsFunc(r.opts.Servers, func(c *upstream.Config) bool { return c.Name == name })
}
