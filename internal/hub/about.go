package hub

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
)

// aboutJSON describes a hub.
type aboutJSON struct {
	Version string     `json:"version"`
	Mode    string     `json:"mode" enum:"single,accounts"`
	Node    string     `json:"node" doc:"ID of the answering node; new at each start"`
	URL     string     `json:"url" doc:"Address at which users reach the hub"`
	MCP     string     `json:"mcp" doc:"MCP endpoint; append /p/GHOST for the endpoint of one Ghost"`
	Sandbox bool       `json:"sandbox" doc:"Whether code of skills can run"`
	Limits  limitsJSON `json:"limits"`
}

// limitsJSON holds the limits of requests, in bytes unless stated otherwise.
type limitsJSON struct {
	Package         int64 `json:"package" doc:"An uploaded skill, compressed"`
	PackageFiles    int   `json:"package_files" doc:"Files and directories of an uploaded skill"`
	PackageFile     int64 `json:"package_file" doc:"A file of an uploaded skill, uncompressed"`
	PackageUnpacked int64 `json:"package_unpacked" doc:"All files of an uploaded skill, uncompressed"`
	Message         int   `json:"message" doc:"A message"`
	SessionFile     int   `json:"session_file" doc:"A file of a conversation"`
	Body            int   `json:"body" doc:"A request body"`
	Rate            int   `json:"rate,omitempty" doc:"Sustained requests per second; absent if unlimited"`
}

func (h *Hub) aboutAPI() {
	api.Add(h.server, api.Operation("get-about", "GET", "/about", "Get the version, the addresses and the limits of this hub"), h.about)
}

func (h *Hub) about(ctx context.Context, _ *api.NoBody) (*api.Body[aboutJSON], error) {
	limits := h.library.Limits()
	out := aboutJSON{Version: h.opts.Version, Mode: "accounts", Node: h.node, URL: h.server.Origin(api.RequestFrom(ctx).HTTP), Sandbox: h.opts.Sandbox != nil,
		Limits: limitsJSON{Package: limits.PackedBytes, PackageFiles: limits.Entries, PackageFile: limits.FileBytes, PackageUnpacked: limits.UnpackedBytes,
			Message: chat.MaxText, SessionFile: chat.MaxFile, Body: api.MaxBody, Rate: max(h.opts.Rate, 0)}}
	if h.Single() {
		out.Mode = "single"
	}
	out.MCP = out.URL + "/mcp"
	return api.BodyOf(out, nil)
}

// canJSON tells a page which actions to offer to the current user.
type canJSON struct {
	Admin     bool     `json:"admin" doc:"May change settings and manage users"`
	Chat      bool     `json:"chat" doc:"May chat"`
	Upload    []string `json:"upload" nullable:"false" doc:"Namespaces where the user may upload skills and create agents: default, public, and ids of groups"`
	Review    []string `json:"review" nullable:"false" doc:"Namespaces where the user may review uploads of others: public, and ids of groups; * for all"`
	Servers   []string `json:"servers" nullable:"false" doc:"Namespaces where the user may create Models and MCP servers"`
	Members   []string `json:"members" nullable:"false" doc:"Groups whose members the user may manage; * for all"`
	NewGroups bool     `json:"new_groups" doc:"May create groups"`
}

// canOf returns what the rules allow a principal.
func canOf(p account.Principal) canJSON {
	own, public := account.OwnedBy(p.User), account.Resource{Shared: true}
	can := func(a account.Action, r account.Resource) bool { return account.Can(p, a, r) }
	in := func(a account.Action, everywhere string) []string {
		out := []string{}
		if can(a, own) && (a == account.SkillUpload || a == account.ServerApply) {
			out = append(out, api.OwnNamespace)
		}
		if can(a, public) && a != account.GroupMembers {
			out = append(out, string(store.Public))
		}
		for _, m := range memberships(p) {
			if can(a, account.OwnedByGroup(account.GroupID(m.Group), "somebody else")) {
				out = append(out, m.Group)
			}
		}
		if everywhere != "" && p.Admin && can(a, account.OwnedByGroup("another", "somebody else")) {
			out = append(out, everywhere)
		}
		return out
	}
	return canJSON{Admin: can(account.SettingsWrite, account.Resource{}), Chat: can(account.SessionWrite, own), NewGroups: can(account.GroupCreate, account.Resource{}),
		Upload: in(account.SkillUpload, ""), Review: in(account.SkillReview, "*"), Servers: in(account.ServerApply, ""), Members: in(account.GroupMembers, "*")}
}
