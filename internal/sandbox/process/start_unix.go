//go:build unix && !linux

package process

import (
	"context"
	"os"

	"github.com/loadout-dev/loadout/internal/sandbox/direct"
	"github.com/loadout-dev/loadout/internal/sandbox/rundir"
	"github.com/loadout-dev/loadout/sandbox"
)

// Start creates a directory for the commands. If the code was not approved, the
// error is a [*NotAllowedError].
func (b *Backend) Start(_ context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := b.check(spec); err != nil {
		return nil, err
	}
	uid := 0
	if os.Geteuid() == 0 {
		uid = b.opts.UID
	}
	s, err := direct.Start(spec, direct.Options{Dir: rundir.Options{Backend: b.Name(), Parent: b.opts.Dir, Cache: b.opts.Cache, UID: uid}, Enforced: enforcedLayers()})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func enforcedLayers() map[string]string {
	return map[string]string{
		"filesystem": "", "processes_visible": "", "syscalls": "", "network": "", "privileges": "", "kill": "", "memory": "", "processes": "", "cpu": "",
		"cores": "", "file_size": "", "open_files": "", "disk": "check every 2 to 50 ms, without open files that were removed", "inodes": "check every 2 to 50 ms", "wall": "timer",
	}
}
