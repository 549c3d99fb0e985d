//go:build linux

package sandboxtest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/testprogram"
	"github.com/loadout-dev/loadout/sandbox"
)

// Digest is the digest in all specs of this package, for backends that require
// an approved digest.
const Digest = "sha256:5a6db0c5a4d0ba0f5ec9f2f5b36fc8a24b0ad2df5a6c4b8e5f1f7d3f00000063"

const payloadPackage = "internal/sandbox/sandboxtest/internal/payload"

// payloadVariable is the environment variable that contains the path of the
// payload, for tests that run again as a user without access to the build
// cache.
const payloadVariable = "LOADOUT_TEST_PAYLOAD"

var payload struct {
	once  sync.Once
	bytes []byte
	err   error
}

// payloadBytes returns the program to run in sandboxes. The first call builds
// it.
func payloadBytes(t *testing.T) []byte {
	t.Helper()
	payload.once.Do(func() { payload.bytes, payload.err = buildPayload() })
	if payload.err != nil {
		t.Fatal(payload.err)
	}
	return payload.bytes
}

func buildPayload() ([]byte, error) {
	if p := os.Getenv(payloadVariable); p != "" {
		return os.ReadFile(p)
	}
	path, err := testprogram.Program{Package: payloadPackage}.Build()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// skillTree returns a skill's tree that contains the payload.
func skillTree(program []byte) sandbox.Tree {
	return newTree(mountpoint.Skill, map[string][]byte{
		"SKILL.md": []byte(skillText), "payload": program, "data/table.csv": []byte("a,b\n1,2\n"),
	})
}

const skillText = "---\nname: attacker\ndescription: Attacks.\n---\n\nUnchanged.\n"

// newTree returns a verified tree with the given files. A file named payload is
// executable.
func newTree(dir string, files map[string][]byte) sandbox.Tree {
	t := sandbox.Tree{Path: dir}
	m := fstest.MapFS{}
	for name, data := range files {
		m[name] = &fstest.MapFile{Data: data, Mode: 0o644, ModTime: time.Unix(1, 0)}
		t.Files = append(t.Files, sandbox.File{Path: name, Size: int64(len(data)), SHA256: hashBytes(data), Exec: name == "payload"})
	}
	slices.SortFunc(t.Files, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	t.FS = m
	return t
}

func hashBytes(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// PolicyLimits returns the limits that the tests set.
func PolicyLimits() sandbox.Limits {
	return sandbox.Limits{
		Memory: 256 << 20, Processes: 64, CPU: 5 * time.Second, Cores: 1, Wall: 6 * time.Second,
		FileSize: 50 << 20, OpenFiles: 256, Work: 64 << 20, Tmp: 32 << 20, Shm: 16 << 20, Output: 64 << 10,
	}
}

// newSpec returns the spec of a sandbox that runs the payload.
func newSpec(t *testing.T) *sandbox.Spec {
	return &sandbox.Spec{Trees: []sandbox.Tree{skillTree(payloadBytes(t))}, Limits: PolicyLimits(), Digest: Digest}
}

func payloadCmd(command, mark string, args ...string) *sandbox.Cmd {
	return &sandbox.Cmd{Args: append([]string{mountpoint.Skill + "/payload", command, mark}, args...)}
}

// cores returns the number of CPUs that this process can use.
func cores() int { return runtime.NumCPU() }
