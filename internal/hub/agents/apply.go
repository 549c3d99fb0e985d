package agents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Outcome is what came of a document.
type Outcome string

// Outcomes.
const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
	Refused   Outcome = "refused"
	Skipped   Outcome = "skipped" // of a kind that there is none of here
)

// Change is what came of one document.
type Change struct {
	Kind, Namespace, Name string
	Line                  int
	Outcome               Outcome
	// Diff is what is different in the fields; of what is created, all of them.
	Diff []FieldChange
	// Findings are those of the document, and what applying it found.
	Findings skill.Diagnostics
	// Stale is what there is by now where the document was made from an earlier one, and is
	// refused for that.
	Stale *NewerChange
}

// NewerChange is a thing that somebody changed in the meantime.
type NewerChange struct {
	Generation int64 // 0 where it is gone
	By         account.UserID
	Name       string // of the user, "" of one who is gone
	Changed    time.Time
}

// Result is what came of documents, in their order.
type Result struct {
	Changes []Change
	// Committed says that the changes are in force. They are not after a dry run, or where
	// one document was refused.
	Committed bool
}

// HasRefused reports whether a document was.
func (r *Result) HasRefused() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Outcome == Refused })
}

// OnlyDenied reports whether all that is wrong is that the principal may not.
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

// OnlyStale reports whether all that is wrong is that somebody changed things in the meantime.
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

// errRollback ends a transaction of which nothing is to stay.
var errRollback = errors.New("nothing of it is kept")

// Apply makes what documents say, all of it or, where one is refused, nothing; with
// dry it only says what it would do. Applied again they are unchanged. Documents may
// stand in any order. References to Ghosts, Bots, Models and servers have to lead
// somewhere; skills are looked for when they are used, and a finding says that there
// is none yet.
//
// What is wrong with documents, and what the principal may not do, is in the result.
// The error is about the database, or says that nobody is signed in.
func (r *Registry) Apply(ctx context.Context, p account.Principal, docs []*Document, dry bool) (*Result, error) {
	if len(docs) > MaxDocuments+1 { // the last one says that there are more
		return nil, fmt.Errorf("apply %d documents: %w: more than %d", len(docs), store.ErrTooMany, MaxDocuments)
	}
	if err := account.Check(p, account.KindApply, account.OwnedBy(p.User)); err != nil { // for the way in
		return nil, err
	}
	for try := 1; ; try++ {
		result, err := r.apply(ctx, p, docs, dry)
		// Somebody made one of the same name at the same time: now it is there.
		if try < 4 && (errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict)) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("apply: %w", err)
		}
		return result, r.recordDenials(ctx, p, result)
	}
}

func (r *Registry) apply(ctx context.Context, p account.Principal, docs []*Document, dry bool) (*Result, error) {
	var a *application
	err := r.db.Tx(ctx, func(tx *store.Tx) error {
		a = &application{actor: actor{tx.Tables, p}, r: r, tx: tx, docs: docs,
			result: &Result{Changes: make([]Change, len(docs))}, namespaces: make([]store.Namespace, len(docs)), declared: map[identity]int{}}
		if err := a.run(ctx); err != nil {
			return err
		}
		if dry || a.result.HasRefused() {
			return errRollback
		}
		return nil
	})
	if err != nil && !errors.Is(err, errRollback) {
		return nil, err
	}
	a.result.Committed = err == nil
	return a.result, nil
}

// identity is what no two things have in common.
type identity struct {
	kind string
	in   store.Namespace
	name string
}

// application is one call of Apply, in its transaction.
type application struct {
	actor
	r          *Registry
	tx         *store.Tx
	docs       []*Document
	result     *Result
	namespaces []store.Namespace // of each document, "" where it has none
	declared   map[identity]int  // the document that says what a thing is
}

func (a *application) run(ctx context.Context) error {
	named := 0
	for i, d := range a.docs {
		if d.Spec != nil {
			named += len(d.Spec.references())
		}
		if named > MaxReferences { // each is looked up while others wait to write
			return fmt.Errorf("%w: the documents name more than %d things", store.ErrTooMany, MaxReferences)
		}
		if err := a.checkDocument(ctx, i); err != nil {
			return err
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

// checkDocument looks at a document by itself: whether it was read, where it belongs, and
// whether the principal may put it there.
func (a *application) checkDocument(ctx context.Context, i int) error {
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
			a.addRefusal(i, "document-namespace", "there is no namespace "+quote(d.Namespace)+" that you may use", "write the name of one of your groups, or leave it out")
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

// claimName notes whose document it is, and refuses one that he may not write.
func (a *application) claimName(i int, in store.Namespace) {
	d := a.docs[i]
	id := identity{d.Kind, in, d.Name}
	if other, twice := a.declared[id]; twice {
		a.addRefusal(i, "document-twice", fmt.Sprintf("the %s %s is on line %d already", d.Kind, quote(d.Name), a.docs[other].Line), "remove one of them")
		return
	}
	a.declared[id], a.namespaces[i] = i, in
	if err := account.Check(a.p, applyAction(d.Kind), resourceOf(in, string(a.p.User))); err != nil && d.Kind != SkillKind {
		a.addRefusal(i, codeDenied, err.Error(), "ask an owner or maintainer of the namespace")
	}
}

// codeDenied is the code of findings that say that the principal may not.
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

func (a *application) addRefusal(i int, code, message, fix string) {
	a.addFinding(i, skill.Error, code, message, fix)
	a.result.Changes[i].Outcome = Refused
}

func (a *application) addFinding(i int, s skill.Severity, code, message, fix string) {
	d, c := a.docs[i], &a.result.Changes[i]
	p := &parser{&Document{Findings: c.Findings}}
	p.addFinding(s, code, &configfile.Node{Line: d.Line, Column: d.Column}, message, fix)
	c.Findings = p.doc.Findings
}

// applyDocument applies a document that can be.
func (a *application) applyDocument(ctx context.Context, i int) error {
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

// saveDocument keeps what a document says, where that is something new.
func (a *application) saveDocument(ctx context.Context, i int, old store.Kind, refs []store.Reference) error {
	d, c := a.docs[i], &a.result.Changes[i]
	spec, err := encodeJSON(d.Spec)
	if err != nil {
		return err
	}
	next := record{Description: d.Description, By: string(a.p.User), ServersBy: string(a.p.User), Spec: spec}
	var before record
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
	switch raw, err := encodeJSON(next); {
	case err != nil:
		return err
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

// refuseStale refuses a document that was made from what is not there any more, and says who
// changed it.
func (a *application) refuseStale(ctx context.Context, i int, now store.Kind, by string) error {
	d, c := a.docs[i], &a.result.Changes[i]
	c.Stale = &NewerChange{Generation: now.Generation, By: account.UserID(by), Changed: now.Updated}
	if now.ID == "" {
		a.addRefusal(i, codeStale, fmt.Sprintf("the %s %s of generation %d is not there any more", d.Kind, quote(d.Name), d.BaseGeneration), "leave metadata.generation out, to make it anew")
		return nil
	}
	who, err := a.Users.Get(ctx, by)
	if ignoreNotFound(err) != nil {
		return err
	}
	c.Stale.Name = who.Name
	a.addRefusal(i, codeStale, fmt.Sprintf("%s changed the %s %s at %s: it is of generation %d, and this was made from %d", cmp.Or(quote(who.Name), "somebody"), d.Kind, quote(d.Name),
		now.Updated.UTC().Format(time.RFC3339), now.Generation, d.BaseGeneration), "read it again and change that, or send it with that generation to take its place")
	return nil
}

// codeStale is the code of findings that say that somebody was faster.
const codeStale = "stale"

// applySkill has a skill applied by who keeps skills.
func (a *application) applySkill(ctx context.Context, i int) error {
	d, c := a.docs[i], &a.result.Changes[i]
	s, ok := d.Spec.(*Skill)
	if !ok || a.r.opts.ApplySkill == nil {
		a.addRefusal(i, "skill-package", "skills come as packages here", "upload a ZIP with its SKILL.md")
		return nil
	}
	file, err := s.skillFile(d.Name)
	if err != nil {
		return err
	}
	var was []byte
	c.Outcome, was, err = a.r.opts.ApplySkill(ctx, a.tx, a.p, SkillFile{In: a.namespaces[i], Name: d.Name, Data: file, Same: s.equalTo(d.Name)})
	if denied, ok := errors.AsType[*account.DeniedError](err); ok {
		a.addRefusal(i, codeDenied, denied.Error(), "ask an owner or maintainer of the namespace")
		return nil
	}
	if refused, ok := errors.AsType[*SkillError](err); ok {
		a.addRefusal(i, "skill-refused", refused.Why, refused.Fix)
		return nil
	}
	if err == nil && c.Outcome != Unchanged {
		c.Diff = s.diffFile(d.Name, was)
	}
	return err
}

// recordAllowed adds to the audit log what is done.
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

// recordDenials adds to the audit log what the principal was refused.
func (r *Registry) recordDenials(ctx context.Context, p account.Principal, result *Result) error {
	a := r.newActor(p)
	for _, c := range result.Changes {
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
