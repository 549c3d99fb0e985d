package tools

import (
	"context"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/policy"
)

// NotReadOnlyError reports that a call with [Call.ReadOnly] was not sent,
// because the tool is not known to be read-only.
type NotReadOnlyError struct {
	Tool   Tool
	Reason string
	// Approvable reports whether [Set.Grant] with [Call.ReadOnlyShown] would
	// allow such calls.
	Approvable bool
}

// Error returns a message with the tool's name and the reason.
func (e *NotReadOnlyError) Error() string {
	return fmt.Sprintf("%s is not known only to read: %s", e.Tool.Name, e.Reason)
}

// declaresReadOnly reports whether the tool's definition declares that it is
// read-only and does not declare that it is destructive.
func (t *Tool) declaresReadOnly() bool {
	a := t.Definition.Annotations
	return a != nil && a.ReadOnlyHint && !t.isDestructive()
}

// maxDeclarationAge is the maximum age of a declaration that [Call.ReadOnly]
// relies on. Servers need not report changes.
const maxDeclarationAge = 5 * time.Second

// resolveReadOnly returns the tool if it is known to be read-only. It requests
// the definition from the server again if the known one is older than
// [maxDeclarationAge].
func (s *Set) resolveReadOnly(ctx context.Context, t *Tool, c *Call) (*Tool, error) {
	if err := s.checkReadOnly(ctx, t, c); err != nil { // decided without a connection
		return nil, err
	}
	now, err := s.currentTool(ctx, t, maxDeclarationAge)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &FailedError{Tool: *t, Err: err}
	case now == nil:
		return nil, s.recordUnknownTool(ctx, c, &UnknownToolError{Name: t.Name, Similar: s.SimilarNames(t.Name)})
	}
	return now, s.checkReadOnly(ctx, now, c)
}

func (s *Set) checkReadOnly(ctx context.Context, t *Tool, c *Call) error {
	if why := s.notReadOnlyReason(ctx, t, c); why != "" {
		return &NotReadOnlyError{Tool: *t, Reason: why, Approvable: t.declaresReadOnly() && s.opts.Grants != nil}
	}
	return nil
}

// notReadOnlyReason returns the reason why the tool is not known to be read-only,
// or "" if it is. A server of a skill, a project or a hub may declare anything.
// Its declaration counts only if the user saw the declaration and approved this
// definition.
func (s *Set) notReadOnlyReason(ctx context.Context, t *Tool, c *Call) string {
	a := t.Definition.Annotations
	switch {
	case a == nil || !a.ReadOnlyHint:
		return "its definition does not declare it"
	case !t.declaresReadOnly():
		return "it also declares that it is destructive"
	case t.isOwn() || s.hasReadOnlyGrant(ctx, t, c):
		return ""
	}
	return "it belongs to " + t.owner() + ", and the user did not approve its declaration"
}

// IsReadOnly reports whether the tool called c.Name is known and may be called by
// c's principal with [Call.ReadOnly] set. It does not connect to a server.
func (s *Set) IsReadOnly(ctx context.Context, c *Call) bool {
	for _, sv := range s.allServers() {
		if t := s.knownTool(sv, c.Name); t != nil {
			return s.notReadOnlyReason(ctx, t, c) == ""
		}
	}
	return false
}

// isOwn reports whether the tool belongs to a server that the user configured.
func (t *Tool) isOwn() bool {
	sv := t.server
	return sv.config.Owner == "" && sv.group == nil && sv.settings == nil && sv.skill == ""
}

// hasReadOnlyGrant reports whether the principal has a permanent grant for the
// tool's definition with [policy.Grant.ReadOnly] set.
func (s *Set) hasReadOnlyGrant(ctx context.Context, t *Tool, c *Call) bool {
	subject := t.subject()
	if s.opts.Grants == nil || subject == "" {
		return false
	}
	g, err := s.opts.Grants.Find(ctx, c.Principal, subject, "")
	return err == nil && g != nil && g.Principal == c.Principal && g.Subject == subject && g.Permissions.Call && g.ReadOnly && g.Scope == policy.Always
}
