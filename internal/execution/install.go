package execution

import (
	"context"
	"io/fs"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/script"
)

// installer installs the packages that programs need.
type installer struct {
	opts *packages.Options // if nil, programs that need packages are rejected
}

// builder returns a builder that installs packages or looks up installed ones.
// It returns an error if package installation is not configured.
func (i installer) builder(needs *script.Needs) (*packages.Builder, error) {
	if i.opts == nil {
		return nil, &packages.OfflineError{Needs: needs.Requirements, Source: needs.Source}
	}
	return packages.New(*i.opts)
}

// install installs the packages that p needs, if any. files contains the files
// that declare them.
func (i installer) install(ctx context.Context, p *program, files fs.FS, progress Progress) error {
	if p.plan.Needs == nil {
		return nil
	}
	b, err := i.builder(p.plan.Needs)
	if err != nil {
		return err
	}
	if p.pkg != nil {
		files = p.pkg.files
	}
	p.packages, err = b.Ensure(ctx, p.plan.Needs, files, p.plan, func(what string) { progress.report("%s", what) })
	return err
}

// lookup returns the installed package that p starts. It installs nothing.
func (i installer) lookup(p *program) (*Package, error) {
	b, err := i.builder(p.plan.Needs)
	if err != nil {
		return nil, err
	}
	installed, err := b.Lookup(p.plan.Needs, p.pkg.files, p.plan)
	if err != nil {
		return nil, err // starting the service also reports this error
	}
	found, _, err := p.pkg.resolve(installed)
	return found, err
}

// InstallPackage installs the package that a skill's server starts with npx or
// uvx. For other commands, it does nothing. It does not run the package's code,
// so it needs no approval.
func (r *Runner) InstallPackage(ctx context.Context, e *catalog.Entry, args []string, progress Progress) error {
	p, err := r.planPackage(e, args)
	if p == nil || err != nil {
		return err
	}
	progress.report("installing %s", p.pkg.spec())
	if err := r.installer.install(ctx, p, nil, progress); err != nil {
		return err
	}
	_, _, err = p.pkg.resolve(p.packages)
	return err
}

// InstalledPackage returns the installed package that a skill's server starts
// with npx or uvx. For other commands, it returns nil.
func (r *Runner) InstalledPackage(e *catalog.Entry, args []string) (*Package, error) {
	p, err := r.planPackage(e, args)
	if p == nil || err != nil {
		return nil, err
	}
	return r.installer.lookup(p)
}

// planPackage returns the program that starts the command's package, or nil if
// the command does not start a package.
func (r *Runner) planPackage(e *catalog.Entry, args []string) (*program, error) {
	c, err := parseCommand(args)
	if err != nil || c.pkg == nil {
		return nil, nil // [CheckCommand] reports the error
	}
	return r.planner(owner{label: "skill " + e.Name}, nil).planPackage(c.pkg)
}
