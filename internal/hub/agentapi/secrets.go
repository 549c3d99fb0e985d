package agentapi

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/secretname"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// OwnerQuery is the query parameter that selects the owner of secrets.
type OwnerQuery struct {
	Owner string `query:"owner" maxLength:"150" default:"default" doc:"default is your own; public, the name of a group, user:ID or group:ID; skill:ID; server:ID with the id of an MCPServer, Ghost, Bot or Model; or session:ID for the platform values of a conversation"`
}

// owner returns the owner that the parameter selects.
func (h *Handlers) owner(ctx context.Context, o OwnerQuery) (agents.Owner, error) {
	if kind, _, ok := strings.Cut(o.Owner, ":"); ok && slices.Contains([]string{"skill", "server", "session"}, kind) {
		return agents.Owner(o.Owner), nil
	}
	in, err := h.Agents.ResolveNamespace(ctx, account.FromContext(ctx), o.Owner)
	return agents.NamespaceOwner(in), err
}

// SecretPath identifies a secret by path and owner.
type SecretPath struct {
	Secret string `path:"secret" minLength:"1" maxLength:"256" doc:"Name of the secret; variable.NAME is the platform value ${{NAME}}, for example variable.task_token"`
	OwnerQuery
}

func (h *Handlers) secretsAPI() {
	api.Add(h.Server, api.Operation("list-secrets", "GET", "/secrets", "List the names of secrets; values are never read back"), h.listSecrets)
	api.Add(h.Server, api.Operation("set-secret", "PUT", "/secrets/{secret}", "Store a secret, or replace it"), h.setSecret)
	api.Add(h.Server, api.Operation("delete-secret", "DELETE", "/secrets/{secret}", "Delete a secret and its grants"), h.deleteSecret)
	api.Add(h.Server, api.Operation("list-secret-grants", "GET", "/secrets/{secret}/grants", "List the grants of a secret"), h.listSecretGrants)
	api.Add(h.Server, api.Operation("grant-secret", "POST", "/secrets/{secret}/grants", "Let a skill, a Model or a server use a secret, as it is now"), h.grantSecret)
	api.Add(h.Server, api.Operation("revoke-secret", "DELETE", "/secrets/{secret}/grants", "Revoke a grant"), h.revokeSecret)
}

func (h *Handlers) listSecrets(ctx context.Context, in *OwnerQuery) (*api.Body[api.ListBody[agents.Secret]], error) {
	o, err := h.owner(ctx, *in)
	if err != nil {
		return nil, err
	}
	found, err := h.Agents.Secrets().List(ctx, account.FromContext(ctx), o)
	return api.ListOf(found, "", err)
}

func (h *Handlers) setSecret(ctx context.Context, in *struct {
	SecretPath
	Body struct {
		Value string `json:"value" minLength:"1" maxLength:"65536" doc:"Stored encrypted"`
	}
}) (*api.NoBody, error) {
	o, err := h.owner(ctx, in.OwnerQuery)
	if err != nil {
		return nil, err
	}
	err = h.Agents.Secrets().Set(ctx, account.FromContext(ctx), o, in.Secret, in.Body.Value)
	if bad := secretname.Check(in.Secret); bad != nil && !strings.HasPrefix(in.Secret, agents.VariablePrefix) && errors.Is(err, store.ErrInvalid) {
		return nil, api.InvalidFields(api.Fault{Where: "path.secret", Message: bad.Error()})
	}
	return nil, err
}

func (h *Handlers) deleteSecret(ctx context.Context, in *SecretPath) (*api.NoBody, error) {
	o, err := h.owner(ctx, in.OwnerQuery)
	if err != nil {
		return nil, err
	}
	return nil, h.Agents.Secrets().Delete(ctx, account.FromContext(ctx), o, in.Secret)
}

func (h *Handlers) listSecretGrants(ctx context.Context, in *SecretPath) (*api.Body[api.ListBody[agents.SecretGrant]], error) {
	o, err := h.owner(ctx, in.OwnerQuery)
	if err != nil {
		return nil, err
	}
	all, err := h.Agents.Secrets().Grants(ctx, account.FromContext(ctx), o)
	var found []agents.SecretGrant
	for _, g := range all {
		if g.Secret == in.Secret {
			found = append(found, g)
		}
	}
	return api.ListOf(found, "", err)
}

// secretFor identifies the subject to which a secret is granted.
type secretFor struct {
	Kind      string `json:"kind" enum:"Skill,Model,MCPServer,Ghost,Bot"`
	Namespace string `json:"namespace,omitempty" maxLength:"150" doc:"Namespace as in /kinds; omit for a Skill, which is searched for"`
	Name      string `json:"name" minLength:"1" maxLength:"1024"`
	Server    string `json:"server,omitempty" maxLength:"256" doc:"Name of the server of a Ghost or Bot"`
	Digest    string `json:"digest" minLength:"1" maxLength:"80" doc:"Digest of the inspected item; the grant fails if the item has changed"`
	Target    string `json:"target,omitempty" maxLength:"1000" doc:"Hosts or command that may receive a platform value, as in the load result; required for variable.NAME, and for no other secret"`
}

func (h *Handlers) grantSecret(ctx context.Context, in *struct {
	SecretPath
	Body secretFor
}) (*api.NoBody, error) {
	o, err := h.owner(ctx, in.OwnerQuery)
	if err != nil {
		return nil, err
	}
	to := agents.Subject{Kind: in.Body.Kind, Namespace: in.Body.Namespace, Name: in.Body.Name, Server: in.Body.Server}
	return nil, h.Agents.Secrets().Grant(ctx, account.FromContext(ctx), o, in.Secret, to, policy.Digest(in.Body.Digest), in.Body.Target)
}

func (h *Handlers) revokeSecret(ctx context.Context, in *struct {
	SecretPath
	Digest string `query:"digest" required:"true" minLength:"1" maxLength:"80" doc:"Digest of the item that may use the secret"`
	Target string `query:"target" maxLength:"1000" doc:"Target of the grant of a platform value; default all its targets"`
}) (*api.NoBody, error) {
	o, err := h.owner(ctx, in.OwnerQuery)
	if err != nil {
		return nil, err
	}
	return nil, h.Agents.Secrets().Revoke(ctx, account.FromContext(ctx), o, in.Secret, policy.Digest(in.Digest), in.Target)
}
