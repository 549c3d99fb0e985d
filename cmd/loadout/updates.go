package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/policy"
)

// findNewerTag returns the tag with the highest version above have, among tags
// with the same prefix. It returns "" if there is none or have is not a
// version.
func findNewerTag(have string, tags map[string]string) string {
	prefix, now, ok := parseTagVersion(have)
	if !ok {
		return ""
	}
	newest, name := now, ""
	for tag := range tags {
		p, v, ok := parseTagVersion(tag)
		if ok && p == prefix && (v.Prerelease() == "" || now.Prerelease() != "") && v.GreaterThan(newest) {
			newest, name = v, tag
		}
	}
	return name
}

// parseTagVersion parses a tag such as v1.2.3 or pdf-v1.2.3.
func parseTagVersion(tag string) (prefix string, v *semver.Version, ok bool) {
	i := strings.IndexAny(tag, "0123456789")
	if i < 0 {
		return "", nil, false
	}
	v, err := semver.NewVersion(tag[i:])
	return tag[:i], v, err == nil
}

// availableUpdate is an update found by the last check. It is informational
// only.
type availableUpdate struct {
	Directory string    `json:"directory"`
	Name      string    `json:"name"`
	Digest    string    `json:"digest"` // digest of the skill installed then
	Reason    string    `json:"reason"`
	Checked   time.Time `json:"checked"`
}

func (a *app) updatesFile() *policy.PrivateFile {
	if d := a.stateDir(); d != "" {
		return policy.NewPrivateFile(filepath.Join(d, "newer.json"), 4<<20)
	}
	return nil
}

// saveUpdates replaces the saved updates of the checked skills.
func (a *app) saveUpdates(ctx context.Context, all []skillsDir, checks []checkedSkill) error {
	file := a.updatesFile()
	if file == nil {
		return nil
	}
	locks := map[string]*installed.Lockfile{}
	for _, p := range all {
		lock, err := p.Lockfile()
		if err != nil {
			return err
		}
		locks[p.Path()] = lock
	}
	looked := map[[2]string]bool{}
	out := []availableUpdate{}
	for _, c := range checks {
		looked[[2]string{c.Directory, c.Name}] = true
		if c.State == "newer" || c.State == "edited" {
			out = append(out, availableUpdate{c.Directory, c.Name, locks[c.Directory].Skills[c.Name].Digest, c.Reason, time.Now().UTC().Truncate(time.Second)})
		}
	}
	return file.Change(ctx, func(old []byte) ([]byte, error) {
		for _, n := range parseUpdates(old) {
			if !looked[[2]string{n.Directory, n.Name}] {
				out = append(out, n)
			}
		}
		b, err := json.MarshalIndent(out, "", "  ")
		return append(b, '\n'), err
	})
}

// parseUpdates returns nil for missing or invalid data.
func parseUpdates(data []byte) []availableUpdate {
	var out []availableUpdate
	if json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

// availableUpdates returns the saved updates of skills that did not change
// since the check.
func (a *app) availableUpdates() []availableUpdate {
	file := a.updatesFile()
	if file == nil {
		return nil
	}
	data, err := file.Read()
	if err != nil {
		return nil // missing or unsafe file
	}
	locks := map[string]*installed.Lockfile{}
	var out []availableUpdate
	for _, n := range parseUpdates(data) {
		if locks[n.Directory] == nil {
			lock, err := installed.Open(n.Directory).Lockfile()
			if err != nil {
				continue
			}
			locks[n.Directory] = lock
		}
		if e, ok := locks[n.Directory].Skills[n.Name]; ok && e.Digest == n.Digest {
			out = append(out, n)
		}
	}
	return out
}

// addUpdates adds the available updates to skills.
func addUpdates(skills []listedSkill, all []availableUpdate) {
	at := map[string]string{}
	for _, n := range all {
		at[filepath.Join(n.Directory, n.Name)] = n.Reason
	}
	for i := range skills {
		skills[i].Newer = at[skills[i].Path]
	}
}

// formatUpdateCount returns the number of updates as text.
func formatUpdateCount(all []availableUpdate) string {
	if len(all) == 1 {
		return "1 update is available"
	}
	return fmt.Sprintf("%d updates are available", len(all))
}

func formatUpdateNames(all []availableUpdate) string {
	const most = 5
	var names []string
	for i, n := range all {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		names = append(names, plain(n.Name))
	}
	return strings.Join(names, ", ")
}
