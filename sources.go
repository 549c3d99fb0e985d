package loadout

import (
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sources"
)

// SourceOptions configures where skills are searched for. The zero value means
// the default locations.
type SourceOptions struct {
	// WorkDir is the working directory. The default is the current one.
	WorkDir string
	// Home is the home directory. The default is the user's home directory.
	// NoHome omits the locations in it.
	Home   string
	NoHome bool
	// NoProject omits the project's skills, and NoBundled the bundled skills.
	NoProject, NoBundled bool
	// Depth is the maximum depth of the directory search below a location;
	// default 6.
	Depth int
	// CacheDir, if set, is the directory for cached directory indexes, which
	// can be deleted at any time.
	CacheDir string
}

// DefaultSources returns the sources in the default locations: the project's,
// from the working directory up to the repository root; those in the home
// directory and in installed Claude plugins; and the bundled skills. o may be
// nil. The result is never nil without an error. To add sources of your own, put
// those that take precedence within a scope first. DefaultSources reads no skills,
// and returns an error only if the working directory cannot be found.
func DefaultSources(o *SourceOptions) ([]catalog.Source, error) {
	if o == nil {
		o = &SourceOptions{}
	}
	return sources.New(&sources.Options{WorkDir: o.WorkDir, Home: o.Home, NoHome: o.NoHome, NoProject: o.NoProject, NoBundled: o.NoBundled,
		Depth: o.Depth, CacheDir: o.CacheDir})
}
