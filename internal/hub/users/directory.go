// Package users manages the users of a hub, their groups, API tokens and
// sign-ins, and the audit log.
//
// Each method takes the acting principal and authorizes it with
// [account.Check]. It writes each change and each denied change to the audit
// log, in the same transaction. The package caches nothing, so all nodes of a
// hub see the same state.
//
// It does not know HTTP and returns neither passwords nor hashes. It passes on
// errors of packages store and account.
package users

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// The errors that a caller can act on, besides those of packages account and
// store.
var (
	// ErrLastAdmin says that the hub would lose its last administrator.
	ErrLastAdmin = errors.New("last administrator who can sign in")
	// ErrLastOwner says that a group would lose its last owner.
	ErrLastOwner = errors.New("last owner of the group")
	// ErrHasAdmin says that the hub has an administrator.
	ErrHasAdmin = errors.New("the hub already has an administrator")
	// ErrSetup says that a setup link is invalid or more than a day old.
	ErrSetup = errors.New("setup link is invalid or older than a day")
	// ErrNoAccount says that a user of the identity provider has no account on
	// the hub.
	ErrNoAccount = errors.New("you have no account on this hub")
	// ErrDisabled says that the account is disabled.
	ErrDisabled = errors.New("account is disabled")
)

// InvalidError says which field of a request is invalid and why.
type InvalidError struct {
	Field  string // for example name or members.role
	Reason string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// Limits of names, texts and tokens.
const (
	MaxName        = 64   // characters of a user or group name
	MaxDisplay     = 200  // bytes
	MaxEmail       = 254  // bytes
	MaxDescription = 4000 // bytes
	MaxTokens      = 100  // of one user at once
)

// Directory manages users, groups, tokens, sign-ins and the audit log. It is
// safe for concurrent use.
type Directory struct {
	Users   Users
	Groups  Groups
	Tokens  Tokens
	SignIns SignIns
	Audit   Audit
}

// Options configure [New].
type Options struct {
	Passwords *account.Passwords
	Cipher    *encryption.Cipher // encrypts the link for the first administrator
}

// New returns the directory of a database.
func New(db *store.DB, o Options) *Directory {
	b := &core{db: db, passwords: o.Passwords, cipher: o.Cipher}
	return &Directory{Users: Users{b}, Groups: Groups{b}, Tokens: Tokens{b}, SignIns: SignIns{b}, Audit: Audit{b}}
}

// core is shared by all parts of a [Directory].
type core struct {
	db        *store.DB
	passwords *account.Passwords
	cipher    *encryption.Cipher
}

// auditedAction is an action as the audit log records it.
type auditedAction struct {
	by      account.Principal
	action  account.Action
	in      store.Namespace // "" for the hub
	subject string          // an id
	details any
}

// authorize checks whether a principal may do an action on a resource, and
// records a denial.
func (b *core) authorize(ctx context.Context, a auditedAction, r account.Resource) error {
	err := account.Check(a.by, a.action, r)
	if err == nil || a.by.Anonymous() {
		return err
	}
	return errors.Join(err, appendAudit(ctx, b.db.Audit, a, "denied"))
}

// commit makes a change and its audit record in one transaction. It may call f
// several times. f may modify a.
func (b *core) commit(ctx context.Context, a *auditedAction, f func(tx *store.Tx) error) error {
	return b.db.Tx(ctx, func(tx *store.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return appendAudit(ctx, tx.Audit, *a, "allowed")
	})
}

func appendAudit(ctx context.Context, audit store.Audit, a auditedAction, decision string) error {
	r := store.AuditRecord{Actor: string(a.by.User), Action: string(a.action), Namespace: a.in, Subject: a.subject, Decision: decision}
	if a.details != nil {
		data, err := json.Marshal(a.details)
		if err != nil {
			return fmt.Errorf("record %s: %w", a.action, err)
		}
		r.Details = data
	}
	return audit.Append(ctx, r)
}

// reserved lists names with a special meaning.
var reserved = []string{"public", "default", "bundled", "system", "hub", "me", "local"}

// checkName checks the name of a user or group. Names are written in URLs and
// on command lines, and never differ in case only.
func checkName(name string) error {
	const why = "must have 1 to 64 of a–z, 0–9, . _ and -, and start with a letter or a digit"
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
			return &InvalidError{"name", fmt.Sprintf("%q is reserved; choose another name", name)}
		}
	}
	return nil
}

// checkText rejects text that is too long, not valid UTF-8, or could control a
// terminal.
func checkText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return &InvalidError{field, fmt.Sprintf("longer than %d bytes", most)}
	case !utf8.ValidString(text):
		return &InvalidError{field, "not valid text"}
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		return &InvalidError{field, "contains control characters"}
	}
	return nil
}

// checkEmail rejects what cannot be an email address. The hub sends no mail.
func checkEmail(email string) error {
	if email == "" {
		return nil
	}
	name, host, _ := strings.Cut(email, "@")
	if name == "" || host == "" || strings.ContainsFunc(email, unicode.IsSpace) {
		return &InvalidError{"email", "not an email address"}
	}
	return checkText("email", email, MaxEmail)
}
