// Package skillapi serves the skills of a hub over HTTP: uploads, versions,
// reviews, drafts, imports, ratings and their use.
package skillapi

import (
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// Handlers serve the operations. All fields are required.
type Handlers struct {
	*api.Server
	Library *library.Library
	Agents  *agents.Registry // resolves namespaces
}
