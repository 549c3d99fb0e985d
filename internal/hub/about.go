package hub

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
)

// aboutJSON is what a hub says of itself.
type aboutJSON struct {
	Version string     `json:"version"`
	Mode    string     `json:"mode" enum:"single,accounts"`
	Node    string     `json:"node" doc:"Which node answers: another one at each start"`
	URL     string     `json:"url" doc:"By which people reach the hub"`
	MCP     string     `json:"mcp" doc:"The MCP endpoint; /p/GHOST behind it is that of one Ghost"`
	Sandbox bool       `json:"sandbox" doc:"Whether code of skills can run"`
	Limits  limitsJSON `json:"limits"`
}

// limitsJSON are the most that is taken, in bytes where nothing else is said.
type limitsJSON struct {
	Package         int64 `json:"package" doc:"An uploaded skill, packed"`
	PackageFiles    int   `json:"package_files" doc:"How many files and directories it may have"`
	PackageFile     int64 `json:"package_file" doc:"One of its files, unpacked"`
	PackageUnpacked int64 `json:"package_unpacked" doc:"All of its files, unpacked"`
	Message         int   `json:"message" doc:"What is said in a conversation"`
	SessionFile     int   `json:"session_file" doc:"A file of a conversation"`
	Body            int   `json:"body" doc:"Of any request"`
	Rate            int   `json:"rate,omitempty" doc:"Requests a second for long; not there where they are not bounded"`
}

func (h *Hub) aboutAPI(api huma.API) {
	add(h, api, operation("get-about", "GET", "/about", "What this hub is, where it is, and how much it takes"), h.about)
}

func (h *Hub) about(ctx context.Context, _ *nothing) (*body[aboutJSON], error) {
	limits := h.library.Limits()
	out := aboutJSON{Version: h.opts.Version, Mode: "accounts", Node: h.node, URL: h.origin(visitOf(ctx).request), Sandbox: h.opts.Sandbox != nil,
		Limits: limitsJSON{Package: limits.PackedBytes, PackageFiles: limits.Entries, PackageFile: limits.FileBytes, PackageUnpacked: limits.UnpackedBytes,
			Message: chat.MaxText, SessionFile: chat.MaxFile, Body: maxBody, Rate: max(h.opts.Rate, 0)}}
	if h.Single() {
		out.Mode = "single"
	}
	out.MCP = out.URL + "/mcp"
	return answered(out, nil)
}

// canJSON is what somebody may do here by this way in, coarsely: for what a page shows.
type canJSON struct {
	Admin     bool     `json:"admin" doc:"Change settings, and manage users"`
	Chat      bool     `json:"chat" doc:"Hold conversations"`
	Upload    []string `json:"upload" nullable:"false" doc:"Where he may upload skills and make agents: default, public, and ids of groups"`
	Review    []string `json:"review" nullable:"false" doc:"Where he may review what others uploaded: public, and ids of groups; * is everywhere"`
	Servers   []string `json:"servers" nullable:"false" doc:"Where he may make Models and MCP servers"`
	Members   []string `json:"members" nullable:"false" doc:"Groups in which he may say who is in them; * is all"`
	NewGroups bool     `json:"new_groups" doc:"Make groups"`
}

// canOf asks the rules.
func canOf(p account.Principal) canJSON {
	own, public := account.Of(p.User), account.Resource{Shared: true}
	can := func(a account.Action, r account.Resource) bool { return account.Can(p, a, r) }
	in := func(a account.Action, everywhere string) []string {
		out := []string{}
		if can(a, own) && (a == account.SkillUpload || a == account.ServerApply) {
			out = append(out, ownNamespace)
		}
		if can(a, public) && a != account.GroupMembers {
			out = append(out, string(store.Public))
		}
		for _, m := range memberships(p) {
			if can(a, account.In(account.GroupID(m.Group), "somebody else")) {
				out = append(out, m.Group)
			}
		}
		if everywhere != "" && p.Admin && can(a, account.In("another", "somebody else")) {
			out = append(out, everywhere)
		}
		return out
	}
	return canJSON{Admin: can(account.SettingsWrite, account.Resource{}), Chat: can(account.SessionWrite, own), NewGroups: can(account.GroupCreate, account.Resource{}),
		Upload: in(account.SkillUpload, ""), Review: in(account.SkillReview, "*"), Servers: in(account.ServerApply, ""), Members: in(account.GroupMembers, "*")}
}
