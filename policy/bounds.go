package policy

import "slices"

// Bounds limits what a sandbox gives to a skill. A run gets the intersection of
// the operator's bounds and what the skill requests, and of these only the
// hosts and secrets that were approved.
//
// A host pattern is a name, an address (IPv6 in brackets), "*.domain" for all
// subdomains, or "*" for all hosts. Each may end in ":port". A secret is a
// name, or "*" for all. An empty list permits nothing. A numeric limit of 0
// sets no limit.
type Bounds struct {
	Network        []string `json:"network,omitempty"`
	Secrets        []string `json:"secrets,omitempty"`
	MemoryMB       int      `json:"memory_mb,omitempty"`
	Seconds        int      `json:"seconds,omitempty"`
	Processes      int      `json:"processes,omitempty"`
	DiskMB         int      `json:"disk_mb,omitempty"`
	MinTier        int      `json:"min_tier,omitempty"` // isolation tier; higher is stronger
	WorkspaceWrite bool     `json:"workspace_write,omitempty"`
}

// Unbounded returns the widest bounds. Intersecting bounds with it leaves them
// unchanged.
func Unbounded() Bounds {
	return Bounds{Network: []string{"*"}, Secrets: []string{anyName}, WorkspaceWrite: true}
}

// Intersect returns what both bounds permit. Its lists are sorted and without
// duplicates. Invalid host patterns are dropped.
func Intersect(a, b Bounds) Bounds {
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

// Covers reports whether b is within a in every respect.
func (a Bounds) Covers(b Bounds) bool {
	return !slices.ContainsFunc(b.Network, func(h string) bool { return !coversHost(a.Network, h) }) &&
		!slices.ContainsFunc(b.Secrets, func(n string) bool { return !coversName(a.Secrets, n) }) &&
		withinLimit(b.MemoryMB, a.MemoryMB) && withinLimit(b.Seconds, a.Seconds) &&
		withinLimit(b.Processes, a.Processes) && withinLimit(b.DiskMB, a.DiskMB) &&
		b.MinTier >= a.MinTier && (a.WorkspaceWrite || !b.WorkspaceWrite)
}

// Permissions returns the permissions that a script of a skill with these
// requested bounds needs.
func (a Bounds) Permissions() Permissions {
	return Permissions{Run: true, Network: slices.Clone(a.Network), Secrets: slices.Clone(a.Secrets), WorkspaceWrite: a.WorkspaceWrite}
}

// minLimit returns the smaller limit, where 0 is no limit. Negative values
// count as 1, because 0 would remove the limit.
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

func withinLimit(n, most int) bool {
	n, most = clampLimit(n), clampLimit(most)
	return most == 0 || n != 0 && n <= most
}
