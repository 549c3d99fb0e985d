package skill_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

func TestFrontmatterJSONFollowsTheYAMLCoreSchema(t *testing.T) {
	const quoted = `"name":"pdf","description":"d"`
	for _, tt := range []struct{ yaml, want string }{
		{"a: 2024-01-31\n", `"a":"2024-01-31"`},
		{"a: 2024-01-31T10:00:00Z\n", `"a":"2024-01-31T10:00:00Z"`},
		{"a: 1.10\n", `"a":1.1`},
		{"a: yes\nb: no\nc: on\nd: y\n", `"a":"yes","b":"no","c":"on","d":"y"`},
		{"a: true\nb: False\nc: TRUE\nd: tRUE\n", `"a":true,"b":false,"c":true,"d":"tRUE"`},
		{"a: 012\nb: 0o14\nc: 0x1F\nd: 0b1\n", `"a":12,"b":12,"c":31,"d":"0b1"`},
		{"a: -7\nb: +7\nc: -0\nd: 1_000\n", `"a":-7,"b":7,"c":0,"d":"1_000"`},
		{"a: 1e3\nb: -.5\nc: 2.\nd: .e1\n", `"a":1000,"b":-0.5,"c":2,"d":".e1"`},
		{"a: .inf\nb: -.INF\nc: .nan\nd: 1e999\n", `"a":null,"b":null,"c":null,"d":null`},
		{"a: ~\nb: null\nc:\nd: Null\ne: nil\n", `"a":null,"b":null,"c":null,"d":null,"e":"nil"`},
		{"a: '1'\nb: \"1.5\"\nc: 'true'\nd: ''\n", `"a":"1","b":"1.5","c":"true","d":""`},
		{"a: 1:30\nb: 1:30:00\n", `"a":"1:30","b":"1:30:00"`},
		{"a: 123456789012345678901234567890\n", `"a":123456789012345678901234567890`},
		{"a: |\n  1\n  2\nb: >-\n  x\n  y\n", `"a":"1\n2\n","b":"x y"`},
		{"a: {b: [1, two, {c: ~}], d: {}, e: []}\n", `"a":{"b":[1,"two",{"c":null}],"d":{},"e":[]}`},
		{"z: 1\na: 2\n", `"z":1,"a":2`},
		{"a: 1\nb: 2\na: 3\n", `"b":2,"a":3`},
		{"<<: {a: 1}\nb: 2\n", `"<<":{"a":1},"b":2`},
		{"a: &x {k: v}\nb: *x\nc: [*x, *x]\n", `"a":{"k":"v"},"b":{"k":"v"},"c":[{"k":"v"},{"k":"v"}]`},
		{"a: &k key\n*k : v\n", `"a":"key","key":"v"`},
		{"1: a\ntrue: b\n~: c\n", `"1":"a","true":"b","~":"c"`},
		{"a: !!str 1\nb: !!int 2\nc: !!float 3\nd: !!bool yes\ne: !x 4\nf: ! 5\ng: !!int ''\nh: !!null ''\n",
			`"a":"1","b":2,"c":3,"d":"yes","e":"4","f":"5","g":"","h":null`},
		{"a: \"\\t\\u0001\\\"\\\\<&>\\u2028é\"\n", `"a":"\t\u0001\"\\<&>` + "\u2028é" + `"`},
		{"a: x\u2028y\n", `"a":"x` + "\u2028" + `y"`},
		{"a: x\u0085y\n", `"a":"x` + "\u0085" + `y"`},
	} {
		s, ds := skill.ParseBytes([]byte(doc("name: pdf\ndescription: d\n"+tt.yaml)), skill.FileName, "pdf")
		if s == nil || s.Repaired {
			t.Errorf("%q is not read as it stands: %v", tt.yaml, ds)
			continue
		}
		got, err := s.FrontmatterJSON()
		if want := "{" + quoted + "," + tt.want + "}"; err != nil || string(got) != want {
			t.Errorf("%q:\ngot  %s, %v\nwant %s", tt.yaml, got, err, want)
		}
		if !json.Valid(got) {
			t.Errorf("%q: not JSON: %s", tt.yaml, got)
		}
	}
}

func TestFrontmatterJSONRefusesUnsupportedValues(t *testing.T) {
	s, _ := skill.ParseBytes([]byte(doc("name: pdf\ndescription: a: b\n")), skill.FileName, "pdf")
	if _, err := s.FrontmatterJSON(); err == nil || !s.Repaired {
		t.Errorf("repaired frontmatter: %v", err)
	}
	s, _ = skill.ParseBytes([]byte(doc(ok+"? [a, b]\n: c\n")), skill.FileName, "pdf")
	if got, err := s.FrontmatterJSON(); err == nil {
		t.Errorf("a key that is a list: %s", got)
	}
}

func TestFirstFenceIsFoundNearLimit(t *testing.T) {
	for _, tt := range []struct {
		size int // of the frontmatter
		want string
	}{
		{skillfile.MaxFrontmatterBytes, ""},
		{skillfile.MaxFrontmatterBytes + 1, "frontmatter-too-long"},
		{skillfile.MaxFileBytes / 2, "frontmatter-too-long"},
	} {
		src := "---\n" + ok + "license: " + long(tt.size-len(ok)-len("license: \n")) + "\n---\n# PDF\n"
		s, ds := skill.ParseBytes([]byte(src), skill.FileName, "pdf")
		if tt.want == "" && (s == nil || len(ds) > 0 || s.Instructions != "# PDF\n") ||
			tt.want != "" && (s != nil || len(ds) != 1 || ds[0].Code != tt.want || ds.Valid()) {
			t.Errorf("frontmatter of %d bytes: %.300v", tt.size, ds)
		}
		head := src[:min(len(src), skillfile.MaxFrontmatterBytes+4<<10)]
		hs, hds, more := skill.ParseHead([]byte(head), len(head) == len(src), skill.FileName, "pdf")
		if more || (hs == nil) != (s == nil) || len(hds) != len(ds) {
			t.Errorf("frontmatter of %d bytes, from its head: %.300v, %v", tt.size, hds, more)
		}
	}
}

func TestParseHeadEqualsParseOrAsksForMore(t *testing.T) {
	for _, tt := range malformations {
		folder, file := tt.folder, tt.file
		if folder == "" {
			folder = "pdf"
		}
		if file == "" {
			file = skill.FileName
		}
		src := []byte(tt.src)
		want, wantDs := skill.ParseBytes(src, file, folder)
		wantDs = level1(wantDs)
		whole, ds, more := skill.ParseHead(src, true, file, folder)
		if more || !same(want, wantDs, whole, ds) || want != nil && whole.Instructions != want.Instructions {
			t.Errorf("%s: of the whole file\ngot  %+v %v\nwant %+v %v", tt.name, whole, ds, want, wantDs)
		}
		for n := range src {
			got, ds, more := skill.ParseHead(src[:n], false, file, folder)
			if more {
				if got != nil || ds != nil {
					t.Errorf("%s: something is returned beside more", tt.name)
				}
				continue
			}
			if !same(want, wantDs, got, ds) {
				t.Errorf("%s: of %d bytes of %d\ngot  %+v %v\nwant %+v %v", tt.name, n, len(src), got, ds, want, wantDs)
			}
			if got != nil && got.Instructions != "" {
				t.Errorf("%s: a head has no instructions", tt.name)
			}
		}
	}
}

func level1(ds skill.Diagnostics) skill.Diagnostics {
	var out skill.Diagnostics
	for _, d := range ds {
		if !strings.HasPrefix(d.Code, "body-") && d.Code != "catalog-line-tokens" {
			out = append(out, d)
		}
	}
	return out
}

func same(a *skill.Skill, ads skill.Diagnostics, b *skill.Skill, bds skill.Diagnostics) bool {
	if (a == nil) != (b == nil) || len(ads) != len(bds) {
		return false
	}
	for i := range ads {
		if ads[i] != bds[i] {
			return false
		}
	}
	return a == nil || a.Name == b.Name && a.Description == b.Description && string(a.Frontmatter) == string(b.Frontmatter)
}

func TestParseHeadRespectsItsLimit(t *testing.T) {
	for _, src := range []string{
		long(skillfile.MaxFrontmatterBytes + 4<<10),
		"---\nname: pdf\nlicense: " + long(skillfile.MaxFrontmatterBytes+4<<10),
		strings.Repeat("\n", skillfile.MaxFrontmatterBytes+4<<10),
		"---\n" + strings.Repeat("a: b\n", skillfile.MaxFrontmatterBytes/5+1<<10),
	} {
		if _, ds, more := skill.ParseHead([]byte(src), false, skill.FileName, "pdf"); more || ds.Loads() {
			t.Errorf("%.30q…: more %v, %.200v", src, more, ds)
		}
		if _, _, more := skill.ParseHead([]byte(src[:4<<10]), false, skill.FileName, "pdf"); !more {
			t.Errorf("%.30q…: 4 KiB are not enough to tell", src)
		}
	}
}
