package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Referrer is a resource that refers to another resource.
type Referrer struct {
	Kind, ID  string
	Namespace string // as written in documents
	Name      string
	Slot      string // field, such as ghostRef
}

// ReferencedError reports that a resource cannot be deleted because other
// resources refer to it.
type ReferencedError struct {
	Kind, Name string
	By         []Referrer // the visible referrers
	Hidden     int        // number of referrers that the principal is not allowed to see
}

func (e *ReferencedError) Error() string {
	return fmt.Sprintf("%s %q is in use by %d other resources", e.Kind, e.Name, len(e.By)+e.Hidden)
}

// Is reports whether target is [store.ErrReferenced].
func (e *ReferencedError) Is(target error) bool { return target == store.ErrReferenced }

// Delete deletes a resource and its secrets. It returns a [*ReferencedError] if
// other resources refer to it. If dry is set, it changes nothing.
func (r *Registry) Delete(ctx context.Context, p account.Principal, kind, namespace, name string, dry bool) error {
	err := r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{Tables: tx.Tables, p: p}
		k, err := a.getKind(ctx, account.KindDelete, kind, namespace, name)
		if err == nil {
			err = a.deleteResource(ctx, k)
		}
		if err == nil && dry {
			return errRollback
		}
		return err
	})
	if errors.Is(err, errRollback) {
		return nil
	}
	return r.recordDenied(ctx, p, account.KindDelete, kind+"/"+name, err)
}

// deleteResource deletes a resource and its secrets, unless others refer to it.
func (a actor) deleteResource(ctx context.Context, k store.Kind) error {
	by, hidden, err := a.findReferrers(ctx, k)
	if err != nil {
		return err
	}
	if len(by)+hidden > 0 {
		return &ReferencedError{Kind: k.Kind, Name: k.Name, By: by, Hidden: hidden}
	}
	if err := a.Kinds.Delete(ctx, k.ID); err != nil {
		return err
	}
	if _, err := a.Secrets.DeleteByOwner(ctx, string(ServerOwner(k.ID))); err != nil {
		return err
	}
	return a.recordAllowed(ctx, account.KindDelete, k.Namespace, k.Kind+"/"+k.Name, nil)
}

// MaxDeletions is the maximum number of resources that one request deletes.
const MaxDeletions = 20

// Deletion names a resource to delete. Namespace is in the syntax of
// [Registry.ResolveNamespace].
type Deletion struct {
	Kind, Namespace, Name string
	// Generation refuses the deletion if the resource has another one, because it was
	// changed since. 0 means any.
	Generation int64
}

// deletionError reports which resource of a batch could not be deleted.
type deletionError struct {
	subject string
	err     error
}

func (e *deletionError) Error() string { return "delete " + quote(e.subject) + ": " + e.err.Error() }
func (e *deletionError) Unwrap() error { return e.err }

// deleteAll deletes resources, those that refer to others first. It ignores missing
// resources. If the batch also contains a document for one of them, it refuses the
// document and deletes nothing.
func (a *documentBatch) deleteAll(ctx context.Context, deletions []Deletion) error {
	found := make([]store.Kind, 0, len(deletions))
	for _, d := range deletions {
		k, err := a.findToDelete(ctx, d)
		if err != nil {
			return &deletionError{d.Kind + "/" + d.Name, err}
		}
		if k.ID != "" {
			found = append(found, k)
		}
	}
	if a.result.HasRefused() {
		return nil
	}
	slices.SortFunc(found, func(x, y store.Kind) int {
		return cmp.Or(cmp.Compare(slices.Index(kindOrder, y.Kind), slices.Index(kindOrder, x.Kind)), cmp.Compare(x.ID, y.ID))
	})
	found = slices.CompactFunc(found, func(x, y store.Kind) bool { return x.ID == y.ID })
	for _, k := range found {
		if err := a.deleteResource(ctx, k); err != nil {
			return &deletionError{k.Kind + "/" + k.Name, err}
		}
	}
	return nil
}

// findToDelete returns a resource that the actor may delete. It returns a zero
// resource if the resource does not exist, or if the batch contains a document for
// it, which it then refuses.
func (a *documentBatch) findToDelete(ctx context.Context, d Deletion) (store.Kind, error) {
	in, err := a.resolveNamespace(ctx, d.Namespace)
	if err != nil {
		return store.Kind{}, err
	}
	if i, ok := a.declared[identity{d.Kind, in, d.Name}]; ok {
		a.addRefusal(i, "document-deleted", fmt.Sprintf("the request also deletes the %s %s", d.Kind, quote(d.Name)), "either apply or delete it")
		return store.Kind{}, nil
	}
	k, err := a.Kinds.ByName(ctx, d.Kind, in, d.Name)
	if errors.Is(err, store.ErrNotFound) {
		return store.Kind{}, nil
	}
	if err == nil {
		err = a.checkAccess(account.KindDelete, accountResource(k.Namespace, k.CreatedBy), d.Kind, d.Name)
	}
	if err == nil && d.Generation != 0 && d.Generation != k.Generation {
		return store.Kind{}, a.refuseStaleDeletion(ctx, d, k)
	}
	return k, err
}

// refuseStaleDeletion adds a refused change to the result, because the resource to delete
// has another generation than the request states.
func (a *documentBatch) refuseStaleDeletion(ctx context.Context, d Deletion, k store.Kind) error {
	record, err := decodeRecord(k)
	if err != nil {
		return err
	}
	newer, err := a.newerChange(ctx, k, record.By)
	if err != nil {
		return err
	}
	p := &parser{&Document{}}
	p.addError(codeStale, nil, staleMessage(d.Kind, d.Name, newer, d.Generation), "read the resource again, or delete it by sending its generation")
	a.result.Changes = append(a.result.Changes, Change{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Outcome: Refused, Findings: p.doc.Findings, Stale: &newer})
	return nil
}
