package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Namespace is whose something is: a user's, a group's, or everybody's.
type Namespace string

// Public is the namespace that everybody sees.
const Public Namespace = "public"

const (
	userPrefix  = "user:"
	groupPrefix = "group:"
)

// UserNamespace is that of the user with an id.
func UserNamespace(id string) Namespace { return userPrefix + Namespace(id) }

// GroupNamespace is that of the group with an id.
func GroupNamespace(id string) Namespace { return groupPrefix + Namespace(id) }

// User is the id of the user whose namespace it is, "" where it is no user's.
func (n Namespace) User() string { return n.id(userPrefix) }

// Group is the id of the group whose namespace it is, "" where it is no group's.
func (n Namespace) Group() string { return n.id(groupPrefix) }

func (n Namespace) id(prefix string) string {
	id, ok := strings.CutPrefix(string(n), prefix)
	if !ok {
		return ""
	}
	return id
}

// check says whether it is a namespace at all.
func (n Namespace) check() error {
	if n != Public && n.User() == "" && n.Group() == "" {
		return fmt.Errorf("%w: %.100q is no namespace", ErrInvalid, string(n))
	}
	return nil
}

// MaxNamespaces bounds those of one question.
const MaxNamespaces = 256

// checkNamespaces says whether a question about namespaces can be asked.
func checkNamespaces(in []Namespace) error {
	if len(in) > MaxNamespaces {
		return fmt.Errorf("%w: %d namespaces, more than %d", ErrInvalid, len(in), MaxNamespaces)
	}
	return nil
}

// clear removes in a transaction what belongs to a namespace, but fails with
// [ErrReferenced] where it has skills or resources, or others are published to it.
func (c conn) clear(ctx context.Context, n Namespace) error {
	for _, table := range []string{"skills", "listings", "kinds"} {
		count, err := scalar[int64](ctx, c, "SELECT count(*) FROM "+table+" WHERE namespace = $1", string(n))
		if err != nil || count > 0 {
			return referenced(err, "%d %s", count, table)
		}
	}
	for _, query := range []string{
		"DELETE FROM defaults WHERE namespace = $1",
		"DELETE FROM settings WHERE scope = $1",
		"DELETE FROM secrets WHERE owner = $1",
	} {
		if _, err := c.exec(ctx, query, string(n)); err != nil {
			return err
		}
	}
	return nil
}

// referenced is err, or an [ErrReferenced] that says by what.
func referenced(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: "+format, append([]any{ErrReferenced}, args...)...)
}

// parentless says of a row that names another one, and could not be added, that the other
// one is not there.
func parentless(err error) error {
	if errors.Is(err, ErrReferenced) {
		return ErrNotFound
	}
	return err
}
