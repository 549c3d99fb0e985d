//go:build darwin || linux

package seatbelt

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/sandbox/direct"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/network"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/rundir"
	"github.com/loadout-dev/loadout/sandbox"
)

// start starts a sandbox. It also builds on Linux, where tests replace
// sandbox-exec.
func (b *Backend) start(spec *sandbox.Spec, exe string) (sandbox.Sandbox, error) {
	if err := prepare.Check(spec); err != nil {
		return nil, err
	}
	if len(spec.Network.Inject) > 0 && len(spec.Network.Allow) > 0 {
		// The proxy would listen on the host's loopback interface, where other
		// programs could use it.
		return nil, &sandbox.UnsupportedError{Backend: b.Name(), What: "secrets that the proxy adds to requests", Fix: "use a container, or native on Linux"}
	}
	proxy, err := network.New(spec)
	if err != nil {
		return nil, err
	}
	a := access{read: b.opts.Read, host: spec.Network.Host}
	if proxy != nil {
		l, err := b.listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("start sandbox: %w", err)
		}
		proxy.Address, a.proxy = l.Addr().String(), uint16(l.Addr().(*net.TCPAddr).Port)
		proxy.Serve(l)
	}
	s, err := b.confine(proxy.Environment(spec), exe, a, proxy)
	if err != nil {
		proxy.Close()
		return nil, err
	}
	return s, nil
}

// confine creates a sandbox's directory and profile.
func (b *Backend) confine(spec *sandbox.Spec, exe string, a access, proxy *network.Proxy) (sandbox.Sandbox, error) {
	uid := 0
	if os.Geteuid() == 0 {
		uid = b.opts.UID
	}
	var text string
	s, err := direct.Start(spec, direct.Options{
		Dir:      rundir.Options{Backend: b.Name(), Parent: b.opts.Dir, Cache: b.opts.Cache, UID: uid},
		Enforced: enforcedLayers(spec), Denied: proxy.Denied, OnClose: proxy.Close,
		Wrap: func(_ *rundir.Dir, args []string) []string { return append([]string{exe, "-p", text}, args...) },
	})
	if err != nil {
		return nil, err
	}
	x := s.Dir()
	a.read = append(append(a.read[:len(a.read):len(a.read)], x.Root), x.Read...)
	a.write = append([]string{x.HostPath(mountpoint.Work), x.HostPath(mountpoint.Tmp)}, x.Write...)
	if text, err = profile(a.resolveSymlinks()); err != nil {
		s.Close()
		return nil, &sandbox.UnsupportedError{Backend: b.Name(), What: err.Error(), Fix: "use directories with plain names"}
	}
	return s, nil
}

// resolveSymlinks returns the same access with all symlinks in paths resolved,
// because /tmp and /var are symlinks on macOS.
func (a access) resolveSymlinks() access {
	resolve := func(paths []string) []string {
		out := make([]string, 0, len(paths))
		for _, p := range paths {
			if r, err := filepath.EvalSymlinks(p); err == nil {
				p = r
			}
			out = append(out, p)
		}
		return out
	}
	a.read, a.write = resolve(a.read), resolve(a.write)
	return a
}

func enforcedLayers(spec *sandbox.Spec) map[string]string {
	e := map[string]string{
		"filesystem": "Seatbelt", "processes_visible": "Seatbelt", "syscalls": "", "privileges": "", "network": "Seatbelt", "kill": "process group",
		"memory": "", "processes": "", "cpu": "", "cores": "", "file_size": "", "open_files": "",
		"disk": "check every 2 to 50 ms, without open files that were removed", "inodes": "check every 2 to 50 ms", "wall": "timer",
	}
	switch {
	case len(spec.Network.Allow) > 0:
		e["network"] = "Seatbelt, allowlist proxy"
	case spec.Network.Host:
		e["network"] = ""
	}
	return e
}
