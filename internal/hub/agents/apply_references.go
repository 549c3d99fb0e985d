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

// resolveReferences checks the references in a document and returns their
// database rows. It refuses the document if a reference is invalid, and returns
// an error only if the database fails.
func (a *documentBatch) resolveReferences(ctx context.Context, i int, old store.Kind) ([]store.Reference, error) {
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

// resolveKindReference checks that the target of a reference exists or is in the
// batch. It returns the namespace if the reference names one.
func (a *documentBatch) resolveKindReference(ctx context.Context, i int, ref reference) (store.Namespace, error) {
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
		a.addRefusal(i, "ref-missing", fmt.Sprintf("%s: %s %s not found or not permitted", ref.slot, ref.kind, quote(Ref{ref.name, ref.in}.String())), "apply it first, or together with this document; group and public documents cannot refer to a user's resources")
		return written, nil
	}
	return written, err
}

// resolveSkillReference checks a reference to a skill. A [SkillRef] must resolve;
// a plain name is resolved when it is used.
func (a *documentBatch) resolveSkillReference(ctx context.Context, i int, ref reference, bound func(id string) bool) (store.Namespace, error) {
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
	digest, comes := a.docs[i].ComingSkills[ref.name]
	comes = comes && (ref.ref.Digest == "" || ref.ref.Digest == digest) && (ref.ref.Namespace == "" && !ref.ref.Public || written == a.namespaces[i])
	comes = comes || slices.ContainsFunc(a.visibleNamespaces(), func(n store.Namespace) bool { _, ok := a.declared[identity{SkillKind, n, ref.name}]; return ok })
	if comes && ref.ref.ID == "" {
		return written, nil
	}
	_, err := a.findSkill(ctx, account.SkillBind, a.namespaces[i], ref.name, ref.ref, bound)
	switch {
	case errors.Is(err, store.ErrConflict):
		a.addRefusal(i, "skill-ref", err.Error(), "use the name and the ID of the same skill")
		return written, nil
	case !errors.Is(err, store.ErrNotFound):
		return written, err
	case a.r.isBundled(ref.name, ref.ref):
	case ref.ref.ID != "" || ref.ref.Digest != "" || ref.ref.Namespace != "" || ref.ref.Public:
		a.addRefusal(i, "skill-ref", "skill_refs: skill "+quote(ref.name)+" not found or not permitted", "correct the reference, or remove it to use the name alone")
	default:
		a.addFinding(i, skill.Warning, "skill-missing", "skill "+quote(ref.name)+" not found; it is resolved at use", "upload the skill")
	}
	return written, nil
}

// checkAddresses refuses a document that contains a non-public IP address. Host
// names are checked when connecting.
func (a *documentBatch) checkAddresses(i int) {
	if m, ok := a.docs[i].Spec.(*Model); ok && a.r.opts.Single && address.IsLoopback(m.Host()) {
		return
	}
	for _, u := range documentURLs(a.docs[i]) {
		if why := a.r.nonPublicReason(u); why != "" {
			a.addRefusal(i, "address-private", "the address is not public ("+why+")", "ask the operator of the hub to allow the address, or use another one")
			return
		}
	}
}

// documentURLs returns the URLs in a document.
func documentURLs(d *Document) []string {
	if m, ok := d.Spec.(*Model); ok {
		return []string{m.BaseURL}
	}
	var out []string
	for _, c := range d.Servers() {
		out = append(out, c.URLs...)
	}
	return out
}

// Servers returns the MCP servers that the document defines.
func (d *Document) Servers() []*upstream.Config {
	if s, ok := d.Spec.(*MCPServer); ok {
		if c, err := s.parseConfig(d.Name); err == nil {
			return []*upstream.Config{c}
		}
		return nil
	}
	if have := findSelection(d.Spec); have != nil {
		configs, _, _ := have.parseServers() // validated by Parse
		return configs
	}
	return nil
}

// nonPublicReason explains why the IP address in a URL is not allowed. It returns
// "" if the address is allowed or the URL contains a host name.
func (r *Registry) nonPublicReason(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "" // invalid, or contains a variable
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

// isOperatorServer reports whether the operator's configuration contains a server
// with the given name.
func (r *Registry) isOperatorServer(name string) bool {
	return slices.ContainsFunc(r.opts.Servers, func(c *upstream.Config) bool { return c.Name == name })
}
