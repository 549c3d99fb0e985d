package remote

import (
	"bytes"
	"context"
	"io/fs"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillname"
)

// FuzzIndex checks that names are portable and unique, and that requests go to http or
// https URLs, below the index if it lists files.
func FuzzIndex(f *testing.F) {
	digest := "sha256:" + skillfile.Hash(nil)
	for _, s := range []string{
		`{"$schema":"` + IndexSchema + `","skills":[{"name":"pdf","type":"archive","description":"d","url":"pdf.zip","digest":"` + digest + `"},{"name":"../x"}]}`,
		`{"skills":[{"name":"pdf","description":"d","files":["SKILL.md","a/b"]},{"name":"pdf","files":["skill.md"]},{"name":"x","files":["SKILL.md","../y"]}]}`,
		`{"$schema":"` + IndexSchema + `","skills":[{"name":"a","type":"skill-md","url":"//u:p@evil/%2e%2e/","digest":"` + digest + `"},{"name":"a","type":"skill-md","url":"javascript:x","digest":"` + digest + `"}]}`,
		`{"skills":[1,null,[],{"name":null}]}`,
		`[[[[`,
	} {
		f.Add([]byte(s))
	}
	c := New(&Options{Limits: Limits{Skills: 100}})
	from, err := url.Parse("https://example.com/.well-known/skills/index.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		skills, problems, err := c.parseIndex(src, from)
		if err != nil && len(skills)+len(problems) > 0 {
			t.Error("an index that cannot be read has entries")
		}
		if len(skills) > 100 || len(problems) > maxIndexProblems {
			t.Errorf("%d skills, %d problems", len(skills), len(problems))
		}
		known := map[string]bool{}
		for _, p := range skills {
			if !skillname.IsPortable(p.name) || known[p.name] {
				t.Errorf("name %q", p.name)
			}
			known[p.name] = true
			if p.url.Scheme != "https" || p.url.Host == "" || p.url.User != nil {
				t.Errorf("url %q", p.url)
			}
			for _, file := range p.files {
				if !filepath.IsLocal(file) || p.url.Path != "/.well-known/skills/"+p.name+"/" {
					t.Errorf("file %q below %q", file, p.url)
				}
			}
			if (p.files == nil) == (p.digest == "") {
				t.Errorf("%+v digest is missing, or one of nothing", p)
			}
		}
	})
}

// FuzzTar checks that listing and opening an archive is limited, and yields regular
// files of the listed sizes.
func FuzzTar(f *testing.F) {
	pdf := packed{name: "r/pdf/SKILL.md", content: doc("pdf")}
	f.Add(tarOf(f, pdf, packed{name: "r/pdf/l", content: "/etc/passwd", mode: fs.ModeSymlink}))
	f.Add(tarOf(f, pdf, packed{name: "../x"}))
	f.Add(tarOf(f, pdf, packed{name: "r/pdf/a", content: "x"}, packed{name: "r/pdf/a/b"}))
	f.Add(tarOf(f, pdf, packed{name: "r/pdf/x", content: "y", pax: map[string]string{"path": "/abs"}}))
	f.Add(tarOf(f, packed{name: "./SKILL.md", content: doc("pdf")})[:700])
	f.Fuzz(func(t *testing.T, src []byte) {
		limits := Limits{Unpacked: 1 << 20, Entries: 100, Skills: 10}
		list := &archiveListing{limits: limits}
		if _, err := list.readTar(context.Background(), bytes.NewReader(src), int64(len(src))); err != nil {
			return
		}
		list.stripTop()
		tr, err := newTree(list.entries)
		if err != nil {
			return
		}
		c := New(&Options{Limits: limits})
		o, err := c.collect(context.Background(), Location{Kind: Archive, URL: "https://example.com/a"}, Revision{}, tr, nil)
		if err != nil {
			return
		}
		for _, s := range o.Skills {
			b, err := o.OpenSkill(context.Background(), s)
			if err != nil {
				continue
			}
			var total int64
			err = fs.WalkDir(b.FS, ".", func(p string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				if !filepath.IsLocal(p) || !d.Type().IsRegular() {
					t.Errorf("%q is %v", p, d.Type())
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				data, err := fs.ReadFile(b.FS, p)
				if err == nil && int64(len(data)) != info.Size() {
					t.Errorf("%q has %d bytes, not %d", p, len(data), info.Size())
				}
				total += int64(len(data))
				return nil
			})
			if err != nil || total > limits.Unpacked {
				t.Errorf("%d bytes, %v", total, err)
			}
		}
	})
}
