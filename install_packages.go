package loadout

import (
	"context"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/script"
)

// Packages configures the installation of the packages that scripts need. They
// are installed in a sandbox, from these registries only.
type Packages struct {
	// Dir is the directory of installed packages, an absolute path.
	Dir string
	// PythonIndex and NPMRegistry are the registries; "" means the public ones.
	PythonIndex, NPMRegistry string
	// AllowSource allows packages to be built from source and to run install
	// scripts, in the sandbox.
	AllowSource bool
	// Offline installs nothing and uses packages that are already installed.
	Offline bool
}

// installPackages installs the packages that the script needs.
func (j *job) installPackages(ctx context.Context) (*packages.Packages, error) {
	b, err := j.packageBuilder()
	if err != nil {
		return nil, err
	}
	var from fs.FS = j.files
	if j.service != nil && j.service.fetch != nil {
		from = j.service.fetch.files
	}
	return b.Ensure(ctx, j.scriptPlan.Needs, from, j.scriptPlan, func(what string) { j.progress("%s", what) })
}

// packageBuilder returns a builder that installs packages or finds installed
// ones.
func (j *job) packageBuilder() (*packages.Builder, error) {
	p := j.scripts.Packages
	if p == nil {
		return nil, &packages.OfflineError{Needs: j.scriptPlan.Needs.Requirements, Source: j.scriptPlan.Needs.Source}
	}
	o := packages.Options{Backend: j.scripts.Sandbox, Dir: p.Dir, PythonIndex: p.PythonIndex, NPMRegistry: p.NPMRegistry, Private: j.scripts.PrivateNetworks,
		AllowSource: p.AllowSource, Offline: p.Offline, Log: j.scripts.Logger}
	if j.scripts.Getenv != nil {
		o.Host = script.HostOf(j.scripts.Getenv)
	}
	return packages.New(o)
}
