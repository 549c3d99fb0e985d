package api

import (
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/oauth"
)

// signInProblem converts err to a problem if signing in to an MCP server
// failed, and returns nil otherwise.
func signInProblem(err error) *Problem {
	failed, ok := errors.AsType[*serverauth.FailedError](err)
	if !ok {
		return nil
	}
	if denied, ok := errors.AsType[*oauth.DeniedError](err); ok {
		return &Problem{Status: 403, Code: "signin_denied", Detail: denied.Error(), Next: "start again, and allow the access there"}
	}
	if other, ok := errors.AsType[*oauth.IssuerError](err); ok {
		return &Problem{Status: 409, Code: "signin_issuer", Detail: other.Error(), Next: "ask the operator of the server whether it moved; if so, sign out and sign in again"}
	}
	if private, ok := errors.AsType[*oauth.PrivateAddressError](err); ok {
		return &Problem{Status: 422, Code: "signin_address", Detail: private.Error(), Next: "to allow it, ask the operator of the hub to list it in sandbox.private"}
	}
	if unwanted, ok := errors.AsType[*oauth.NotRequiredError](err); ok {
		return &Problem{Status: 409, Code: "signin_unwanted", Detail: unwanted.Error(), Next: "use the server without signing in"}
	}
	return &Problem{Status: 502, Code: "signin_failed", Detail: failed.Error(),
		Next: "try again; if it keeps failing, ask the operator of the server: add a manually registered client to its configuration, as oauth: {clientId: …}"}
}
