//go:build linux

package sandboxtest

import (
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// limitBehaviours returns the requirements for exceeded limits. A requirement
// is tested only if the backend enforces the limit.
func limitBehaviours() []behaviour {
	return []behaviour{
		{"too much CPU time", func(k *check) error {
			k.spec.Limits.CPU, k.spec.Limits.Wall = time.Second, time.Minute
			return k.expectEnd("cpu", sandbox.CPU, "spin")
		}},
		{"too much memory", func(k *check) error {
			k.spec.Limits.Wall = time.Minute
			return k.expectEnd("memory", sandbox.OOM, "hog")
		}},
		{"the state reports the limits of this sandbox", func(k *check) error {
			if err := k.start(); err != nil {
				return err
			}
			for _, name := range LayerNames {
				if _, ok := k.box.State().Enforced[name]; !ok {
					return fmt.Errorf("state has no entry for %s", name)
				}
			}
			return nil
		}},
	}
}

// LayerNames lists the keys that every backend's state must contain. A layer
// that is not enforced has the value "".
var LayerNames = []string{"filesystem", "processes_visible", "syscalls", "privileges", "memory", "processes", "cpu", "cores", "file_size", "open_files", "disk", "inodes", "wall", "network"}

// expectEnd returns an error unless the command is killed for the given reason
// and another command can run afterwards.
func (k *check) expectEnd(limit string, why sandbox.Reason, command string) error {
	if err := k.start(); err != nil {
		return err
	}
	if k.box.State().Enforced[limit] == "" {
		return nil
	}
	res, err := k.run(nil, command)
	if err != nil || res.Reason != why || !res.Killed || res.Detail == "" {
		return fmt.Errorf("got result %+v, error %v, want reason %s", res, err, why)
	}
	return k.expectOutput("still", "both", "still", "")
}
