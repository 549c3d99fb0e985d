package loadout

import (
	"context"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/script"
)

// Packages says how packages that scripts need are installed: in a sandbox,
// from these registries and no others.
type Packages struct {
	// Dir is where installed packages are kept, an absolute path.
	Dir string
	// PythonIndex and NPMRegistry are the registries; "" are the public ones.
	PythonIndex, NPMRegistry string
	// AllowSource lets packages be built from source and run their install
	// scripts, in the sandbox.
	AllowSource bool
	// Offline installs nothing, and uses what is there.
	Offline bool
}

// install gets the packages that the script needs.
func (j *job) install(ctx context.Context) (*install.Packages, error) {
	b, err := j.builder()
	if err != nil {
		return nil, err
	}
	var from fs.FS = j.files
	if j.service != nil && j.service.fetch != nil {
		from = j.service.fetch.files
	}
	return b.Ensure(ctx, j.how.Needs, from, j.how, func(what string) { j.progress("%s", what) })
}

// builder installs packages, or finds those that were installed.
func (j *job) builder() (*install.Builder, error) {
	p := j.scripts.Packages
	if p == nil {
		return nil, &install.OfflineError{Needs: j.how.Needs.Requirements, Source: j.how.Needs.Source}
	}
	o := install.Options{Backend: j.scripts.Sandbox, Dir: p.Dir, PythonIndex: p.PythonIndex, NPMRegistry: p.NPMRegistry, Private: j.scripts.Private,
		AllowSource: p.AllowSource, Offline: p.Offline, Log: j.scripts.Logger}
	if j.scripts.Getenv != nil {
		o.Host = script.HostOf(j.scripts.Getenv)
	}
	return install.New(o)
}
