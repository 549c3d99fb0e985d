package packages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

const (
	// startupDir is the directory in PYTHONPATH with the file that Python runs
	// when it starts.
	startupDir  = mountpoint.Needs + "/.python"
	startupFile = "sitecustomize.py"
)

//go:embed sitecustomize.py
var startupFiles embed.FS

// startupTree returns the files that let Python find its packages.
func startupTree() sandbox.Tree {
	data, err := startupFiles.ReadFile(startupFile)
	if err != nil {
		panic(err) // embedded
	}
	sum := sha256.Sum256(data)
	return sandbox.Tree{Path: startupDir, FS: startupFiles, Files: []sandbox.File{{Path: startupFile, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}}}
}
