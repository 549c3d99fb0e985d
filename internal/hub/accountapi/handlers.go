// Package accountapi serves users, groups, tokens, sign-ins, the audit log and the
// settings of a hub over HTTP.
package accountapi

import (
	"net/http"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// Handlers serve the operations.
type Handlers struct {
	*api.Server
	Directory *users.Directory
	Gate      *auth.Gate
	Metrics   *metrics.Metrics
	Single    bool // the hub serves one user without sign-in
	Everyone  bool // every user of the OpenID Connect provider gets an account
}

// Register adds the operations, and the paths for browsers to mux.
func (h *Handlers) Register(mux *http.ServeMux) {
	for _, group := range []func(){h.signInAPI, h.usersAPI, h.groupsAPI, h.membersAPI, h.tokensAPI, h.auditAPI, h.settingsAPI} {
		group()
	}
	if h.Gate.OIDC != nil {
		mux.HandleFunc("GET /login/oidc", h.redirectToProvider)
		mux.HandleFunc("GET "+auth.CallbackPath, h.finishProviderSignIn)
	}
}
