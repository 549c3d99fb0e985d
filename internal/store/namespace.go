package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Namespace identifies the owner of an item: a user, a group, the public, or the
// operator of the hub. It also determines who can see the item.
type Namespace string

// Namespaces that everyone can see.
const (
	Public Namespace = "public"
	// Operator has the skills of the operator's directories, and Bundled those
	// that ship with the program. Users cannot change them.
	Operator Namespace = "hub"
	Bundled  Namespace = "bundled"
)

const (
	userPrefix  = "user:"
	groupPrefix = "group:"
)

// UserNamespace returns the namespace of a user.
func UserNamespace(id string) Namespace { return userPrefix + Namespace(id) }

// GroupNamespace returns the namespace of a group.
func GroupNamespace(id string) Namespace { return groupPrefix + Namespace(id) }

// User returns the id of the user who owns the namespace, or "".
func (n Namespace) User() string { return n.id(userPrefix) }

// Group returns the id of the group that owns the namespace, or "".
func (n Namespace) Group() string { return n.id(groupPrefix) }

// IsShared reports whether everyone can see the namespace.
func (n Namespace) IsShared() bool { return n == Public || n.IsReadOnly() }

// IsReadOnly reports whether only the hub itself changes the namespace.
func (n Namespace) IsReadOnly() bool { return n == Operator || n == Bundled }

func (n Namespace) id(prefix string) string {
	id, ok := strings.CutPrefix(string(n), prefix)
	if !ok {
		return ""
	}
	return id
}

// validate returns an error if the namespace is malformed.
func (n Namespace) validate() error {
	if !n.IsShared() && n.User() == "" && n.Group() == "" {
		return fmt.Errorf("%w: malformed namespace %.100q", ErrInvalid, string(n))
	}
	return nil
}

// MaxNamespaces is the maximum number of namespaces per query.
const MaxNamespaces = 256

// checkNamespaces returns an error if a query has too many namespaces.
func checkNamespaces(in []Namespace) error {
	if len(in) > MaxNamespaces {
		return fmt.Errorf("%w: %d namespaces, limit %d", ErrInvalid, len(in), MaxNamespaces)
	}
	return nil
}

// clearNamespace deletes the defaults, settings and secrets of a namespace. It
// fails with [ErrReferenced] while the namespace holds resources or lists
// skills. The caller must be in a transaction.
func (c conn) clearNamespace(ctx context.Context, n Namespace) error {
	for _, table := range []string{"skills", "listings", "kinds"} {
		count, err := queryScalar[int64](ctx, c, "SELECT count(*) FROM "+table+" WHERE namespace = $1", string(n))
		if err != nil || count > 0 {
			return referencedError(err, "%d %s", count, table)
		}
	}
	for _, query := range []string{
		"DELETE FROM defaults WHERE namespace = $1",
		"DELETE FROM settings WHERE scope = $1",
	} {
		if _, err := c.exec(ctx, query, string(n)); err != nil {
			return err
		}
	}
	_, err := Secrets{c}.DeleteByOwner(ctx, string(n))
	return err
}

// referencedError returns err, or an [ErrReferenced] with a reason if err is nil.
func referencedError(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: "+format, append([]any{ErrReferenced}, args...)...)
}

// toNotFound replaces [ErrReferenced] with [ErrNotFound]. An INSERT fails with
// ErrReferenced if the row that it refers to does not exist.
func toNotFound(err error) error {
	if errors.Is(err, ErrReferenced) {
		return ErrNotFound
	}
	return err
}
