// Package skillapi serves a hub's skills over HTTP: uploads, versions, reviews,
// drafts, imports, ratings and usage.
package skillapi

import (
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// Handlers serves the operations of this package. All fields are required.
type Handlers struct {
	*api.Server
	Library *library.Library
	Agents  *agents.Registry // resolves namespaces
}
