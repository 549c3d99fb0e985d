package policy

import (
	"slices"
	"strconv"
)

// Bounds limits the access of a sandbox that runs a skill's code. A run gets
// the intersection of the operator's bounds and the skill's requested bounds.
// It gets only the hosts and secrets in that intersection that were approved.
//
// A host pattern is a name, an address (IPv6 in brackets), "*.domain" for all
// subdomains, or "*" for all hosts. Each may end in ":port". A secret is a
// name, or "*" for all. An empty list permits nothing. A numeric limit of 0
// sets no limit, and a negative one counts as 1. The zero value permits no
// hosts, no secrets and no write access.
type Bounds struct {
	Network        []string `json:"network,omitempty"`         // host patterns
	Secrets        []string `json:"secrets,omitempty"`         // names
	MemoryMB       int      `json:"memory_mb,omitempty"`       // MiB, for all processes together
	Seconds        int      `json:"seconds,omitempty"`         // running time; not applied to services
	Processes      int      `json:"processes,omitempty"`       // including threads
	DiskMB         int      `json:"disk_mb,omitempty"`         // size of /work, in MiB
	MinTier        int      `json:"min_tier,omitempty"`        // lowest isolation tier, as in package sandbox
	WorkspaceWrite bool     `json:"workspace_write,omitempty"` // write to the user's directory
}

// Intersect returns the bounds that both a and b permit. For numeric limits, it
// returns the smaller one, and for MinTier the greater one. Lists are sorted
// and contain no duplicates. Invalid host patterns are dropped. The result
// shares no memory with a or b.
func (a Bounds) Intersect(b Bounds) Bounds {
	return Bounds{
		Network:        intersectHosts(a.Network, b.Network),
		Secrets:        intersectNames(a.Secrets, b.Secrets),
		MemoryMB:       minLimit(a.MemoryMB, b.MemoryMB),
		Seconds:        minLimit(a.Seconds, b.Seconds),
		Processes:      minLimit(a.Processes, b.Processes),
		DiskMB:         minLimit(a.DiskMB, b.DiskMB),
		MinTier:        max(a.MinTier, b.MinTier),
		WorkspaceWrite: a.WorkspaceWrite && b.WorkspaceWrite,
	}
}

// Permissions returns the permissions needed by a skill script that requests
// these bounds. They include Run. The limits on resources are dropped.
func (a Bounds) Permissions() Permissions {
	return Permissions{Run: true, Network: slices.Clone(a.Network), Secrets: slices.Clone(a.Secrets), WorkspaceWrite: a.WorkspaceWrite}
}

// Injection is a skill's request that the sandbox add a secret to its HTTPS
// requests to a host. The skill's code never has access to the secret. The
// defaults below apply if the skill's request omits a field.
type Injection struct {
	Secret string `json:"secret"` // name
	Host   string `json:"host"`   // name or address; not a pattern
	Port   int    `json:"port"`   // default 443
	Header string `json:"header"` // default Authorization
	Prefix string `json:"prefix"` // precedes the secret; default "Bearer " for the header Authorization
}

// Pattern returns the host pattern, with the port, that a grant must cover.
func (in Injection) Pattern() string { return in.Host + ":" + strconv.Itoa(in.Port) }

// minLimit returns the smaller limit, where 0 means no limit. Negative values
// are replaced with 1, because 0 would remove the limit.
func minLimit(a, b int) int {
	a, b = clampLimit(a), clampLimit(b)
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func clampLimit(n int) int {
	if n < 0 {
		return 1
	}
	return n
}
