package policy

import "slices"

// Bounds is the most that a sandbox gives to a skill. What runs is given the
// intersection of the hub's default, the operator's rule, and what the skill
// asks for, and of these no more host or secret than was approved.
//
// A host pattern is a name, an address (IPv6 in brackets), "*.domain" for what
// is below a domain, or "*" for all, each with ":port" or for any port that
// the sandbox opens. A secret is a name, or "*" for all. A list without
// entries permits nothing; a limit of 0 is no limit of these bounds.
type Bounds struct {
	Network        []string `json:"network,omitempty"`
	Secrets        []string `json:"secrets,omitempty"`
	MemoryMB       int      `json:"memory_mb,omitempty"`
	Seconds        int      `json:"seconds,omitempty"`
	Processes      int      `json:"processes,omitempty"`
	DiskMB         int      `json:"disk_mb,omitempty"`
	MinTier        int      `json:"min_tier,omitempty"` // of isolation; higher is stronger
	WorkspaceWrite bool     `json:"workspace_write,omitempty"`
}

// Unbounded is the widest bounds: intersected with it, bounds stay what they
// are.
func Unbounded() Bounds {
	return Bounds{Network: []string{"*"}, Secrets: []string{anyName}, WorkspaceWrite: true}
}

// Intersect returns what both bounds give, never more than one of them. Its
// lists are sorted and hold nothing twice; a host that cannot be read is
// left out.
func Intersect(a, b Bounds) Bounds {
	return Bounds{
		Network:        meetHosts(a.Network, b.Network),
		Secrets:        meetNames(a.Secrets, b.Secrets),
		MemoryMB:       tighter(a.MemoryMB, b.MemoryMB),
		Seconds:        tighter(a.Seconds, b.Seconds),
		Processes:      tighter(a.Processes, b.Processes),
		DiskMB:         tighter(a.DiskMB, b.DiskMB),
		MinTier:        max(a.MinTier, b.MinTier),
		WorkspaceWrite: a.WorkspaceWrite && b.WorkspaceWrite,
	}
}

// Covers reports whether b is no more than a in any respect.
func (a Bounds) Covers(b Bounds) bool {
	return !slices.ContainsFunc(b.Network, func(h string) bool { return !coversHost(a.Network, h) }) &&
		!slices.ContainsFunc(b.Secrets, func(n string) bool { return !coversName(a.Secrets, n) }) &&
		within(b.MemoryMB, a.MemoryMB) && within(b.Seconds, a.Seconds) &&
		within(b.Processes, a.Processes) && within(b.DiskMB, a.DiskMB) &&
		b.MinTier >= a.MinTier && (a.WorkspaceWrite || !b.WorkspaceWrite)
}

// Allows returns what has to be approved for a script of a skill that asks for
// these bounds.
func (a Bounds) Allows() Allows {
	return Allows{Run: true, Network: slices.Clone(a.Network), Secrets: slices.Clone(a.Secrets), WorkspaceWrite: a.WorkspaceWrite}
}

// tighter returns the limit that is reached first; less than 0 counts as 1, as
// nobody means it and 0 would be no limit.
func tighter(a, b int) int {
	a, b = limit(a), limit(b)
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func limit(n int) int {
	if n < 0 {
		return 1
	}
	return n
}

func within(n, most int) bool {
	n, most = limit(n), limit(most)
	return most == 0 || n != 0 && n <= most
}
