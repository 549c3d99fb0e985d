// Package people is who uses a hub: users, groups and their members, API tokens, and
// who is signed in; and the log of what they did.
//
// Each method takes the principal who acts, decides by [account.Check] whether he may,
// and writes what he changed, or was refused to change, to the audit log in the same
// transaction. Nothing is kept in memory: all nodes of a hub see the same at once.
//
// It knows no HTTP, and returns neither passwords nor hashes. Rows are those of package
// store; its errors and those of package account are passed on.
package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
)

// What a caller can act on, besides errors of packages account and store.
var (
	// ErrLastAdmin says that nobody would be left to look after the hub.
	ErrLastAdmin = errors.New("it is the last administrator who can sign in")
	// ErrLastOwner says that nobody would be left to look after a group.
	ErrLastOwner = errors.New("it is the last owner of the group")
	// ErrHasAdmin says that the hub has an administrator already.
	ErrHasAdmin = errors.New("the hub has an administrator already")
	// ErrSetup says that a first administrator is made with the link of the last day only.
	ErrSetup = errors.New("the link was not made by this hub, or more than a day ago")
	// ErrNoAccount says that a provider knows somebody who has no account here.
	ErrNoAccount = errors.New("you have no account on this hub")
	// ErrDisabled says that somebody's account is disabled.
	ErrDisabled = errors.New("the account is disabled")
)

// InvalidError says what of a request cannot be taken, and why.
type InvalidError struct {
	Field string // as name, or members.role
	Why   string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Why }

// Bounds of what people are called.
const (
	MaxName        = 64   // characters of the name of a user or a group
	MaxDisplay     = 200  // bytes
	MaxEmail       = 254  // bytes
	MaxDescription = 4000 // bytes
	MaxTokens      = 100  // that a user has at once
)

// People are those of a hub, one field for each noun. It is safe for concurrent use.
type People struct {
	Users   Users
	Groups  Groups
	Tokens  Tokens
	SignIns SignIns
	Audit   Audit
}

// Options are what [New] needs besides a database.
type Options struct {
	Passwords *account.Passwords
	Sealer    *seal.Sealer // of the link with which the first administrator is made
}

// New returns the people of a database.
func New(db *store.DB, o Options) *People {
	b := &book{db: db, passwords: o.Passwords, sealer: o.Sealer}
	return &People{Users: Users{b}, Groups: Groups{b}, Tokens: Tokens{b}, SignIns: SignIns{b}, Audit: Audit{b}}
}

// book is what the nouns share.
type book struct {
	db        *store.DB
	passwords *account.Passwords
	sealer    *seal.Sealer
}

// act is something that somebody does, as the audit log has it.
type act struct {
	by      account.Principal
	action  account.Action
	in      store.Namespace // "" is the hub
	subject string          // an id
	details any
}

// may decides whether an act may be done on a resource, and records where it may not.
func (b *book) may(ctx context.Context, a act, r account.Resource) error {
	err := account.Check(a.by, a.action, r)
	if err == nil || a.by.Anonymous() {
		return err
	}
	return errors.Join(err, record(ctx, b.db.Audit, a, "denied"))
}

// change makes a change with its record, or neither. f may be called several times.
// It may also set what a says of it.
func (b *book) change(ctx context.Context, a *act, f func(tx *store.Tx) error) error {
	return b.db.Tx(ctx, func(tx *store.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return record(ctx, tx.Audit, *a, "allowed")
	})
}

func record(ctx context.Context, audit store.Audit, a act, decision string) error {
	r := store.Record{Actor: string(a.by.User), Action: string(a.action), Namespace: a.in, Subject: a.subject, Decision: decision}
	if a.details != nil {
		data, err := json.Marshal(a.details)
		if err != nil {
			return fmt.Errorf("record %s: %w", a.action, err)
		}
		r.Details = data
	}
	return audit.Append(ctx, r)
}

// reserved are names that mean something else where a user or a group is named.
var reserved = []string{"public", "default", "bundled", "system", "hub", "me", "local"}

// checkName refuses what no user or group is called: names are written in addresses
// and on command lines, and no two differ by case alone.
func checkName(name string) error {
	const why = "it has 1 to 64 of a–z, 0–9, . _ and -, and begins with a letter or a digit"
	for i, r := range name {
		plain := 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
		if !plain && (i == 0 || !strings.ContainsRune("._-", r)) {
			return &InvalidError{"name", why}
		}
	}
	if name == "" || len(name) > MaxName {
		return &InvalidError{"name", why}
	}
	for _, r := range reserved {
		if name == r {
			return &InvalidError{"name", fmt.Sprintf("%q has a meaning of its own; take another", name)}
		}
	}
	return nil
}

// checkText refuses what is too long, no text, or would drive a terminal.
func checkText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return &InvalidError{field, fmt.Sprintf("it has more than %d bytes", most)}
	case !utf8.ValidString(text):
		return &InvalidError{field, "it is no text"}
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		return &InvalidError{field, "it has control characters"}
	}
	return nil
}

// checkEmail refuses what is surely no address of mail. Nothing is sent there.
func checkEmail(email string) error {
	if email == "" {
		return nil
	}
	name, host, _ := strings.Cut(email, "@")
	if name == "" || host == "" || strings.ContainsFunc(email, unicode.IsSpace) {
		return &InvalidError{"email", "it is no address of mail"}
	}
	return checkText("email", email, MaxEmail)
}
