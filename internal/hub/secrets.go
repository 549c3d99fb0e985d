package hub

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// secretJSON is what may be known of a secret: never its value.
type secretJSON struct {
	Name      string    `json:"name"`
	UpdatedBy string    `json:"updatedBy"`
	Updated   time.Time `json:"updated"`
}

// secretGrantJSON is leave to have a secret.
type secretGrantJSON struct {
	Secret  string    `json:"secret"`
	Subject string    `json:"subject" doc:"What has it, as it was called then"`
	Digest  string    `json:"digest" doc:"Of what has it: nothing else does"`
	By      string    `json:"by"`
	Created time.Time `json:"created"`
}

// Owning says whose secrets are meant.
type Owning struct {
	Owner string `query:"owner" maxLength:"150" default:"default" doc:"default is your own; public, the name of a group, user:ID or group:ID; skill:ID; or server:ID with the id of an MCPServer, Ghost, Bot or Model"`
}

// owner is an owner as it is kept.
func (h *Hub) owner(ctx context.Context, o Owning) (kinds.Owner, error) {
	if strings.HasPrefix(o.Owner, "skill:") || strings.HasPrefix(o.Owner, "server:") {
		return kinds.Owner(o.Owner), nil
	}
	in, err := h.kinds.Namespace(ctx, account.FromContext(ctx), o.Owner)
	return kinds.NamespaceOwner(in), err
}

// SecretPath names a secret of an owner.
type SecretPath struct {
	Secret string `path:"secret" minLength:"1" maxLength:"256"`
	Owning
}

func (h *Hub) secretsAPI(api huma.API) {
	add(h, api, operation("list-secrets", "GET", "/secrets", "The names of secrets; their values are never read back"), h.listSecrets)
	add(h, api, operation("set-secret", "PUT", "/secrets/{secret}", "Keep a value, in place of one of that name"), h.setSecret)
	add(h, api, operation("delete-secret", "DELETE", "/secrets/{secret}", "Forget a secret, and who has it"), h.deleteSecret)
	add(h, api, operation("list-secret-grants", "GET", "/secrets/{secret}/grants", "What a secret is granted to"), h.listSecretGrants)
	add(h, api, operation("grant-secret", "POST", "/secrets/{secret}/grants", "Let a skill, a Model or a server have a secret, as it is now"), h.grantSecret)
	add(h, api, operation("revoke-secret", "DELETE", "/secrets/{secret}/grants", "Take a grant back"), h.revokeSecret)
}

func (h *Hub) listSecrets(ctx context.Context, in *Owning) (*body[listed[secretJSON]], error) {
	o, err := h.owner(ctx, *in)
	if err != nil {
		return nil, err
	}
	found, err := h.kinds.Secrets().List(ctx, account.FromContext(ctx), o)
	return page(found, "", err, func(s kinds.Secret) secretJSON { return secretJSON(s) })
}

func (h *Hub) setSecret(ctx context.Context, in *struct {
	SecretPath
	Body struct {
		Value string `json:"value" minLength:"1" maxLength:"65536" doc:"It is kept sealed"`
	}
}) (*nothing, error) {
	o, err := h.owner(ctx, in.Owning)
	if err != nil {
		return nil, err
	}
	err = h.kinds.Secrets().Set(ctx, account.FromContext(ctx), o, in.Secret, in.Body.Value)
	if bad := policy.CheckSecretName(in.Secret); bad != nil && errors.Is(err, store.ErrInvalid) {
		return nil, wrong("path.secret", bad)
	}
	return nil, err
}

// wrong is an error about one value of a request.
func wrong(where string, why error) *Problem {
	return &Problem{Status: 422, Code: "invalid", Detail: "the request cannot be taken as it is", Next: "mend what is in errors", Errors: []Fault{{where, why.Error()}}}
}

func (h *Hub) deleteSecret(ctx context.Context, in *SecretPath) (*nothing, error) {
	o, err := h.owner(ctx, in.Owning)
	if err != nil {
		return nil, err
	}
	return nil, h.kinds.Secrets().Delete(ctx, account.FromContext(ctx), o, in.Secret)
}

func (h *Hub) listSecretGrants(ctx context.Context, in *SecretPath) (*body[listed[secretGrantJSON]], error) {
	o, err := h.owner(ctx, in.Owning)
	if err != nil {
		return nil, err
	}
	all, err := h.kinds.Secrets().Grants(ctx, account.FromContext(ctx), o)
	var found []kinds.SecretGrant
	for _, g := range all {
		if g.Secret == in.Secret {
			found = append(found, g)
		}
	}
	return page(found, "", err, func(g kinds.SecretGrant) secretGrantJSON {
		return secretGrantJSON{g.Secret, g.Subject, string(g.Digest), g.By, g.Created}
	})
}

// secretFor is what a secret is granted to.
type secretFor struct {
	Kind      string `json:"kind" enum:"Skill,Model,MCPServer,Ghost,Bot"`
	Namespace string `json:"namespace,omitempty" maxLength:"150" doc:"As in /kinds; not of a Skill, which is looked for"`
	Name      string `json:"name" minLength:"1" maxLength:"1024"`
	Server    string `json:"server,omitempty" maxLength:"256" doc:"Which server, of a Ghost or Bot"`
	Digest    string `json:"digest" minLength:"1" maxLength:"80" doc:"Of what was looked at: another is not granted anything"`
}

func (h *Hub) grantSecret(ctx context.Context, in *struct {
	SecretPath
	Body secretFor
}) (*nothing, error) {
	o, err := h.owner(ctx, in.Owning)
	if err != nil {
		return nil, err
	}
	to := kinds.Subject{Kind: in.Body.Kind, Namespace: in.Body.Namespace, Name: in.Body.Name, Server: in.Body.Server}
	return nil, h.kinds.Secrets().Grant(ctx, account.FromContext(ctx), o, in.Secret, to, policy.Digest(in.Body.Digest))
}

func (h *Hub) revokeSecret(ctx context.Context, in *struct {
	SecretPath
	Digest string `query:"digest" required:"true" minLength:"1" maxLength:"80" doc:"Of what has it"`
}) (*nothing, error) {
	o, err := h.owner(ctx, in.Owning)
	if err != nil {
		return nil, err
	}
	return nil, h.kinds.Secrets().Revoke(ctx, account.FromContext(ctx), o, in.Secret, policy.Digest(in.Digest))
}
