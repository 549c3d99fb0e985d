package users

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// signIn is the name of a sign-in in the audit log. It is not an action that
// users can be authorized to perform.
const signIn account.Action = "sign-in"

// SignIns authenticates users who sign in, and manages their sign-ins.
type SignIns struct{ b *core }

// Principal returns the principal of a user with all scopes and records the user's
// activity. It fails with [account.ErrInvalidCredentials] if the user was deleted
// or is disabled.
func (s SignIns) Principal(ctx context.Context, id account.UserID) (account.Principal, error) {
	row, err := s.b.db.Users.Get(ctx, string(id))
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && row.Disabled:
		return account.Principal{}, account.ErrInvalidCredentials
	case err != nil:
		return account.Principal{}, err
	}
	groups, err := readGroups(ctx, s.b.db.Groups, id)
	if err != nil {
		return account.Principal{}, err
	}
	if now := time.Now(); now.Sub(row.LastSeen) >= time.Minute {
		if err := s.b.db.Users.Touch(ctx, row.ID, now); err != nil {
			return account.Principal{}, err
		}
	}
	return account.Principal{User: id, Name: row.Name, Admin: row.Admin, Groups: groups, Scopes: account.AllScopes}, nil
}

// ByIdentity returns the principal of the user with the given identity at the
// provider. It fails with [account.ErrInvalidCredentials] if the user has not signed
// in to this hub before.
func (s SignIns) ByIdentity(ctx context.Context, id *account.Identity) (account.Principal, error) {
	row, err := s.b.db.Users.ByIdentity(ctx, id.Issuer, id.Subject)
	if errors.Is(err, store.ErrNotFound) {
		return account.Principal{}, account.ErrInvalidCredentials
	}
	if err != nil {
		return account.Principal{}, err
	}
	return s.Principal(ctx, account.UserID(row.ID))
}

// LocalPrincipal returns the principal of a hub without accounts. It fails with
// [ErrHasAdmin] if another process has created accounts.
func (s SignIns) LocalPrincipal(ctx context.Context) (account.Principal, error) {
	p := account.SinglePrincipal()
	switch vacant, err := s.HasNoAdmin(ctx); {
	case err != nil:
		return account.Principal{}, err
	case !vacant:
		return account.Principal{}, ErrHasAdmin
	}
	var err error
	p.Groups, err = readGroups(ctx, s.b.db.Groups, p.User)
	return p, err
}

func readGroups(ctx context.Context, t store.Groups, id account.UserID) (map[account.GroupID]account.Role, error) {
	memberships, err := t.ListMemberships(ctx, string(id))
	groups := make(map[account.GroupID]account.Role, len(memberships))
	for _, m := range memberships {
		groups[account.GroupID(m.GroupID)] = accountRole(m.Role)
	}
	return groups, err
}

// errPasswordChanged is returned if a password was changed while it was being
// checked.
var errPasswordChanged = errors.New("password changed during the sign-in")

// ByPassword signs in the user with the given name and password: it stores login
// for this user and returns the user. It fails with [account.ErrWrongPassword] if
// name or password is wrong, even if the password was right when the check began,
// and with [ErrDisabled] if both are right but the user is disabled. It records
// attempts for existing users. If there are many checks at once, clients take
// turns.
func (s SignIns) ByPassword(ctx context.Context, client account.Client, name, password string, login account.Login) (account.UserID, error) {
	for range 2 { // the second time if the password was changed, or only its hash
		user, err := s.tryPassword(ctx, client, name, password, login)
		if !errors.Is(err, errPasswordChanged) {
			return user, err
		}
	}
	return "", account.ErrWrongPassword
}

func (s SignIns) tryPassword(ctx context.Context, client account.Client, name, password string, login account.Login) (account.UserID, error) {
	row, err := s.b.db.Users.ByName(ctx, strings.ToLower(name))
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid) {
		return "", err
	}
	again, err := s.b.passwords.Check(ctx, client, row.Password, password) // takes as long for unknown users
	a := auditedAction{action: signIn, in: store.UserNamespace(row.ID), subject: row.ID, details: map[string]any{"by": "password"}}
	switch {
	case err == nil && row.Disabled:
		return "", errors.Join(ErrDisabled, appendAudit(ctx, s.b.db.Audit, a, "denied"))
	case errors.Is(err, account.ErrWrongPassword) && row.ID != "":
		return "", errors.Join(err, appendAudit(ctx, s.b.db.Audit, a, "denied"))
	case err != nil:
		return "", err
	}
	var hash string
	if again { // ignore errors: a password that is now too weak stays valid
		hash, _ = s.b.passwords.Hash(ctx, account.UserClient(account.UserID(row.Name)), row.Name, password)
	}
	return s.startLogin(ctx, row, hash, login)
}

// startLogin stores the sign-in of a user whose password was checked. If hash is
// not "", it becomes the user's password hash. startLogin fails with
// errPasswordChanged if row.Password is no longer the user's password hash: the
// password may have changed during the check, and such a change ends only the
// sign-ins that exist at that time.
func (s SignIns) startLogin(ctx context.Context, row store.User, hash string, login account.Login) (account.UserID, error) {
	login.User = account.UserID(row.ID)
	a := auditedAction{by: account.Principal{User: login.User}, action: signIn, in: store.UserNamespace(row.ID), subject: row.ID, details: map[string]any{"by": "password"}}
	err := s.b.commit(ctx, &a, func(tx *store.Tx) error {
		if err := checkPasswordIs(ctx, tx, row); err != nil {
			return err
		}
		if hash != "" {
			if err := tx.Users.SetPassword(ctx, row.ID, hash); err != nil {
				return err
			}
		}
		return addLogin(ctx, tx.Logins, login)
	})
	if err != nil {
		return "", err
	}
	return login.User, nil
}

// checkPasswordIs fails with errPasswordChanged if the user's password hash
// differs from that in old, or if the user was deleted.
func checkPasswordIs(ctx context.Context, tx *store.Tx, old store.User) error {
	row, err := tx.Users.Get(ctx, old.ID)
	if errors.Is(err, store.ErrNotFound) || err == nil && row.Password != old.Password {
		return errPasswordChanged
	}
	return err
}

// ByProvider returns the user with the given identity at the provider and applies
// [Rules] to the user's groups. It creates an account for a new user if a rule
// matches or everyone is set. Otherwise a new user who returns to the page of an
// invitation uses the invitation, and returns to / instead; users with an account
// confirm on that page that they join. ByProvider fails with [ErrNoAccount] or
// [ErrInvitation] if a new user may have no account.
func (s SignIns) ByProvider(ctx context.Context, id *account.Identity, everyone bool) (account.UserID, error) {
	link := linkIn(id.ReturnTo)
	invitation, err := Invitations(s).find(ctx, link)
	if err != nil && !errors.Is(err, ErrInvitation) {
		return "", err
	}
	joined := false
	a := auditedAction{action: signIn, details: map[string]any{"by": id.Issuer}}
	err = s.b.commit(ctx, &a, func(tx *store.Tx) error {
		joined = false
		rules, err := activeRules(ctx, tx)
		if err != nil {
			return err
		}
		groups, admin := account.MatchGroupRules(rules, id.Groups)
		row, err := tx.Users.ByIdentity(ctx, id.Issuer, id.Subject)
		if errors.Is(err, store.ErrNotFound) {
			joined = len(groups) == 0 && !admin && !everyone
			if joined && link == "" {
				return ErrNoAccount
			}
			row, err = createUser(ctx, tx, id)
			if err == nil && joined {
				err = s.b.joinNew(ctx, tx, row, invitation.ID)
			}
		}
		switch {
		case err != nil:
			return err
		case row.Disabled:
			return ErrDisabled
		}
		a.by.User, a.in, a.subject = account.UserID(row.ID), store.UserNamespace(row.ID), row.ID
		if joined { // no rule applies, and those that name the group would end the new membership
			return nil
		}
		return applyRules(ctx, tx, row, rules, groups, admin)
	})
	if err == nil && joined {
		id.ReturnTo = "/"
	}
	return a.by.User, err
}

// createUser creates a user for an identity. If the suggested name is taken, it
// appends a number.
func createUser(ctx context.Context, tx *store.Tx, id *account.Identity) (store.User, error) {
	suggested := normalizeName(id.Name)
	name := suggested
	for n := 2; ; n++ {
		_, err := tx.Users.ByName(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return store.User{}, err
		}
		if n > 100 { // use a random suffix
			id := store.NewID()
			name = suggested + "-" + id[len(id)-8:]
			break
		}
		name = fmt.Sprintf("%s-%d", suggested, n)
	}
	email := id.Email
	if checkEmail(email) != nil {
		email = ""
	}
	row, err := tx.Users.Create(ctx, store.User{Name: name, Email: email})
	if err != nil {
		return store.User{}, err
	}
	return row, tx.Users.LinkIdentity(ctx, row.ID, id.Issuer, id.Subject)
}

// normalizeName converts a suggested name to a valid user name.
func normalizeName(suggested string) string {
	suggested, _, _ = strings.Cut(strings.ToLower(suggested), "@")
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, suggested)
	name = strings.Trim(name[:min(len(name), MaxName-20)], "._-")
	if checkName(name) != nil {
		return strings.Trim("user-"+name, "-")
	}
	return name
}

// applyRules adds a user to the groups that the rules assign, and removes the user
// from other groups that the rules name. It never removes the last owner of a group
// or the last administrator. It changes the admin flag only if some rule assigns
// it.
func applyRules(ctx context.Context, tx *store.Tx, row store.User, rules []account.GroupRule, groups map[account.GroupID]account.Role, admin bool) error {
	for g := range groupsInRules(rules) {
		from, err := memberRole(ctx, tx, g, account.UserID(row.ID))
		if err != nil {
			return err
		}
		to := groups[g]
		if from == to {
			continue
		}
		if from == account.Owner {
			if n, err := tx.Groups.CountWithRole(ctx, string(g), store.Owner); err != nil || n == 1 {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := setRole(ctx, tx, g, account.UserID(row.ID), from, to); err != nil {
			return fmt.Errorf("apply group rules: %w", err)
		}
	}
	makes := false
	for _, r := range rules {
		makes = makes || r.Admin
	}
	if !makes || row.Admin == admin {
		return nil
	}
	if n, err := tx.Users.CountAdmins(ctx); err != nil || n == 1 && !admin {
		return err
	}
	row.Admin = admin
	return tx.Users.Update(ctx, row)
}

// groupsInRules returns the groups that the rules name.
func groupsInRules(rules []account.GroupRule) map[account.GroupID]bool {
	out := map[account.GroupID]bool{}
	for _, r := range rules {
		if r.Group != "" {
			out[r.Group] = true
		}
	}
	return out
}

// Valid reports which of the sign-ins with the given cookie hashes are still
// valid. There may be up to [store.MaxPage] hashes. It checks no permissions: the
// hub itself calls it to end connections.
func (s SignIns) Valid(ctx context.Context, hashes ...string) (map[string]bool, error) {
	keys := make([][]byte, len(hashes))
	for i, hash := range hashes {
		keys[i] = []byte(hash)
	}
	rows, err := s.b.db.Logins.GetMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	good, now := map[string]bool{}, time.Now()
	for _, row := range rows {
		good[string(row.Hash)] = now.Before(row.Expires)
	}
	return good, nil
}

// List returns a user's browser sign-ins, oldest first. It fails with
// [store.ErrNotFound] if there is no such user.
func (s SignIns) List(ctx context.Context, p account.Principal, user account.UserID) ([]account.Login, error) {
	if err := account.Check(p, account.TokenList, account.OwnedBy(user)); err != nil {
		return nil, err
	}
	if _, err := s.b.db.Users.Get(ctx, string(user)); err != nil {
		return nil, err
	}
	rows, err := s.b.db.Logins.ListByUser(ctx, string(user))
	out := make([]account.Login, len(rows))
	for i, row := range rows {
		out[i] = newLogin(row)
	}
	return out, err
}

// SignOut ends all of a user's browser sign-ins, except the one whose hash is
// keptHash, which may be nil. It fails with [store.ErrNotFound] if there is no such
// user.
func (s SignIns) SignOut(ctx context.Context, p account.Principal, user account.UserID, keptHash []byte) error {
	a := auditedAction{by: p, action: account.TokenRevoke, in: store.UserNamespace(string(user)), subject: string(user), details: map[string]any{"change": "sign out"}}
	if err := s.b.authorize(ctx, a, account.OwnedBy(user)); err != nil {
		return err
	}
	return s.b.commit(ctx, &a, func(tx *store.Tx) error {
		if _, err := tx.Users.Get(ctx, string(user)); err != nil {
			return err
		}
		_, err := tx.Logins.DeleteByUser(ctx, string(user), keptHash)
		return err
	})
}
