package execution

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

const (
	// nodeProcesses is the factor by which the process limit is multiplied for
	// Node, which starts its own threads.
	nodeProcesses = 2
	// noTimeLimit is the time limit of a service. Its other limits are the same
	// as for a script.
	noTimeLimit = math.MaxInt32 * time.Second
)

// specBuilder builds the sandbox specification for a program.
type specBuilder struct {
	opts    *Options
	owner   owner
	skill   *openedSkill // nil for a project
	program *program
	auth    *authorization

	inputs    []Input
	trees     []sandbox.Tree    // additional files
	workspace string            // user's directory to mount; "" for none
	env       map[string]string // has the lowest precedence
	secrets   []sandbox.Secret
	timeout   time.Duration // 0 means the time limit in the bounds
	service   bool          // run without a time limit

	notes []string // notes for the user, set by build
}

func (b *specBuilder) addNote(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// build returns the sandbox specification for a backend of the given tier.
func (b *specBuilder) build(ctx context.Context, tier sandbox.Tier) (*sandbox.Spec, error) {
	s := &sandbox.Spec{Env: map[string]string{}, Limits: b.limits(), Digest: string(b.owner.digest)}
	if b.skill != nil {
		s.Trees = b.skill.trees()
	}
	inputs, err := inputTrees(b.inputs)
	if err != nil {
		return nil, err
	}
	s.Trees = slices.Concat(s.Trees, inputs, b.trees)
	plan := b.program.plan
	maps.Copy(s.Env, b.env)
	addInterpreter(s, plan, b.program.packages)
	if b.workspace != "" {
		if err := CheckWorkspace(b.workspace, b.opts.ProtectedDirs...); err != nil {
			return nil, err
		}
		mountWorkspace(s, b.workspace, b.access())
	}
	if at := b.skill.dir(); at != mountpoint.Skill {
		s.Env["LOADOUT_SKILL"] = at
	}
	if plan.Kind == script.Python && b.skill != nil {
		// Scripts that import each other through the skill's directory expect
		// to be started there.
		s.Env["PYTHONPATH"] = strings.TrimPrefix(s.Env["PYTHONPATH"]+":"+b.skill.dir(), ":")
	}
	return s, b.configureNetwork(ctx, s, tier)
}

// addInterpreter adds the interpreter of a plan and the installed packages,
// which may be nil.
func addInterpreter(s *sandbox.Spec, plan *script.Plan, p *packages.Packages) {
	for _, prefix := range plan.Prefixes {
		s.Mounts = append(s.Mounts, sandbox.Mount{Host: prefix, Path: prefix})
	}
	if len(plan.Bin) > 0 {
		s.Env["PATH"] = strings.Join(plan.Bin, ":") + ":/usr/local/bin:/usr/bin:/bin"
	}
	maps.Copy(s.Env, plan.Env)
	if p != nil {
		s.Mounts = append(s.Mounts, p.Mounts...)
		s.Trees = append(s.Trees, p.Trees...)
		maps.Copy(s.Env, p.Env)
	}
}

// access returns the kind of access that the code has to the workspace.
func (b *specBuilder) access() Access {
	switch {
	case b.workspace == "" || !b.auth.bounds.WorkspaceWrite:
		return ReadOnly
	case b.opts.DirectWorkspace:
		return OverlayOrDirect
	}
	return Overlay
}

// limits returns the sandbox's default limits, adjusted to the bounds.
// [RequestedBounds] ensures that no bound exceeds the operator's limit or the
// default.
func (b *specBuilder) limits() sandbox.Limits {
	l := prepare.DefaultLimits()
	bounds := b.auth.bounds
	if bounds.MemoryMB > 0 {
		l.Memory = int64(bounds.MemoryMB) << 20
	}
	if bounds.Seconds > 0 {
		l.Wall = time.Duration(bounds.Seconds) * time.Second
		l.CPU = l.Wall
	}
	if kind := b.program.plan.Kind; kind == script.Node || kind == script.TypeScript {
		l.Processes *= nodeProcesses
	}
	if bounds.Processes > 0 && (b.opts.Bounds.Processes > 0 || bounds.Processes < l.Processes) {
		l.Processes = bounds.Processes
	}
	if bounds.DiskMB > 0 {
		l.Work = int64(bounds.DiskMB) << 20
		l.FileSize = min(l.Work, max(l.FileSize, l.Work/2))
	}
	if b.timeout > 0 && b.timeout < l.Wall {
		l.Wall = b.timeout
	}
	if b.service {
		l.Wall, l.CPU = noTimeLimit, noTimeLimit
	}
	return l
}

// configureNetwork adds the granted hosts and secrets to the sandbox.
func (b *specBuilder) configureNetwork(ctx context.Context, s *sandbox.Spec, tier sandbox.Tier) error {
	secrets, err := b.secretValues(ctx)
	if err != nil {
		return err
	}
	b.addSecrets(s, secrets)
	switch {
	case tier == sandbox.Limited: // this tier cannot restrict network access
		s.Network.Host = true
	case b.auth.hostNetwork:
		s.Network.Host = true
		b.addNote("had full access to this machine's network")
	case len(b.auth.bounds.Network) > 0:
		s.Network.Allow = b.auth.bounds.Network
		s.Network.Private, s.Network.Log = b.opts.PrivateNetworks, b.opts.Logger
	}
	return nil
}

// addSecrets makes secrets available to the code, or to the proxy that injects
// them into requests.
func (b *specBuilder) addSecrets(s *sandbox.Spec, secrets map[string]sandbox.Secret) {
	injected := map[string]bool{}
	for _, in := range b.auth.inject {
		sec, ok := secrets[in.Secret]
		if !ok {
			continue
		}
		// Only injection by the proxy was approved, so the code must not
		// receive the secret.
		injected[in.Secret] = true
		if b.auth.hostNetwork || !b.auth.bounds.Permissions().Covers(policy.Permissions{Network: []string{in.Pattern()}}) {
			b.addNote("secret %s is not added to requests to %s, which do not go through our proxy", in.Secret, in.Pattern())
			continue
		}
		s.Network.Inject = append(s.Network.Inject, sandbox.Injection{Host: in.Pattern(), Header: in.Header, Prefix: in.Prefix, Secret: sec})
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if !injected[name] { // the code needs no secrets that the proxy adds
			s.Secrets = append(s.Secrets, secrets[name])
		}
	}
}

// secretValues returns the values of the granted secrets.
func (b *specBuilder) secretValues(ctx context.Context) (map[string]sandbox.Secret, error) {
	out := map[string]sandbox.Secret{}
	for _, s := range b.secrets {
		out[s.Name] = s
	}
	for _, name := range b.auth.bounds.Secrets {
		if _, ok := out[name]; ok {
			continue
		}
		value, err := b.opts.Secret(ctx, b.owner.digest, name)
		if err != nil {
			return nil, fmt.Errorf("get secret %s for %s: %w", name, b.owner.label, err)
		}
		if value == "" {
			b.addNote("secret %s is not set", name)
			continue
		}
		out[name] = sandbox.NewSecret(name, value)
	}
	return out, nil
}
