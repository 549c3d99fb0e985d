package tools

import (
	"context"
	"errors"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// ErrNoGrantStore is returned if a set does not store grants.
var ErrNoGrantStore = errNoGrantStore

// UnknownServerError reports that there is no server with the given name.
type UnknownServerError = unknownServerError

// Permission is a permission that a test grants.
type Permission struct {
	Digest  policy.Digest
	Done    <-chan struct{}
	Release func()
	Check   func(ctx context.Context) error
	// Isolated is set if commands run in a sandbox that confines them.
	Isolated bool
	// Secret returns a secret of the skill. nil means that it has none.
	Secret func(name string) (string, bool)
}

// TestOptions are the options of a set whose permissions a test grants. Without
// AcquirePermission, no skill has permission.
type TestOptions struct {
	Options
	Pool              *upstream.Pool
	HowToAccept       func(server string) string
	Skills            *loadout.Runtime
	AcquirePermission func(ctx context.Context, e *catalog.Entry) (*Permission, error)
	IsPermitted       func(ctx context.Context, e *catalog.Entry) bool
	Provide           func(ctx context.Context, e *catalog.Entry, s *skill.Skill) (*upstream.Config, []string, error)
}

// NewDefinitionFiles returns the store of a set with the given DefinitionsDir.
func NewDefinitionFiles(dir string) toolset.DefinitionStore { return &pinFiles{dir: dir} }

// New returns a set with the given options.
func New(o *TestOptions) *Set {
	access := skillAccess{provide: o.Provide, isPermitted: o.IsPermitted, acquire: func(ctx context.Context, e *catalog.Entry) (*permission, error) {
		if o.AcquirePermission == nil {
			return nil, errors.New("not approved")
		}
		p, err := o.AcquirePermission(ctx, e)
		if err != nil {
			return nil, err
		}
		return &permission{digest: p.Digest, done: p.Done, release: p.Release, check: p.Check, isolated: p.Isolated, values: Variables{Secret: p.Secret}}, nil
	}}
	if access.isPermitted == nil {
		access.isPermitted = func(context.Context, *catalog.Entry) bool { return false }
	}
	if access.provide == nil {
		access.provide = func(context.Context, *catalog.Entry, *skill.Skill) (*upstream.Config, []string, error) {
			return nil, nil, errors.New("providers are disabled")
		}
	}
	o.further.Pool, o.further.HowToAccept = o.Pool, o.HowToAccept
	return newSet(o.Skills, &o.Options, access, &runtimeServers{rt: o.Skills}, nil)
}

// SummaryKey returns the key under which a program stores the summary of a server
// with plain tool names. Its version of summaries is newer by the given number.
func (s *Set) SummaryKey(server string, newer int) string {
	key, _ := s.plainSummaryKey(summaryVersion+newer, s.serverByName(server))
	return key
}
