package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/printable"
)

// Permissions is what a grant permits, or what a skill requests. The zero value
// permits nothing.
type Permissions struct {
	Run            bool     `json:"run"`               // scripts of the skill
	Call           bool     `json:"call,omitempty"`    // a tool of an MCP server
	Network        []string `json:"network,omitempty"` // host patterns, as in [Bounds]
	Secrets        []string `json:"secrets,omitempty"` // names of secrets
	WorkspaceWrite bool     `json:"workspace_write,omitempty"`
	Unsandboxed    bool     `json:"unsandboxed,omitempty"`
	HostNetwork    bool     `json:"host_network,omitempty"` // the machine's own network, unfiltered
}

// Covers reports whether a permits everything that b permits.
func (a Permissions) Covers(b Permissions) bool { return len(a.missing(b)) == 0 }

// Intersect returns what both a and b permit.
func (a Permissions) Intersect(b Permissions) Permissions {
	return Permissions{
		Run:            a.Run && b.Run,
		Call:           a.Call && b.Call,
		Network:        intersectHosts(a.Network, b.Network),
		Secrets:        intersectNames(a.Secrets, b.Secrets),
		WorkspaceWrite: a.WorkspaceWrite && b.WorkspaceWrite,
		Unsandboxed:    a.Unsandboxed && b.Unsandboxed,
		HostNetwork:    a.HostNetwork && b.HostNetwork,
	}
}

// Bounds returns bounds that permit the hosts, secrets and workspace access of
// a, without limits on memory, time and the like. Intersect them with the
// bounds of a sandbox.
func (a Permissions) Bounds() Bounds {
	return Bounds{Network: slices.Clone(a.Network), Secrets: slices.Clone(a.Secrets), WorkspaceWrite: a.WorkspaceWrite}
}

// missing names each permission of asked that a lacks.
func (a Permissions) missing(asked Permissions) []string {
	var out []string
	if asked.Run && !a.Run {
		out = append(out, "running scripts")
	}
	if asked.Call && !a.Call {
		out = append(out, "calling a tool")
	}
	for _, h := range asked.Network {
		if !coversHost(a.Network, h) {
			out = append(out, "network "+printable.Text(h, 300))
		}
	}
	for _, s := range asked.Secrets {
		if !coversName(a.Secrets, s) {
			out = append(out, "secret "+printable.Text(s, 300))
		}
	}
	for _, f := range []struct {
		asked, allowed bool
		name           string
	}{
		{asked.WorkspaceWrite, a.WorkspaceWrite, "writing to the workspace"},
		{asked.Unsandboxed, a.Unsandboxed, "running without a sandbox"},
		{asked.HostNetwork, a.HostNetwork, "the network of the host"},
	} {
		if f.asked && !f.allowed {
			out = append(out, f.name)
		}
	}
	return out
}

// Normalize returns a with sorted lists, without entries that another one
// covers. It returns an error that lists every invalid host pattern and name of
// a secret, or says that a list has more than 256 entries.
func (a Permissions) Normalize() (Permissions, error) {
	var errs []error
	if len(a.Network) > maxList || len(a.Secrets) > maxList {
		return a, fmt.Errorf("too many hosts or secrets (%d hosts, %d secrets, limit %d each)", len(a.Network), len(a.Secrets), maxList)
	}
	hosts := make([]host, 0, len(a.Network))
	for _, s := range a.Network {
		h, err := parseHost(s)
		hosts, errs = append(hosts, h), append(errs, err)
	}
	for _, s := range a.Secrets {
		errs = append(errs, CheckSecretName(s))
	}
	if err := errors.Join(errs...); err != nil {
		return a, err
	}
	a.Network = normalizeHosts(hosts)
	a.Secrets = normalizeNames(a.Secrets)
	return a, nil
}

func (a Permissions) equal(b Permissions) bool {
	return a.Run == b.Run && a.Call == b.Call && a.WorkspaceWrite == b.WorkspaceWrite && a.Unsandboxed == b.Unsandboxed && a.HostNetwork == b.HostNetwork &&
		slices.Equal(a.Network, b.Network) && slices.Equal(a.Secrets, b.Secrets)
}

var secretForm = lazyregexp.New(`\A[A-Za-z_][A-Za-z0-9_]{0,127}\z`)

// CheckSecretName returns an error unless s can name a secret: letters, digits
// and _, at most 128, not starting with a digit. Most secrets are passed as
// environment variables, so the rules for those apply. The error contains s.
func CheckSecretName(s string) error {
	if !secretForm().MatchString(s) {
		return fmt.Errorf("invalid secret name %.150q: use letters, digits and _", s)
	}
	return nil
}

// anyName stands for every secret in the bounds that an operator sets.
const anyName = "*"

func coversName(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, anyName)
}

func intersectNames(a, b []string) []string {
	var out []string
	for _, n := range slices.Concat(a, b) {
		if coversName(a, n) && coversName(b, n) {
			out = append(out, n)
		}
	}
	return normalizeNames(out)
}

// normalizeNames returns the names sorted and without duplicates, or nil if
// there are none.
func normalizeNames(names []string) []string {
	if slices.Contains(names, anyName) {
		return []string{anyName}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
