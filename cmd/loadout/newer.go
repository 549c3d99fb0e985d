package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/policy"
)

// newestTag is the highest version among the tags that are named like one and are
// higher; "" where there is none, or the tag is no version.
func newestTag(have string, tags map[string]string) string {
	prefix, now, ok := version(have)
	if !ok {
		return ""
	}
	newest, name := now, ""
	for tag := range tags {
		p, v, ok := version(tag)
		if ok && p == prefix && (v.Prerelease() == "" || now.Prerelease() != "") && v.GreaterThan(newest) {
			newest, name = v, tag
		}
	}
	return name
}

// version reads a tag as v1.2.3, or pdf-v1.2.3.
func version(tag string) (prefix string, v *semver.Version, ok bool) {
	i := strings.IndexAny(tag, "0123456789")
	if i < 0 {
		return "", nil, false
	}
	v, err := semver.NewVersion(tag[i:])
	return tag[:i], v, err == nil
}

// newer is what the last look for newer versions found. It is a note for a person, and
// nothing depends on it.
type newer struct {
	Directory string    `json:"directory"`
	Name      string    `json:"name"`
	Digest    string    `json:"digest"` // of what was installed then
	Reason    string    `json:"reason"`
	Checked   time.Time `json:"checked"`
}

func (a *app) newerFile() *policy.OwnFile {
	if d := a.stateDir(); d != "" {
		return policy.NewOwnFile(filepath.Join(d, "newer.json"), 4<<20)
	}
	return nil
}

// keepNewer replaces what is known of the skills that were looked at.
func (a *app) keepNewer(ctx context.Context, all []place, checks []checkedSkill) error {
	file := a.newerFile()
	if file == nil {
		return nil
	}
	locks := map[string]*installed.Lock{}
	for _, p := range all {
		lock, err := p.Lock()
		if err != nil {
			return err
		}
		locks[p.Path()] = lock
	}
	looked := map[[2]string]bool{}
	out := []newer{}
	for _, c := range checks {
		looked[[2]string{c.Directory, c.Name}] = true
		if c.State == "newer" || c.State == "edited" {
			out = append(out, newer{c.Directory, c.Name, locks[c.Directory].Skills[c.Name].Digest, c.Reason, time.Now().UTC().Truncate(time.Second)})
		}
	}
	return file.Change(ctx, func(old []byte) ([]byte, error) {
		for _, n := range parseNewer(old) {
			if !looked[[2]string{n.Directory, n.Name}] {
				out = append(out, n)
			}
		}
		b, err := json.MarshalIndent(out, "", "  ")
		return append(b, '\n'), err
	})
}

// parseNewer is empty where nothing, or nothing that can be read, was kept.
func parseNewer(data []byte) []newer {
	var out []newer
	if json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

// newerSkills are the installed skills of which a newer version was seen, as long as
// they are as they were then.
func (a *app) newerSkills() []newer {
	file := a.newerFile()
	if file == nil {
		return nil
	}
	data, err := file.Read()
	if err != nil {
		return nil // nothing was kept, or nothing that can be relied on
	}
	locks := map[string]*installed.Lock{}
	var out []newer
	for _, n := range parseNewer(data) {
		if locks[n.Directory] == nil {
			lock, err := installed.Open(n.Directory).Lock()
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

// noteNewer adds to skills what is newer of them.
func noteNewer(skills []listedSkill, all []newer) {
	at := map[string]string{}
	for _, n := range all {
		at[filepath.Join(n.Directory, n.Name)] = n.Reason
	}
	for i := range skills {
		skills[i].Newer = at[skills[i].Path]
	}
}

// newerCount and newerNames tell a person what there is.
func newerCount(all []newer) string {
	if len(all) == 1 {
		return "A newer version is there"
	}
	return fmt.Sprintf("%d newer versions are there", len(all))
}

func newerNames(all []newer) string {
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
