package accountapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/page"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// redirectToProvider redirects a browser to the OpenID Connect provider. After
// sign-in, the user returns to the path in the query parameter named back.
func (h *Handlers) redirectToProvider(w http.ResponseWriter, r *http.Request) {
	back := r.URL.Query().Get("back")
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && strings.HasPrefix(back, users.InvitationPath) {
		back = "/" // signing in there accepts the invitation, so a link on another site must show it first
	}
	if err := h.Gate.CountAttempt(api.RequestFrom(r.Context())); err != nil {
		h.showSignInError(w, r, back, err)
		return
	}
	page, cookie, err := h.Gate.OIDC.Start(r.Context(), back)
	if err != nil {
		h.showSignInError(w, r, back, err)
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, page, http.StatusSeeOther)
}

// finishProviderSignIn completes a sign-in after the provider's redirect.
func (h *Handlers) finishProviderSignIn(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, h.Gate.OIDC.ExpiredCookie())
	back, cookie, err := h.completeSignIn(r)
	h.Metrics.CountSignIn("provider", err)
	if err != nil {
		h.showSignInError(w, r, h.Gate.OIDC.ReturnPath(r), err)
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// showSignInError reports a failed sign-in. A browser is redirected to the page with
// only an error code, because an attacker could put any text into the URL. The log
// has the details. If back is the page of an invitation, which the user still needs,
// the browser is redirected there.
func (h *Handlers) showSignInError(w http.ResponseWriter, r *http.Request, back string, err error) {
	if !page.IsPageRequest(r) {
		h.Server.WriteProblem(w, r, err)
		return
	}
	p := h.Server.Problem(r.Context(), err)
	h.Log.Warn("sign-in through the provider failed", "request", p.Request, "code", p.Code, "error", p.Detail)
	to := url.URL{Path: "/", RawQuery: url.Values{"refused": {p.Code}, "request": {p.Request}}.Encode()}
	if link, ok := strings.CutPrefix(back, users.InvitationPath); ok {
		link, _, _ = strings.Cut(link, "?")
		to.Path = users.InvitationPath + link
	}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

func (h *Handlers) completeSignIn(r *http.Request) (back string, _ *http.Cookie, err error) {
	ctx := r.Context()
	if err := h.Gate.CountAttempt(api.RequestFrom(ctx)); err != nil {
		return "", nil, err
	}
	id, err := h.Gate.OIDC.Finish(ctx, r)
	if err != nil {
		return "", nil, err
	}
	user, err := h.Directory.SignIns.ByProvider(ctx, id, h.Everyone)
	if err != nil {
		return "", nil, err
	}
	if err := h.Gate.SignedIn(ctx, api.RequestFrom(ctx), "", user); err != nil {
		return "", nil, err
	}
	if _, err := h.Gate.Logins.End(ctx, r); err != nil {
		return "", nil, err
	}
	cookie, err := h.Gate.Logins.Start(ctx, user, r.UserAgent())
	return id.ReturnTo, cookie, err
}
