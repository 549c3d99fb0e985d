//go:build linux

package sandboxtest

import (
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// limits are what a command is told when it has used too much, where the back
// end says that it enforces that.
func limits() []behaviour {
	return []behaviour{
		{"too much processor time", func(k *check) error {
			k.spec.Limits.CPU, k.spec.Limits.Wall = time.Second, time.Minute
			return k.endedFor("cpu", sandbox.CPU, "spin")
		}},
		{"too much memory", func(k *check) error { return k.endedFor("memory", sandbox.OOM, "hog") }},
		{"the limits are told of the sandbox that has them", func(k *check) error {
			if err := k.start(); err != nil {
				return err
			}
			for _, name := range LayerNames {
				if _, ok := k.box.State().Enforced[name]; !ok {
					return fmt.Errorf("nothing is said of %s", name)
				}
			}
			return nil
		}},
	}
}

// LayerNames are what each back end's state has a word on, if only "".
var LayerNames = []string{"filesystem", "processes_visible", "syscalls", "privileges", "memory", "processes", "cpu", "cores", "file_size", "open_files", "disk", "inodes", "wall", "network"}

// endedFor checks that a command is ended for a reason, and that the next one
// runs.
func (k *check) endedFor(limit string, why sandbox.Reason, command string) error {
	if err := k.start(); err != nil {
		return err
	}
	if k.box.State().Enforced[limit] == "" {
		return nil
	}
	res, err := k.run(nil, command)
	if err != nil || res.Reason != why || !res.Killed || res.Detail == "" {
		return fmt.Errorf("%+v, %v, want %s", res, err, why)
	}
	return k.says("still", "both", "still", "")
}
