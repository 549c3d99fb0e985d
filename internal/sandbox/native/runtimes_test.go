//go:build linux

package native_test

import (
	"os/exec"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/sandbox"
)

// Runtimes that reserve much address space or share memory start with the
// default limits and without a control group.
func TestRuntimesStart(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	backend(t)
	b := native.New(&native.Options{Stage: stagePath, NoGroups: true})
	for name, args := range map[string][]string{
		"node":   {"/usr/bin/node", "-e", "0"},
		"java":   {"/usr/bin/java", "-version"},
		"numpy":  {"/usr/bin/python3", "-c", "import numpy; a = numpy.random.rand(300, 300); a @ a"},
		"shared": {"/usr/bin/python3", "-c", "import multiprocessing as m; m.Pool(2).map(abs, range(9)); m.Value('i', 3)"},
		"copies": {"/bin/sh", "-ec", `cd "$(mktemp -d)"; head -c 300000 /dev/zero > a; cp a b; cat a | tee c > d
			/usr/bin/python3 -c 'import shutil; shutil.copyfile("a", "e")'
			for f in b c d e; do cmp a $f; done`},
		"node copies": {"/bin/sh", "-ec", `cd "$(mktemp -d)"; head -c 300000 /dev/zero > a
			/usr/bin/node -e 'require("fs").copyFileSync("a", "b")'; cmp a b`},
		"git": {"/bin/sh", "-ec", `cd "$(mktemp -d)"; export HOME="$PWD"; git init -q a; cd a; head -c 300000 /dev/zero > f; git add f
			git -c user.name=a -c user.email=a@b.c commit -q -m a; cd ..; git clone -q --no-local a b; cmp a/f b/f`},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Skipf("does not run on this machine: %v: %.200s", err, out)
			}
			res, err := execute.Run(t.Context(), b, &sandbox.Spec{}, &sandbox.Cmd{Args: args}, nil)
			if err != nil || res.Reason != sandbox.OK {
				t.Fatalf("%+v, %v", res, err)
			}
		})
	}
}
