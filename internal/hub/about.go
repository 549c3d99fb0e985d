package hub

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// aboutJSON describes the hub.
type aboutJSON struct {
	Version string     `json:"version"`
	Mode    string     `json:"mode" enum:"single,accounts"`
	Node    string     `json:"node" doc:"ID of the answering node; new at each start"`
	URL     string     `json:"url" doc:"Address at which users reach the hub"`
	MCP     string     `json:"mcp" doc:"MCP endpoint; append /p/GHOST for the endpoint of one Ghost"`
	Sandbox bool       `json:"sandbox" doc:"Whether code of skills can run"`
	Limits  limitsJSON `json:"limits"`
}

// limitsJSON holds request limits, in bytes unless stated otherwise.
type limitsJSON struct {
	Package         int64 `json:"package" doc:"An uploaded skill, compressed"`
	PackageFiles    int   `json:"package_files" doc:"Files and directories of an uploaded skill"`
	PackageFile     int64 `json:"package_file" doc:"A file of an uploaded skill, uncompressed"`
	PackageUnpacked int64 `json:"package_unpacked" doc:"All files of an uploaded skill, uncompressed"`
	Message         int   `json:"message" doc:"A message"`
	SessionFile     int   `json:"session_file" doc:"A file of a conversation"`
	Body            int   `json:"body" doc:"A request body"`
	Migration       int   `json:"migration" doc:"An upload for a migration"`
	Rate            int   `json:"rate,omitempty" doc:"Sustained requests per second; absent if unlimited"`
}

func (h *Hub) aboutAPI() {
	api.Add(h.server, api.Operation("get-about", "GET", "/about", "Get the version, the addresses and the limits of this hub"), h.about)
}

func (h *Hub) about(ctx context.Context, _ *api.NoBody) (*api.Body[aboutJSON], error) {
	limits := h.library.Limits()
	out := aboutJSON{Version: h.opts.Version, Mode: "accounts", Node: h.node, URL: h.server.Origin(api.RequestFrom(ctx).HTTP), Sandbox: h.opts.Sandbox != nil,
		Limits: limitsJSON{Package: limits.PackedBytes, PackageFiles: limits.Entries, PackageFile: limits.FileBytes, PackageUnpacked: limits.UnpackedBytes,
			Message: chat.MaxText, SessionFile: chat.MaxFile, Body: api.MaxBody, Migration: api.MaxMigration, Rate: max(h.opts.Rate, 0)}}
	if h.Single() {
		out.Mode = "single"
	}
	out.MCP = out.URL + "/mcp"
	return api.BodyOf(out, nil)
}
