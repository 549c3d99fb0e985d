// Package users manages a hub's users, groups, API tokens, sign-ins and audit log.
//
// Each method takes the acting principal and authorizes it with [account.Check]. It
// writes each change to the audit log in the same transaction, and also records
// denied changes. The package caches nothing, so all nodes of a hub see the same
// state.
//
// It does not depend on HTTP, and never returns passwords or hashes. Errors from
// packages store and account are returned unchanged.
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

// Errors that a caller can handle, in addition to errors from packages account
// and store.
var (
	// ErrLastAdmin is returned if the hub would lose its last administrator.
	ErrLastAdmin = errors.New("cannot remove the last administrator who can sign in")
	// ErrLastOwner is returned if a group would lose its last owner.
	ErrLastOwner = errors.New("cannot remove the last owner of the group")
	// ErrHasAdmin is returned if the hub already has an administrator.
	ErrHasAdmin = errors.New("hub already has an administrator")
	// ErrSetup is returned if a setup link is invalid or older than a day.
	ErrSetup = errors.New("setup link is invalid or older than a day")
	// ErrNoAccount is returned if a user of the identity provider has no account on
	// the hub.
	ErrNoAccount = errors.New("you have no account on this hub")
	// ErrDisabled is returned if the account is disabled.
	ErrDisabled = errors.New("account is disabled")
)

// InvalidError reports which field of a request is invalid and why.
type InvalidError struct {
	Field  string // for example name or members.role
	Reason string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// Limits for names, texts and tokens.
const (
	MaxName        = 64   // characters of a user or group name
	MaxDisplay     = 200  // bytes
	MaxEmail       = 254  // bytes
	MaxDescription = 4000 // bytes
	MaxTokens      = 100  // tokens per user
)

// Directory manages users, groups, tokens, sign-ins and the audit log. It is
// safe for concurrent use.
type Directory struct {
	Users   Users
	Groups  Groups
	Tokens  Tokens
	SignIns SignIns
	Audit   Audit
	Quotas  Quotas

	Invitations Invitations
}

// Options configures [New].
type Options struct {
	Passwords *account.Passwords
	Cipher    *encryption.Cipher // encrypts the setup link for the first administrator
	Inviters  Inviters           // "" for Owners
}

// New returns the directory of the users in a database.
func New(db *store.DB, o Options) *Directory {
	b := &core{db: db, passwords: o.Passwords, cipher: o.Cipher, inviters: o.Inviters}
	return &Directory{Users: Users{b}, Groups: Groups{b}, Tokens: Tokens{b}, SignIns: SignIns{b}, Audit: Audit{b}, Quotas: Quotas{b: b}, Invitations: Invitations{b}}
}

// core holds the dependencies shared by all parts of a [Directory].
type core struct {
	db        *store.DB
	passwords *account.Passwords
	cipher    *encryption.Cipher
	inviters  Inviters
}

// auditedAction describes an action for the audit log.
type auditedAction struct {
	by      account.Principal
	action  account.Action
	in      store.Namespace // "" for the hub
	subject string          // ID of the item
	details any
}

// authorize returns an error if the principal may not perform the action on a
// resource. It records the denial.
func (b *core) authorize(ctx context.Context, a auditedAction, r account.Resource) error {
	err := account.Check(a.by, a.action, r)
	if err == nil || a.by.Anonymous() {
		return err
	}
	return errors.Join(err, appendAudit(ctx, b.db.Audit, a, "denied"))
}

// commit calls f to make a change and stores the audit record a, both in one
// transaction. It may call f several times. f may modify a.
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
			return fmt.Errorf("record %s in audit log: %w", a.action, err)
		}
		r.Details = data
	}
	return audit.Append(ctx, r)
}

// reserved lists names that users and groups must not have.
var reserved = []string{"public", "default", "bundled", "system", "hub", "me", "local"}

// checkName returns an error if the name of a user or group is invalid. Names
// must be lower-case, because they are used in URLs and on command lines.
func checkName(name string) error {
	const why = "must have 1 to 64 of the characters a–z, 0–9, . _ and -, and start with a letter or digit"
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

// checkText returns an error if text is longer than limit bytes, is not valid
// UTF-8, or contains control characters, which could affect a terminal.
func checkText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return &InvalidError{field, fmt.Sprintf("must have at most %d bytes", limit)}
	case !utf8.ValidString(text):
		return &InvalidError{field, "must be valid UTF-8"}
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		return &InvalidError{field, "must not contain control characters"}
	}
	return nil
}

// checkEmail returns an error if email cannot be an email address. The check is
// simple, because the hub sends no mail.
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
