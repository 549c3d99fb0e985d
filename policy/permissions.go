package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/secretname"
)

// Permissions lists what a grant permits or a skill requests. The zero value
// permits nothing. A grant names each secret; only [Bounds] accept "*" for all.
type Permissions struct {
	Run            bool     `json:"run"`                       // run the skill's scripts
	Call           bool     `json:"call,omitempty"`            // call a tool of an MCP server
	Network        []string `json:"network,omitempty"`         // connect to hosts; patterns as in [Bounds]
	Secrets        []string `json:"secrets,omitempty"`         // use secrets, by name
	WorkspaceWrite bool     `json:"workspace_write,omitempty"` // write to the user's directory
	Unsandboxed    bool     `json:"unsandboxed,omitempty"`     // run without a sandbox
	HostNetwork    bool     `json:"host_network,omitempty"`    // use the machine's own network, unfiltered
}

// Covers reports whether a permits everything that b permits. An invalid host
// pattern covers nothing, and nothing covers it.
func (a Permissions) Covers(b Permissions) bool {
	return (a.Run || !b.Run) && (a.Call || !b.Call) &&
		!slices.ContainsFunc(b.Network, func(h string) bool { return !coversHost(a.Network, h) }) &&
		!slices.ContainsFunc(b.Secrets, func(n string) bool { return !coversNameOf(a.Secrets, n) }) &&
		(a.WorkspaceWrite || !b.WorkspaceWrite) && (a.Unsandboxed || !b.Unsandboxed) && (a.HostNetwork || !b.HostNetwork)
}

// Intersect returns the permissions in both a and b. Lists are sorted and
// contain no duplicates. Invalid host patterns are dropped.
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

// Bounds returns bounds that permit the hosts, secrets and workspace access in
// a, without limits on memory, time and so on. Intersect them with the bounds
// of a sandbox.
func (a Permissions) Bounds() Bounds {
	return Bounds{Network: slices.Clone(a.Network), Secrets: slices.Clone(a.Secrets), WorkspaceWrite: a.WorkspaceWrite}
}

// Normalize returns the permissions with sorted lists and hosts in lower case,
// without entries that are covered by another. It returns an error if a list
// has more than 256 entries. If host patterns or secret names are invalid, the
// error lists all of them. A secret name has up to 128 ASCII letters, digits
// and underscores, and does not start with a digit. If there is an error,
// Normalize returns the permissions unchanged.
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
		errs = append(errs, secretname.Check(s))
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

// anyName matches every secret in an operator's bounds.
const anyName = "*"

func coversNameOf(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, anyName)
}

func intersectNames(a, b []string) []string {
	var out []string
	for _, n := range slices.Concat(a, b) {
		if coversNameOf(a, n) && coversNameOf(b, n) {
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
