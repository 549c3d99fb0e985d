//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/loadout-dev/loadout/internal/serverskill"
)

const fileName = "references/guide.md"

var (
	fileText    = strings.Repeat("0123456789abcde\n", 960) // 15 KB
	description = strings.Repeat("Describes what it does, and when to use it. ", 12)
)

func skillText(i int) string {
	return fmt.Sprintf("---\nname: skill-%d\ndescription: %s\n---\nSee %s.\n", i, strings.TrimSpace(description), fileName)
}

// publisher is a server in the process. It counts the files that it sends.
type publisher struct {
	pages [][]byte
	size  int
	sent  int
}

// newPublisher returns a server with n skills of three files each, with entries of about
// 1 KB.
func newPublisher(n, size int) *publisher {
	p := &publisher{size: size}
	for from := 0; from < n; from += size {
		var all []string
		for i := from; i < min(n, from+size); i++ {
			all = append(all, entry(i))
		}
		next := ""
		if from+size < n {
			next = fmt.Sprint(from/size + 1)
		}
		p.pages = append(p.pages, fmt.Appendf(nil, `{"resultType":"complete","skills":[%s],"nextCursor":%q,"ttlMs":3600000,"cacheScope":"public"}`, strings.Join(all, ","), next))
	}
	return p
}

func entry(i int) string {
	root := fmt.Sprintf("skill://skill-%d", i)
	file := func(name, text string) string {
		return fmt.Sprintf(`{"uri":"%s/%s","digest":"sha256:%x","size":%d}`, root, name, sha256.Sum256([]byte(text)), len(text))
	}
	return fmt.Sprintf(`{"uri":"%s/SKILL.md","frontmatter":{"name":"skill-%d","description":%q},"resources":[%s,%s,%s]}`,
		root, i, strings.TrimSpace(description), file("SKILL.md", skillText(i)), file(fileName, fileText), file("scripts/run.py", "print(1)\n"))
}

// source returns a source with a cache in dir.
func (p *publisher) source(label, dir string) *serverskill.Source {
	return serverskill.New(serverskill.Options{Label: label, Connector: p, Wait: true, Cache: &serverskill.Cache{Dir: dir}})
}

func (p *publisher) Do(ctx context.Context, _ string, f func(context.Context, serverskill.Conn) error) error {
	return f(ctx, p)
}
func (p *publisher) ServesSkills() bool { return true }

func (p *publisher) ListSkills(_ context.Context, cursor string) (json.RawMessage, error) {
	n := 0
	if cursor != "" {
		fmt.Sscan(cursor, &n)
	}
	return p.pages[n], nil
}

func (p *publisher) GetSkill(context.Context, string) (json.RawMessage, error) {
	return nil, fs.ErrNotExist
}

func (p *publisher) ReadSkillFile(_ context.Context, uri string) ([]byte, error) {
	p.sent++
	if strings.HasSuffix(uri, "/"+fileName) {
		return []byte(fileText), nil
	}
	return nil, fs.ErrNotExist
}
