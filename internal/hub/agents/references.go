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

// references looks at what a document names, and returns it as it is kept. What keeps
// the document out is a finding; the error is about the database.
func (a *application) references(ctx context.Context, i int, old store.Kind) ([]store.Reference, error) {
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
			kept.ToNamespace, err = a.skillReference(ctx, i, ref, bound)
		} else {
			kept.ToNamespace, err = a.kindReference(ctx, i, ref)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, kept)
	}
	return out, nil
}

// kindReference looks at a name of another kind and returns the namespace that was
// written. It has to be there, or to come with these documents.
func (a *application) kindReference(ctx context.Context, i int, ref reference) (store.Namespace, error) {
	in, err := a.where(ctx, a.homes[i], ref.in)
	if ignoreMissing(err) != nil {
		return "", err
	}
	var written store.Namespace
	if ref.in != "" && ref.in != "default" && err == nil {
		written = in[0]
	}
	if err == nil && slices.ContainsFunc(in, func(n store.Namespace) bool { _, comes := a.first[identity{ref.kind, n, ref.name}]; return comes }) {
		return written, nil
	}
	if err == nil && ref.kind == ServerKind && a.r.operated(ref.name) {
		return written, nil
	}
	if err == nil {
		_, err = a.find(ctx, account.KindRead, a.homes[i], ref.kind, Ref{ref.name, ref.in})
	}
	if errors.Is(err, store.ErrNotFound) {
		a.refuse(i, "ref-missing", fmt.Sprintf("%s: there is no %s %s that it may name", ref.slot, ref.kind, quote(Ref{ref.name, ref.in}.String())), "apply it first, or with this document; what is a group's or public names nothing that is one person's")
		return written, nil
	}
	return written, err
}

// skillReference looks at a name of a skill. One that is named precisely has to be
// there; a name alone is looked for when it is used.
func (a *application) skillReference(ctx context.Context, i int, ref reference, bound func(id string) bool) (store.Namespace, error) {
	var written store.Namespace
	if ref.ref.Public {
		written = store.Public
	} else if ref.ref.Namespace != "" {
		in, err := a.namespace(ctx, ref.ref.Namespace)
		if ignoreMissing(err) != nil {
			return "", err
		}
		written = in
	}
	if slices.ContainsFunc(a.visible(), func(n store.Namespace) bool { _, comes := a.first[identity{SkillKind, n, ref.name}]; return comes }) && ref.ref.ID == "" {
		return written, nil
	}
	_, err := a.findSkill(ctx, account.SkillBind, a.homes[i], ref.name, ref.ref, bound)
	switch {
	case errors.Is(err, store.ErrConflict):
		a.refuse(i, "skill-ref", err.Error(), "write the name and the id of one skill")
		return written, nil
	case !errors.Is(err, store.ErrNotFound):
		return written, err
	case a.r.comes(ref.name, ref.ref):
	case ref.ref.ID != "" || ref.ref.Digest != "" || ref.ref.Namespace != "" || ref.ref.Public:
		a.refuse(i, "skill-ref", "there is no skill "+quote(ref.name)+" as skill_refs says that you may bind", "look it up again, or leave it to the name")
	default:
		a.note(i, skill.Warning, "skill-missing", "there is no skill "+quote(ref.name)+" yet that you may bind; it is looked for when it is used", "upload it")
	}
	return written, nil
}

// guard refuses addresses that only this machine, or its network, has. What a name
// leads to is looked at when it is dialled.
func (a *application) guard(i int) {
	for _, u := range addresses(a.docs[i]) {
		if why := a.r.private(u); why != "" {
			a.refuse(i, "address-private", "it names an address that is not public ("+why+")", "have the operator of the hub allow it, or write another one")
			return
		}
	}
}

// addresses are the URLs in a document.
func addresses(d *Document) []string {
	var configs []*upstream.Config
	switch s := d.Spec.(type) {
	case *Model:
		return []string{s.BaseURL}
	case *MCPServer:
		if c, err := s.read(d.Name); err == nil {
			configs = []*upstream.Config{c}
		}
	default:
		if have := selected(s); have != nil {
			configs, _, _ = have.servers() // that it can be read was seen before
		}
	}
	var out []string
	for _, c := range configs {
		out = append(out, c.URLs...)
	}
	return out
}

// private says why the host of a URL, where that is written out, may not be named.
func (r *Registry) private(raw string) string {
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

// operated reports whether the operator's own configuration has a server.
func (r *Registry) operated(name string) bool {
	return slices.ContainsFunc(r.opts.Servers, func(c *upstream.Config) bool { return c.Name == name })
}
