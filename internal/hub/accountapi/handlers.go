// Package accountapi serves a hub's users, groups, tokens, sign-ins, audit log and
// settings over HTTP.
package accountapi

import (
	"net/http"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// Handlers serves the operations of this package.
type Handlers struct {
	*api.Server
	Directory *users.Directory
	Gate      *auth.Gate
	Metrics   *metrics.Metrics
	Single    bool // whether the hub serves one user without sign-in
	Sharing   bool // whether conversations can be shared
	Everyone  bool // whether every user of the OpenID Connect provider gets an account
}

// Register adds the operations to the API, and the browser paths to mux.
func (h *Handlers) Register(mux *http.ServeMux) {
	for _, group := range []func(){h.signInAPI, h.usersAPI, h.groupsAPI, h.membersAPI, h.invitationsAPI, h.tokensAPI, h.auditAPI, h.settingsAPI} {
		group()
	}
	if h.Gate.OIDC != nil {
		mux.HandleFunc("GET /login/oidc", h.redirectToProvider)
		mux.HandleFunc("GET "+auth.CallbackPath, h.finishProviderSignIn)
	}
}
