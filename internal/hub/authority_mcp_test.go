package hub_test

import (
	"github.com/loadout-dev/loadout/internal/store"
)

// The Ghost of the group is named by its id, as everybody can who knows it.
var authorityOfMCP = []row{
	// operation, on what                    nobody out rep dev mai own adm
	{"POST /mcp", "", nil, aPing, "401 200 200 200 200 200 200", "200 mcp"},
	{"POST /mcp/p/group:{group}/{ghost}", "the Ghost of the group", theGhost, aPing, "401 404 200 200 200 200 404", "200 mcp"},
	{"POST /mcp/p/{ghost}", "the Ghost of the group", theGhost, aPing, "401 404 200 200 200 200 404", "200 mcp"},
	{"POST /mcp/p/{ghost}", "one that there is not", noGhost, aPing, "401 404 404 404 404 404 404", "404 mcp"},
	{"GET /.well-known/oauth-protected-resource", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /.well-known/oauth-protected-resource/mcp", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /.well-known/oauth-protected-resource/mcp/p/x", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},

	{"list-capabilities", "", nil, nil, "401 200 200 200 200 200 200", "200 chat mcp"},
	{"list-capabilities", "of the Ghost of the group", ofTheGhost, nil, "401 404 200 200 200 200 404", "200 chat mcp"},

	{"list-grants", "", theirs, nil, "401 404 404 404 404 404 200", "200 read"},
	{"list-grants", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"give-grant", "for a tool that there is not", nil, aGrant, "401 404 404 404 404 404 404", "404 review"},
	{"withdraw-grant", "of somebody else", theirGrant, nil, "401 404 404 404 404 404 404", "404 review"},
	{"withdraw-grant", "of one's own", myGrant, nil, "401 204 204 204 204 204 204", "204 review"},
}
