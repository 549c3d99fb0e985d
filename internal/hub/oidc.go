package hub

import (
	"net/http"
	"net/url"
)

// callbackPath is where people come back from a provider.
const callbackPath = "/login/callback"

// toProvider sends a browser to the provider, and has it return to the path in back.
func (h *Hub) toProvider(w http.ResponseWriter, r *http.Request) {
	if err := h.door.attempt(visitOf(r.Context()), ""); err != nil {
		h.turnAway(w, r, err)
		return
	}
	page, cookie, err := h.door.oidc.Begin(r.Context(), r.URL.Query().Get("back"))
	if err != nil {
		h.turnAway(w, r, err)
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, page, http.StatusSeeOther)
}

// fromProvider signs in who comes back.
func (h *Hub) fromProvider(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, h.door.oidc.Spent())
	back, cookie, err := h.cameBack(r)
	h.metrics.signedIn("provider", err)
	if err != nil {
		h.turnAway(w, r, err)
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// turnAway says that somebody is not let in: to a person on the web page, in his language.
// It is told there by its code, as what stands in an address may be anybody's words; the
// log has all of it.
func (h *Hub) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if !wantsPage(r) {
		h.refuse(w, r, err)
		return
	}
	p := h.problem(r.Context(), err)
	h.log.Warn("a sign-in by the provider failed", "request", p.Request, "code", p.Code, "error", p.Detail)
	http.Redirect(w, r, "/?"+url.Values{"refused": {p.Code}, "request": {p.Request}}.Encode(), http.StatusSeeOther)
}

func (h *Hub) cameBack(r *http.Request) (back string, _ *http.Cookie, err error) {
	ctx := r.Context()
	if err := h.door.attempt(visitOf(ctx), ""); err != nil {
		return "", nil, err
	}
	id, err := h.door.oidc.Finish(ctx, r)
	if err != nil {
		return "", nil, err
	}
	user, err := h.people.SignIns.ByProvider(ctx, id, h.opts.Provider.Everyone)
	if err != nil {
		return "", nil, err
	}
	if _, err := h.door.logins.End(ctx, r); err != nil {
		return "", nil, err
	}
	cookie, err := h.door.logins.Begin(ctx, user, r.UserAgent())
	return id.Back, cookie, err
}
