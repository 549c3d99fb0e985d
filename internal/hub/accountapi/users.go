package accountapi

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

type userJSON struct {
	ID       string       `json:"id"`
	Name     string       `json:"name"`
	Display  string       `json:"display"`
	Disabled bool         `json:"disabled"`
	Account  *accountJSON `json:"account,omitempty" doc:"Only for the user and administrators"`
}

type accountJSON struct {
	Email    string     `json:"email"`
	Admin    bool       `json:"admin"`
	Password bool       `json:"password" doc:"Whether the user has a password"`
	Created  time.Time  `json:"created"`
	Seen     *time.Time `json:"seen,omitempty" doc:"Accurate to about a minute"`
}

func newUserJSON(u users.User) userJSON {
	out := userJSON{ID: string(u.ID), Name: u.Name, Display: u.Display, Disabled: u.Disabled}
	if u.Full {
		out.Account = &accountJSON{Email: u.Email, Admin: u.Admin, Password: u.Password, Created: u.Created, Seen: api.OptionalTime(u.LastSeen)}
	}
	return out
}

// UserPath is the path parameter for a user.
type UserPath struct {
	User string `path:"user" maxLength:"64" doc:"ID of a user, or me"`
}

func (o UserPath) id(p account.Principal) account.UserID { return api.UserID(p, o.User) }

type newUser struct {
	Name     string `json:"name" maxLength:"64" doc:"Name for signing in; cannot be changed"`
	Display  string `json:"display,omitempty" maxLength:"200"`
	Email    string `json:"email,omitempty" maxLength:"254"`
	Password string `json:"password,omitempty" maxLength:"1024" doc:"At least 10 characters; without it, the user signs in through a provider"`
	Admin    bool   `json:"admin,omitempty"`
}

type userChange struct {
	Display  *string `json:"display,omitempty" maxLength:"200"`
	Email    *string `json:"email,omitempty" maxLength:"254"`
	Admin    *bool   `json:"admin,omitempty" doc:"For administrators only"`
	Disabled *bool   `json:"disabled,omitempty" doc:"For administrators only; ends all sign-ins of the user"`
}

type passwordChange struct {
	Current  string `json:"current,omitempty" maxLength:"1024" doc:"Required for your own password, if you have one"`
	Password string `json:"password" maxLength:"1024"`
	Revoke   bool   `json:"revoke_tokens,omitempty" doc:"Also revoke all API tokens of the user"`
}

// loginJSON describes a browser sign-in.
type loginJSON struct {
	Agent   string    `json:"agent" doc:"User-Agent of the browser"`
	Began   time.Time `json:"began"`
	Seen    time.Time `json:"seen"`
	Ends    time.Time `json:"ends"`
	Current bool      `json:"current" doc:"Whether it is the calling browser"`
}

func (h *Handlers) usersAPI() {
	api.Add(h.Server, api.Operation("list-users", "GET", "/users", "List users by name, or find one by name. Administrators are listed for administrators and members of their groups"), h.listUsers)
	api.Add(h.Server, api.WithCreated(api.Operation("make-user", "POST", "/users", "Create a user")), h.createUser)
	api.Add(h.Server, api.Operation("get-user", "GET", "/users/{user}", "Get a user"), h.getUser)
	api.Add(h.Server, api.Operation("change-user", "PATCH", "/users/{user}", "Change a user"), h.changeUser)
	api.Add(h.Server, api.Operation("delete-user", "DELETE", "/users/{user}", "Delete a user without skills, agents and conversations"), h.deleteUser)
	api.Add(h.Server, api.Operation("set-password", "PUT", "/users/{user}/password", "Set a password, end all sign-ins of the user, and optionally revoke the API tokens. Your own browser gets a new cookie"), h.setPassword)
	api.Add(h.Server, api.Operation("list-sign-ins", "GET", "/users/{user}/sign-ins", "List the browser sign-ins of a user"), h.listSignIns)
	api.Add(h.Server, api.Operation("end-sign-ins", "DELETE", "/users/{user}/sign-ins", "End all other sign-ins of a user"), h.endSignIns)
}

func (h *Handlers) listUsers(ctx context.Context, in *struct {
	api.Paging
	Name string `query:"name" maxLength:"64" doc:"Only the user with this name"`
}) (*api.Body[api.ListBody[userJSON]], error) {
	p := account.FromContext(ctx)
	if in.Name == "" {
		users, next, err := h.Directory.Users.List(ctx, p, in.Page())
		return api.PageOf(users, next, err, newUserJSON)
	}
	user, err := h.Directory.Users.ByName(ctx, p, in.Name)
	return api.PageOf([]users.User{user}, "", err, newUserJSON)
}

func (h *Handlers) createUser(ctx context.Context, in *struct{ Body newUser }) (*api.CreatedBody[userJSON], error) {
	user, err := h.Directory.Users.Create(ctx, account.FromContext(ctx), users.NewUser(in.Body))
	return api.CreatedAt(string(user.ID), "users", newUserJSON(user), err)
}

func (h *Handlers) getUser(ctx context.Context, in *UserPath) (*api.Body[userJSON], error) {
	p := account.FromContext(ctx)
	user, err := h.Directory.Users.Get(ctx, p, in.id(p))
	return api.BodyOf(newUserJSON(user), err)
}

func (h *Handlers) changeUser(ctx context.Context, in *struct {
	UserPath
	Body userChange
}) (*api.Body[userJSON], error) {
	p := account.FromContext(ctx)
	user, err := h.Directory.Users.Change(ctx, p, in.id(p), users.UserChange(in.Body))
	return api.BodyOf(newUserJSON(user), err)
}

func (h *Handlers) deleteUser(ctx context.Context, in *UserPath) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	return nil, h.Directory.Users.Delete(ctx, p, in.id(p))
}

func (h *Handlers) setPassword(ctx context.Context, in *struct {
	UserPath
	Body passwordChange
}) (*onlyCookie, error) {
	p, v := account.FromContext(ctx), api.RequestFrom(ctx)
	change, out := users.PasswordChange{Current: in.Body.Current, Password: in.Body.Password, RevokeTokens: in.Body.Revoke}, &onlyCookie{}
	if in.id(p) == p.User {
		if err := h.Gate.CountPasswordGuess(v); err != nil {
			return nil, err
		}
		if v.Login != nil {
			login, cookie := h.Gate.Logins.Prepare(v.HTTP.UserAgent())
			login.User = p.User
			change.Login, out.SetCookie = &login, cookie.String()
		}
	}
	return out, h.Directory.Users.SetPassword(ctx, p, in.id(p), change)
}

func (h *Handlers) listSignIns(ctx context.Context, in *UserPath) (*api.Body[api.ListBody[loginJSON]], error) {
	p, v := account.FromContext(ctx), api.RequestFrom(ctx)
	logins, err := h.Directory.SignIns.List(ctx, p, in.id(p))
	return api.PageOf(logins, "", err, func(l account.Login) loginJSON {
		return loginJSON{Agent: l.Agent, Began: l.Created, Seen: l.LastSeen, Ends: l.Expires, Current: string(l.Hash) == string(v.Login)}
	})
}

func (h *Handlers) endSignIns(ctx context.Context, in *UserPath) (*api.NoBody, error) {
	p, v := account.FromContext(ctx), api.RequestFrom(ctx)
	return nil, h.Directory.SignIns.SignOut(ctx, p, in.id(p), v.Login)
}
