package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// Allows is what a grant permits, or what is asked for. The zero value is
// nothing.
type Allows struct {
	Run            bool     `json:"run"`               // scripts of the skill
	Call           bool     `json:"call,omitempty"`    // a tool of an MCP server
	Network        []string `json:"network,omitempty"` // host patterns as in [Bounds]
	Secrets        []string `json:"secrets,omitempty"` // names
	WorkspaceWrite bool     `json:"workspace_write,omitempty"`
	Unsandboxed    bool     `json:"unsandboxed,omitempty"`
	HostNetwork    bool     `json:"host_network,omitempty"` // the machine's own network, unfiltered
}

// Covers reports whether b is no more than a.
func (a Allows) Covers(b Allows) bool { return len(a.missing(b)) == 0 }

// Intersect returns what both allow.
func (a Allows) Intersect(b Allows) Allows {
	return Allows{
		Run:            a.Run && b.Run,
		Call:           a.Call && b.Call,
		Network:        meetHosts(a.Network, b.Network),
		Secrets:        meetNames(a.Secrets, b.Secrets),
		WorkspaceWrite: a.WorkspaceWrite && b.WorkspaceWrite,
		Unsandboxed:    a.Unsandboxed && b.Unsandboxed,
		HostNetwork:    a.HostNetwork && b.HostNetwork,
	}
}

// Bounds returns the bounds that permit what a allows, with no limits on
// memory and the like: a decision's effective part, to be intersected with the
// bounds of a sandbox.
func (a Allows) Bounds() Bounds {
	return Bounds{Network: slices.Clone(a.Network), Secrets: slices.Clone(a.Secrets), WorkspaceWrite: a.WorkspaceWrite}
}

// missing names each thing that asked has and a does not.
func (a Allows) missing(asked Allows) []string {
	var out []string
	if asked.Run && !a.Run {
		out = append(out, "running scripts")
	}
	if asked.Call && !a.Call {
		out = append(out, "calling a tool")
	}
	for _, h := range asked.Network {
		if !coversHost(a.Network, h) {
			out = append(out, "network "+visible(h, 300))
		}
	}
	for _, s := range asked.Secrets {
		if !coversName(a.Secrets, s) {
			out = append(out, "secret "+visible(s, 300))
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

// normal returns a with its lists in their one form, or what is wrong in them.
func (a Allows) normal() (Allows, error) {
	var errs []error
	if len(a.Network) > maxList || len(a.Secrets) > maxList {
		return a, fmt.Errorf("it has more than %d hosts or secrets", maxList)
	}
	hosts := make([]host, 0, len(a.Network))
	for _, s := range a.Network {
		h, err := parseHost(s)
		hosts, errs = append(hosts, h), append(errs, err)
	}
	for _, s := range a.Secrets {
		errs = append(errs, checkSecret(s))
	}
	if err := errors.Join(errs...); err != nil {
		return a, err
	}
	a.Network = hostList(hosts)
	a.Secrets = nameList(a.Secrets)
	return a, nil
}

func (a Allows) equal(b Allows) bool {
	return a.Run == b.Run && a.Call == b.Call && a.WorkspaceWrite == b.WorkspaceWrite && a.Unsandboxed == b.Unsandboxed && a.HostNetwork == b.HostNetwork &&
		slices.Equal(a.Network, b.Network) && slices.Equal(a.Secrets, b.Secrets)
}

var secretForm = pattern.New(`\A[A-Za-z_][A-Za-z0-9_]{0,127}\z`)

// checkSecret accepts the name of a secret. Names are those of environment
// variables, as that is how most are handed over.
func checkSecret(s string) error {
	if !secretForm().MatchString(s) {
		return fmt.Errorf("%.150q cannot be the name of a secret: letters, digits and _ can", s)
	}
	return nil
}

// anyName stands for every secret in bounds that an operator sets.
const anyName = "*"

func coversName(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, anyName)
}

func meetNames(a, b []string) []string {
	var out []string
	for _, n := range slices.Concat(a, b) {
		if coversName(a, n) && coversName(b, n) {
			out = append(out, n)
		}
	}
	return nameList(out)
}

// nameList sorts names, each once; nil for none.
func nameList(names []string) []string {
	if slices.Contains(names, anyName) {
		return []string{anyName}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
