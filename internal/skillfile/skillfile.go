// Package skillfile finds the SKILL.md of a skill, hashes content, and states
// the limits of skills. Its callers read the files.
package skillfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"github.com/loadout-dev/loadout/internal/skillpath"
)

// Limits on the files of a skill. The largest published skill we know has 1,104
// files and 15 MB.
const (
	MaxFiles = 10_000    // maximum number of files
	MaxBytes = 256 << 20 // maximum total size of the files in bytes
)

// Limits on a SKILL.md. A typical body has about 10 KB, and typical frontmatter
// about 500 bytes. The largest known have 73,000 tokens and 4 KB.
const (
	MaxFileBytes        = 10 << 20 // maximum size of a SKILL.md
	MaxFrontmatterBytes = 64 << 10 // maximum size of the YAML between the fences
)

// PortableFiles and PortableBytes are the limits that every host of Skills over
// MCP accepts (SEP-2640, "Limits"). Larger skills work locally but are not
// served over MCP.
const (
	PortableFiles = 512      // maximum number of files
	PortableBytes = 16 << 20 // maximum total size of the files in bytes
)

// Hash returns the SHA-256 of data as 64 lower-case hex digits.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// IsHash reports whether s has the form of a hash that [Hash] returns.
func IsHash(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

const fileName = "SKILL.md"

// Find returns the name of the SKILL.md in the root of fsys. Its letter case may
// differ. The error wraps [fs.ErrNotExist] if there is none. Find also returns an
// error if it is not a regular file.
func Find(fsys fs.FS) (string, error) {
	name := fileName
	info, err := fs.Stat(fsys, name)
	if err != nil {
		if name, err = findSpelling(fsys); err != nil {
			return "", err
		}
		if info, err = fs.Stat(fsys, name); err != nil {
			return "", fmt.Errorf("stat %s: %w", name, err)
		}
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return "", fmt.Errorf("not a regular file: %s", name)
	}
	return name, nil
}

// findSpelling finds a file whose name differs from SKILL.md only in case. If
// there are several, it returns the one that the reference validator would use.
func findSpelling(fsys fs.FS) (string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return "", fmt.Errorf("find %s: %w", fileName, err)
	}
	found := ""
	for _, e := range entries {
		if name := e.Name(); skillpath.IsSkillFile(name) && !e.IsDir() && (found == "" || name == "skill.md") {
			found = name
		}
	}
	if found == "" {
		return "", fmt.Errorf("find %s: %w", fileName, fs.ErrNotExist)
	}
	return found, nil
}
