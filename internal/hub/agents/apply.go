package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Outcome is the result of applying a document.
type Outcome string

const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
	Refused   Outcome = "refused"
	Skipped   Outcome = "skipped" // unknown kind
)

// Change describes how a document was applied.
type Change struct {
	Kind, Namespace, Name string
	Line                  int
	Outcome               Outcome
	// Diff lists the changed fields, or all fields of a new document.
	Diff []FieldChange
	// Findings lists problems in the document, including those found by [Parse].
	Findings skill.Diagnostics
	// Stale is set if the document was refused because its base generation is
	// outdated.
	Stale *NewerChange
}

// NewerChange describes a change made after the document was read.
type NewerChange struct {
	Generation int64          `json:"generation" doc:"Current generation; 0 if deleted"`
	By         account.UserID `json:"changedBy,omitempty" doc:"ID of a user"`
	Name       string         `json:"name,omitempty" doc:"Name of that user"` // "" if the user was deleted
	Changed    time.Time      `json:"updated,omitzero"`
}

// AppliedSkill describes how a skill document was applied.
type AppliedSkill struct {
	Outcome Outcome
	Before  []byte // previous SKILL.md; nil if there was none
	Pending int64  // number of the version if it is awaiting review, or 0
}

// Result is the result of [Registry.Apply].
type Result struct {
	Changes []Change // one for each document, in order, and then those for outdated deletions
	// Committed reports whether the changes were stored. It is false after a dry
	// run and if a document was refused.
	Committed bool
}

// HasRefused reports whether any document was refused.
func (r *Result) HasRefused() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Outcome == Refused })
}

// OnlyDenied reports whether documents were refused only for lack of permission.
func (r *Result) OnlyDenied() bool {
	wrong := false
	for _, c := range r.Changes {
		for _, d := range c.Findings {
			if d.Severity == skill.Error && d.Code != codeDenied {
				return false
			}
			wrong = wrong || d.Severity == skill.Error
		}
	}
	return wrong
}

// OnlyStale reports whether documents were refused only because of concurrent
// changes.
func (r *Result) OnlyStale() bool {
	stale := false
	for _, c := range r.Changes {
		if c.Outcome == Refused && c.Stale == nil {
			return false
		}
		stale = stale || c.Stale != nil
	}
	return stale
}

// errRollback is returned to roll back a transaction in which nothing failed, as
// in a dry run.
var errRollback = errors.New("rollback")

// Apply applies all documents, or none if one is refused. If dry is set, it
// changes nothing. Apply is idempotent, and the order of the documents does not
// matter. A document that refers to a missing Ghost, Bot, Model or server is
// refused. A missing skill is only a finding, because skills are resolved when
// they are used.
//
// The result includes problems in documents and missing permissions. Apply
// returns an error only if the database fails or the principal is anonymous.
func (r *Registry) Apply(ctx context.Context, p account.Principal, docs []*Document, dry bool) (*Result, error) {
	return r.applyBatch(ctx, p, batch{docs: docs, dry: dry})
}

// ApplyAndDelete is like [Registry.Apply], and deletes resources in the same
// transaction, after the documents are applied. Missing resources are ignored. If a
// resource cannot be deleted, nothing is changed, and it returns the error of
// [Registry.Delete]. If a resource has another generation than its deletion states, the
// result has a refused change for it.
func (r *Registry) ApplyAndDelete(ctx context.Context, p account.Principal, docs []*Document, deletions []Deletion, dry bool) (*Result, error) {
	return r.applyBatch(ctx, p, batch{docs: docs, deletions: deletions, dry: dry})
}

// batch holds documents to apply and resources to delete in one transaction.
type batch struct {
	docs      []*Document
	deletions []Deletion
	dry       bool
	// before is called first in the transaction. Unless dry is set or a document is
	// refused, after is called at the end. If one of them fails, nothing is stored.
	before, after func(*store.Tx) error
}

// applyBatch applies a batch. See [Registry.Apply].
func (r *Registry) applyBatch(ctx context.Context, p account.Principal, b batch) (*Result, error) {
	if len(b.docs) > MaxDocuments+1 { // Parse adds one document that reports too many
		return nil, fmt.Errorf("apply: %w: %d documents, limit %d", store.ErrTooMany, len(b.docs), MaxDocuments)
	}
	if len(b.deletions) > MaxDeletions {
		return nil, fmt.Errorf("apply: %w: %d deletions, limit %d", store.ErrTooMany, len(b.deletions), MaxDeletions)
	}
	if err := account.Check(p, account.KindApply, account.OwnedBy(p.User)); err != nil { // the token scopes
		return nil, err
	}
	for try := 1; ; try++ {
		result, err := r.apply(ctx, p, b)
		// A concurrent change may have created the name; retry.
		if try < 4 && (errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict)) {
			continue
		}
		if failed, ok := errors.AsType[*deletionError](err); ok && !b.dry {
			return nil, r.recordDenied(ctx, p, account.KindDelete, failed.subject, err)
		}
		if err != nil {
			return nil, fmt.Errorf("apply: %w", err)
		}
		if !b.dry {
			err = r.RecordDenials(ctx, p, result.Changes)
		}
		return result, err
	}
}

func (r *Registry) apply(ctx context.Context, p account.Principal, b batch) (*Result, error) {
	var a *documentBatch
	err := r.db.Tx(ctx, func(tx *store.Tx) error {
		if b.before != nil {
			if err := b.before(tx); err != nil {
				return err
			}
		}
		a = &documentBatch{actor: actor{Tables: tx.Tables, p: p}, r: r, tx: tx, docs: b.docs,
			result: &Result{Changes: make([]Change, len(b.docs))}, namespaces: make([]store.Namespace, len(b.docs)), declared: map[identity]int{}}
		if err := a.run(ctx); err != nil {
			return err
		}
		if err := a.deleteAll(ctx, b.deletions); err != nil {
			return err
		}
		if b.dry || a.result.HasRefused() {
			return errRollback
		}
		if b.after == nil {
			return nil
		}
		return b.after(tx)
	})
	if err != nil && !errors.Is(err, errRollback) {
		return nil, err
	}
	a.result.Committed = err == nil
	return a.result, nil
}

// identity identifies a document on the hub.
type identity struct {
	kind string
	in   store.Namespace
	name string
}

// documentBatch applies a batch of documents in a transaction.
type documentBatch struct {
	actor
	r          *Registry
	tx         *store.Tx
	docs       []*Document
	result     *Result
	namespaces []store.Namespace // namespace of each document; "" if unresolved
	declared   map[identity]int  // indexes of documents
}

func (a *documentBatch) run(ctx context.Context) error {
	named := 0
	for i, d := range a.docs {
		if err := a.checkDocument(ctx, i); err != nil {
			return err
		}
		if d.Spec == nil || a.result.Changes[i].Outcome != "" {
			continue
		}
		n := len(d.Spec.references())
		switch {
		case named+n <= MaxReferences: // other writers wait for these lookups
			named += n
		case d.MustBeNew:
			a.addRefusal(i, "document-many", fmt.Sprintf("does not fit: more than %d references in all documents", MaxReferences), "add it later, without the others")
		default:
			return fmt.Errorf("%w: more than %d references in all documents", store.ErrTooMany, MaxReferences)
		}
	}
	for _, kind := range kindOrder {
		for i, d := range a.docs {
			if d.Kind != kind || a.result.Changes[i].Outcome != "" {
				continue
			}
			if err := a.applyDocument(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDocument resolves the namespace of a document. It refuses the document if
// it has errors or the principal is not allowed to change the namespace.
func (a *documentBatch) checkDocument(ctx context.Context, i int) error {
	d, c := a.docs[i], &a.result.Changes[i]
	*c = Change{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Line: d.Line, Findings: slices.Clone(d.Findings)}
	if d.Skipped {
		c.Outcome = Skipped
		return nil
	}
	if d.Name != "" {
		in, err := a.resolveNamespace(ctx, d.Namespace)
		switch {
		case errors.Is(err, store.ErrNotFound):
			a.addRefusal(i, "document-namespace", "namespace "+quote(d.Namespace)+" not found or not permitted", "use the name of one of your groups, or omit the namespace")
		case err != nil:
			return err
		default:
			a.claimName(i, in)
		}
	}
	if d.Spec == nil || !d.Findings.Loads() {
		c.Outcome = Refused
	}
	return nil
}

// claimName registers the identity of a document. It refuses the document if
// another document has the same identity or the principal lacks permission.
func (a *documentBatch) claimName(i int, in store.Namespace) {
	d := a.docs[i]
	id := identity{d.Kind, in, d.Name}
	if other, twice := a.declared[id]; twice {
		a.addRefusal(i, "document-twice", fmt.Sprintf("duplicate %s %s, first on line %d", d.Kind, quote(d.Name), a.docs[other].Line), "remove one")
		return
	}
	a.declared[id], a.namespaces[i] = i, in
	if err := account.Check(a.p, applyAction(d.Kind), accountResource(in, string(a.p.User))); err != nil && d.Kind != SkillKind {
		a.addRefusal(i, codeDenied, err.Error(), "ask an owner or maintainer of the namespace")
	}
}

// codeDenied is the code of findings that report missing permissions.
const codeDenied = "denied"

func applyAction(kind string) account.Action {
	switch kind {
	case ModelKind, ServerKind:
		return account.ServerApply
	case SkillKind:
		return account.SkillUpload
	}
	return account.KindApply
}

func (a *documentBatch) addRefusal(i int, code, message, fix string) {
	a.addFinding(i, skill.Error, code, message, fix)
	a.result.Changes[i].Outcome = Refused
}

func (a *documentBatch) addFinding(i int, s skill.Severity, code, message, fix string) {
	d, c := a.docs[i], &a.result.Changes[i]
	p := &parser{&Document{Findings: c.Findings}}
	p.addFinding(s, code, &configfile.Node{Line: d.Line, Column: d.Column}, message, fix)
	c.Findings = p.doc.Findings
}

// applyDocument applies a document that has no errors.
func (a *documentBatch) applyDocument(ctx context.Context, i int) error {
	d, c := a.docs[i], &a.result.Changes[i]
	if d.Kind == SkillKind {
		return a.applySkill(ctx, i)
	}
	old, err := a.Kinds.ByName(ctx, d.Kind, a.namespaces[i], d.Name)
	if ignoreNotFound(err) != nil {
		return err
	}
	refs, err := a.resolveReferences(ctx, i, old)
	if err != nil {
		return err
	}
	a.checkAddresses(i)
	if !c.Findings.Loads() {
		c.Outcome = Refused
		return nil
	}
	return a.saveDocument(ctx, i, old, refs)
}

// saveDocument stores a document unless it is unchanged.
func (a *documentBatch) saveDocument(ctx context.Context, i int, old store.Kind, refs []store.Reference) error {
	d, c := a.docs[i], &a.result.Changes[i]
	spec, err := plainjson.Line(d.Spec)
	if err != nil {
		return err
	}
	next := storedDocument{Description: d.Description, By: string(a.p.User), ServersBy: string(a.p.User), Spec: spec}
	var before storedDocument
	if old.ID != "" {
		if before, err = decodeRecord(old); err != nil {
			return err
		}
		if bytes.Equal(before.serversJSON(d.Kind), next.serversJSON(d.Kind)) {
			next.ServersBy = before.ServersBy
		}
	}
	c.Diff = diffFields(before.flatFields(), next.flatFields())
	same := old.ID != "" && before.Description == next.Description && bytes.Equal(before.Spec, next.Spec)
	if d.BaseGeneration != 0 && d.BaseGeneration != old.Generation && !same {
		return a.refuseStale(ctx, i, old, before.By)
	}
	if d.MustBeNew && !same {
		if refused, err := a.refuseTakenName(ctx, i, old); refused || err != nil {
			return err
		}
	}
	raw, err := plainjson.Line(next)
	if err == nil && !same {
		err = a.r.opts.Quotas.Check(ctx, &a.Tables, a.namespaces[i], quota.Amounts{Bytes: int64(len(raw) - len(old.Spec))})
	}
	switch {
	case err != nil:
		return a.refuseOverQuota(i, err)
	case old.ID == "":
		c.Outcome = Created
		old, err = a.Kinds.Create(ctx, store.Kind{Kind: d.Kind, Namespace: a.namespaces[i], Name: d.Name, Spec: raw, CreatedBy: string(a.p.User)})
		if err != nil {
			return err
		}
	case same:
		c.Outcome = Unchanged
		return nil
	default:
		c.Outcome = Updated
		if _, err := a.Kinds.Update(ctx, old.ID, old.Generation, raw); err != nil {
			return err
		}
	}
	if err := a.Refs.Set(ctx, d.Kind, old.ID, refs); err != nil {
		return err
	}
	return a.recordAllowed(ctx, applyAction(d.Kind), a.namespaces[i], d.Kind+"/"+d.Name, map[string]any{"outcome": c.Outcome, "fields": fieldPaths(c.Diff)})
}

// refuseTakenName refuses a document that must be new if its name is taken by old, or by
// a resource or an operator's server that documents in its namespace can use:
// references by name would then resolve to the new document. It reports whether it
// refused the document.
func (a *documentBatch) refuseTakenName(ctx context.Context, i int, old store.Kind) (bool, error) {
	if old.ID != "" {
		a.refuseExisting(i)
		return true, nil
	}
	d := a.docs[i]
	if (d.Kind == BotKind || d.Kind == TeamKind) && !slices.ContainsFunc(a.docs, func(o *Document) bool { return o.Kind == GhostKind && o.Name == d.Name && o.MustBeNew }) {
		// A saved agent of the namespace already takes precedence under its name.
		_, err := a.Kinds.ByName(ctx, GhostKind, a.namespaces[i], d.Name)
		if err == nil || !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
	}
	_, err := a.withReadScope().findKind(ctx, account.KindRead, a.namespaces[i], d.Kind, Ref{Name: d.Name})
	if ignoreNotFound(err) != nil {
		return false, err
	}
	if err != nil && !(d.Kind == ServerKind && a.r.isOperatorServer(d.Name)) {
		return false, nil
	}
	a.addRefusal(i, "document-exists", fmt.Sprintf("another %s with this name is available here", d.Kind), "rename it")
	return true, nil
}

// refuseExisting refuses a document that would change an existing one.
func (a *documentBatch) refuseExisting(i int) {
	a.addRefusal(i, "document-exists", fmt.Sprintf("there is another %s with this name", a.docs[i].Kind), "rename one of them to keep both")
}

// refuseOverQuota refuses a document that must be new if err means that it exceeds a
// quota. Otherwise it returns err.
func (a *documentBatch) refuseOverQuota(i int, err error) error {
	full, ok := errors.AsType[*quota.ExceededError](err)
	if !ok || !a.docs[i].MustBeNew {
		return err
	}
	a.addRefusal(i, "document-quota", "does not fit: "+full.Error(), "")
	return nil
}

// refuseStale refuses a document whose base generation is outdated.
func (a *documentBatch) refuseStale(ctx context.Context, i int, now store.Kind, by string) error {
	d, c := a.docs[i], &a.result.Changes[i]
	newer, err := a.newerChange(ctx, now, by)
	if err != nil {
		return err
	}
	c.Stale = &newer
	if now.ID == "" {
		a.addRefusal(i, codeStale, fmt.Sprintf("the %s %s of generation %d was deleted", d.Kind, quote(d.Name), d.BaseGeneration), "omit metadata.generation to create it again")
		return nil
	}
	a.addRefusal(i, codeStale, staleMessage(d.Kind, d.Name, newer, d.BaseGeneration), "repeat the change on the current document, or overwrite it by sending its generation")
	return nil
}

// newerChange describes the latest change of a resource and the user who made it. If
// now is zero, the resource was deleted.
func (a *documentBatch) newerChange(ctx context.Context, now store.Kind, by string) (NewerChange, error) {
	out := NewerChange{Generation: now.Generation, By: account.UserID(by), Changed: now.Updated}
	if now.ID == "" {
		return out, nil
	}
	who, err := a.Users.Get(ctx, by)
	out.Name = who.Name
	return out, ignoreNotFound(err)
}

// staleMessage says who changed a resource after the given generation was read.
func staleMessage(kind, name string, newer NewerChange, generation int64) string {
	who := "a deleted user"
	if newer.Name != "" {
		who = quote(newer.Name)
	}
	return fmt.Sprintf("%s changed the %s %s at %s: generation is %d, document has %d", who, kind, quote(name), newer.Changed.UTC().Format(time.RFC3339), newer.Generation, generation)
}

// codeStale is the code of findings that report an outdated base generation.
const codeStale = "stale"

// applySkill applies a skill document by calling [Options.ApplySkill].
func (a *documentBatch) applySkill(ctx context.Context, i int) error {
	d, c := a.docs[i], &a.result.Changes[i]
	s, ok := d.Spec.(*Skill)
	if !ok || a.r.opts.ApplySkill == nil {
		a.addRefusal(i, "skill-package", "skills must be uploaded as packages", "upload a ZIP archive with SKILL.md")
		return nil
	}
	file, err := s.skillFile(d.Name)
	if err != nil {
		return err
	}
	applied, err := a.r.opts.ApplySkill(ctx, a.tx, a.p, SkillFile{In: a.namespaces[i], Name: d.Name, Data: file, Same: s.equalTo(d.Name)})
	if denied, ok := errors.AsType[*account.DeniedError](err); ok {
		a.addRefusal(i, codeDenied, denied.Error(), "ask an owner or maintainer of the namespace")
		return nil
	}
	if refused, ok := errors.AsType[*SkillError](err); ok {
		a.addRefusal(i, "skill-refused", refused.Why, refused.Fix)
		return nil
	}
	if err != nil {
		return a.refuseOverQuota(i, err)
	}
	if d.MustBeNew && applied.Outcome == Updated {
		a.refuseExisting(i)
		return nil
	}
	if c.Outcome = applied.Outcome; c.Outcome != Unchanged {
		c.Diff = s.diffFile(d.Name, applied.Before)
	}
	if applied.Pending > 0 {
		a.addFinding(i, skill.Warning, "skill-pending", fmt.Sprintf("version %d is awaiting review; until then, users keep the current version", applied.Pending), "ask a reviewer to review it")
	}
	return nil
}

// recordAllowed writes an audit record for an allowed action.
func (a actor) recordAllowed(ctx context.Context, action account.Action, in store.Namespace, subject string, details map[string]any) error {
	return a.appendAudit(ctx, action, in, subject, "allowed", details)
}

func (a actor) appendAudit(ctx context.Context, action account.Action, in store.Namespace, subject, decision string, details map[string]any) error {
	raw, err := json.Marshal(details)
	if err != nil {
		return err
	}
	return a.Audit.Append(ctx, store.AuditRecord{Actor: string(a.p.User), Action: string(action), Namespace: in, Subject: subject, Decision: decision, Details: raw})
}

// RecordDenials writes an audit record for each of the changes that was refused
// because of a missing permission. [Registry.Apply] does this itself unless it is a
// dry run.
func (r *Registry) RecordDenials(ctx context.Context, p account.Principal, changes []Change) error {
	a := r.newActor(p)
	for _, c := range changes {
		if !slices.ContainsFunc(c.Findings, func(d skill.Diagnostic) bool { return d.Code == codeDenied }) {
			continue
		}
		in, err := a.resolveNamespace(ctx, c.Namespace)
		if err == nil {
			err = a.appendAudit(ctx, applyAction(c.Kind), in, c.Kind+"/"+c.Name, "denied", map[string]any{})
		}
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
	}
	return nil
}
