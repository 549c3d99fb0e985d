package hub

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/people"
)

// userJSON is somebody.
type userJSON struct {
	ID       string       `json:"id"`
	Name     string       `json:"name"`
	Display  string       `json:"display"`
	Disabled bool         `json:"disabled"`
	Account  *accountJSON `json:"account,omitempty" doc:"What the user and administrators see"`
}

type accountJSON struct {
	Email    string     `json:"email"`
	Admin    bool       `json:"admin"`
	Password bool       `json:"password" doc:"Whether there is one to sign in with"`
	Created  time.Time  `json:"created"`
	Seen     *time.Time `json:"seen,omitempty" doc:"Last, to about a minute"`
}

func userOf(u people.User) userJSON {
	out := userJSON{ID: string(u.ID), Name: u.Name, Display: u.Display, Disabled: u.Disabled}
	if u.Whole {
		out.Account = &accountJSON{Email: u.Email, Admin: u.Admin, Password: u.Password, Created: u.Created, Seen: when(u.Seen)}
	}
	return out
}

// UserPath names a user in a path.
type UserPath struct {
	User string `path:"user" maxLength:"64" doc:"The id of a user, or me"`
}

func (o UserPath) id(p account.Principal) account.UserID { return userID(p, o.User) }

// userID is the id of a user as it is written in requests.
func userID(p account.Principal, written string) account.UserID {
	if written == "me" {
		return p.User
	}
	return account.UserID(written)
}

type newUser struct {
	Name     string `json:"name" maxLength:"64" doc:"What the user signs in as; it never changes"`
	Display  string `json:"display,omitempty" maxLength:"200"`
	Email    string `json:"email,omitempty" maxLength:"254"`
	Password string `json:"password,omitempty" maxLength:"1024" doc:"At least 10 characters; without, the user signs in by a provider"`
	Admin    bool   `json:"admin,omitempty"`
}

type userChange struct {
	Display  *string `json:"display,omitempty" maxLength:"200"`
	Email    *string `json:"email,omitempty" maxLength:"254"`
	Admin    *bool   `json:"admin,omitempty" doc:"For administrators"`
	Disabled *bool   `json:"disabled,omitempty" doc:"For administrators: signs the user out everywhere"`
}

type passwordChange struct {
	Current  string `json:"current,omitempty" maxLength:"1024" doc:"Needed for one's own, where there is one"`
	Password string `json:"password" maxLength:"1024"`
}

// loginJSON is a browser that is signed in.
type loginJSON struct {
	Agent   string    `json:"agent" doc:"What the browser calls itself"`
	Began   time.Time `json:"began"`
	Seen    time.Time `json:"seen"`
	Ends    time.Time `json:"ends"`
	Current bool      `json:"current" doc:"Whether it is this one"`
}

func (h *Hub) users(api huma.API) {
	add(h, api, operation("list-users", "GET", "/users", "Users by name, or the one with a name"), h.listUsers)
	add(h, api, created(operation("make-user", "POST", "/users", "Make a user")), h.makeUser)
	add(h, api, operation("get-user", "GET", "/users/{user}", "A user"), h.getUser)
	add(h, api, operation("change-user", "PATCH", "/users/{user}", "Change a user"), h.changeUser)
	add(h, api, operation("delete-user", "DELETE", "/users/{user}", "Delete a user who has no skills, agents and conversations"), h.deleteUser)
	add(h, api, operation("set-password", "PUT", "/users/{user}/password", "Set a password, and sign the user out everywhere else"), h.setPassword)
	add(h, api, operation("list-sign-ins", "GET", "/users/{user}/sign-ins", "Where a user is signed in"), h.listSignIns)
	add(h, api, operation("end-sign-ins", "DELETE", "/users/{user}/sign-ins", "Sign a user out everywhere else"), h.endSignIns)
}

func (h *Hub) listUsers(ctx context.Context, in *struct {
	Paging
	Name string `query:"name" maxLength:"64" doc:"Only the user who is called that"`
}) (*body[listed[userJSON]], error) {
	p := account.FromContext(ctx)
	if in.Name == "" {
		users, next, err := h.people.Users.List(ctx, p, in.page())
		return page(users, next, err, userOf)
	}
	user, err := h.people.Users.Named(ctx, p, in.Name)
	return page([]people.User{user}, "", err, userOf)
}

func (h *Hub) makeUser(ctx context.Context, in *struct{ Body newUser }) (*made[userJSON], error) {
	user, err := h.people.Users.Create(ctx, account.FromContext(ctx), people.NewUser(in.Body))
	return madeAt(string(user.ID), "users", userOf(user), err)
}

func (h *Hub) getUser(ctx context.Context, in *UserPath) (*body[userJSON], error) {
	p := account.FromContext(ctx)
	user, err := h.people.Users.Get(ctx, p, in.id(p))
	return answered(userOf(user), err)
}

func (h *Hub) changeUser(ctx context.Context, in *struct {
	UserPath
	Body userChange
}) (*body[userJSON], error) {
	p := account.FromContext(ctx)
	user, err := h.people.Users.Change(ctx, p, in.id(p), people.UserChange(in.Body))
	return answered(userOf(user), err)
}

func (h *Hub) deleteUser(ctx context.Context, in *UserPath) (*nothing, error) {
	p := account.FromContext(ctx)
	return nil, h.people.Users.Delete(ctx, p, in.id(p))
}

func (h *Hub) setPassword(ctx context.Context, in *struct {
	UserPath
	Body passwordChange
}) (*nothing, error) {
	p, v := account.FromContext(ctx), visitOf(ctx)
	if in.id(p) == p.User {
		if err := h.door.guess(v); err != nil {
			return nil, err
		}
	}
	return nil, h.people.Users.SetPassword(ctx, p, in.id(p), in.Body.Current, in.Body.Password, v.login)
}

func (h *Hub) listSignIns(ctx context.Context, in *UserPath) (*body[listed[loginJSON]], error) {
	p, v := account.FromContext(ctx), visitOf(ctx)
	logins, err := h.people.SignIns.Of(ctx, p, in.id(p))
	return page(logins, "", err, func(l account.Login) loginJSON {
		return loginJSON{Agent: l.Agent, Began: l.Began, Seen: l.Seen, Ends: l.Ends, Current: string(l.Hash) == string(v.login)}
	})
}

func (h *Hub) endSignIns(ctx context.Context, in *UserPath) (*nothing, error) {
	p, v := account.FromContext(ctx), visitOf(ctx)
	return nil, h.people.SignIns.End(ctx, p, in.id(p), v.login)
}
