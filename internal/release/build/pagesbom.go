package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// bom is a software bill of materials in the format CycloneDX 1.6.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   bomMetadata `json:"metadata"`
	Components []component `json:"components"`
}

type bomMetadata struct {
	Component component `json:"component"`
}

type component struct {
	Type     string    `json:"type"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	PURL     string    `json:"purl,omitempty"`
	Hashes   []hash    `json:"hashes,omitempty"`
	Licenses []license `json:"licenses,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	Expression string `json:"expression"`
}

// writePageSBOM lists the npm packages that the embedded web page is built from.
// Go's build information does not include them. npm sbom cannot read our
// lockfile without installing all packages.
func writePageSBOM(lockfile, tag, file string) error {
	src, err := os.ReadFile(lockfile)
	if err != nil {
		return err
	}
	var lock struct {
		LockfileVersion int
		Packages        map[string]struct {
			Version, Integrity, License string
			Dev                         bool
		}
	}
	if err := json.Unmarshal(src, &lock); err != nil {
		return fmt.Errorf("%s: %w", lockfile, err)
	}
	if lock.LockfileVersion != 3 {
		return fmt.Errorf("%s has version %d, want 3", lockfile, lock.LockfileVersion)
	}
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: bomMetadata{component{Type: "application", Name: "loadout web page", Version: tag}}}
	for path, p := range lock.Packages {
		const dir = "node_modules/"
		if path == "" || p.Dev {
			continue
		}
		name := path[strings.LastIndex(path, dir)+len(dir):]
		c := component{Type: "library", Name: name, Version: p.Version, PURL: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version}
		sum, ok := strings.CutPrefix(p.Integrity, "sha512-")
		raw, err := base64.StdEncoding.DecodeString(sum)
		if !ok || err != nil || len(raw) != 64 {
			return fmt.Errorf("%s: no SHA-512 checksum for %s", lockfile, path)
		}
		c.Hashes = []hash{{"SHA-512", hex.EncodeToString(raw)}}
		if p.License != "" {
			c.Licenses = []license{{p.License}}
		}
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(x, y component) int { return strings.Compare(x.PURL, y.PURL) })
	b.Components = slices.CompactFunc(b.Components, func(x, y component) bool { return x.PURL == y.PURL })
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
