package skill_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

func parseFrontmatter(t *testing.T, yaml string) *skill.Skill {
	t.Helper()
	s, ds := skill.ParseBytes([]byte("---\n"+yaml+"\n---\nText.\n"), "", "")
	if s == nil {
		t.Fatalf("%s: %v", yaml, ds)
	}
	return s
}

func TestFrontmatterEqualsBothReadingsOfYAML(t *testing.T) {
	const head = "name: a\ndescription: b\n"
	for yaml, accepted := range map[string][]string{
		"d: 2026-09-13":           {`"2026-09-13"`, `"2026-09-13T00:00:00Z"`, `"2026-09-13T00:00:00.000Z"`, `"2026-09-13T00:00:00+00:00"`},
		"d: 2026-09-13T10:00:00Z": {`"2026-09-13T10:00:00Z"`, `"2026-09-13T10:00:00.000Z"`, `"2026-09-13T12:00:00+02:00"`},
		"d: yes":                  {`"yes"`, `true`},
		"d: Off":                  {`"Off"`, `false`},
		"d: 1.10":                 {`1.1`, `1.10`, `11e-1`},
		"d: 1.0":                  {`1`, `1.0`},
		"d: 012":                  {`12`, `10`},
		"d: 0o12":                 {`10`},
		"d: 1_000":                {`"1_000"`, `1000`},
		"d: 190:20":               {`"190:20"`, `11420`},
		"d: '2026-09-13'":         {`"2026-09-13"`},
		"d: \"yes\"":              {`"yes"`},
		"d: ~":                    {`null`},
		"d:":                      {`null`},
		"d: [1, {e: f}]":          {`[1,{"e":"f"}]`},
		"d: &x {e: 1}":            {`{"e":1}`},
		"d: 12345678901234567890": {`12345678901234567890`},
	} {
		s := parseFrontmatter(t, head+yaml)
		for _, v := range accepted {
			if field, err := s.CompareFrontmatter(json.RawMessage(`{"name":"a","description":"b","d":` + v + `}`)); field != "" || err != nil {
				t.Errorf("%s with %s: field %q differs, error %v", yaml, v, field, err)
			}
		}
		for _, v := range []string{`"another"`, `17`, `{}`, `[]`, `[1]`, `"2026-09-14"`, `"2026-09-13T00:00:01Z"`, `12345678901234567891`} {
			if field, err := s.CompareFrontmatter(json.RawMessage(`{"name":"a","description":"b","d":` + v + `}`)); field == "" && err == nil {
				t.Errorf("%s with %s: equal, want a difference", yaml, v)
			}
		}
	}
	quoted := parseFrontmatter(t, head+"d: 'yes'")
	if field, _ := quoted.CompareFrontmatter(json.RawMessage(`{"name":"a","description":"b","d":true}`)); field != "d" {
		t.Errorf("a quoted value has a single reading: field %q", field)
	}
}

func TestDifferencesOfFrontmatterNameTheField(t *testing.T) {
	s := parseFrontmatter(t, "name: a\ndescription: b\nmetadata:\n  version: '1'\n  tags: [x, y]")
	for js, want := range map[string]string{
		`{"name":"a","description":"b","metadata":{"version":"1","tags":["x","y"]}}`:                        "",
		`{"name":"a","description":"c","metadata":{"version":"1","tags":["x","y"]}}`:                        "description",
		`{"name":"a","description":"b"}`:                                                                    "metadata",
		`{"name":"a","description":"b","metadata":{"version":"1","tags":["x","z"]}}`:                        "metadata.tags[1]",
		`{"name":"a","description":"b","metadata":{"version":"1"}}`:                                         "metadata.tags",
		`{"name":"a","description":"b","metadata":{"version":"1","tags":["x","y"],"more":1}}`:               "metadata.more",
		`{"name":"a","description":"b","metadata":{"version":"1","tags":["x","y"]},"allowed-tools":"Bash"}`: "allowed-tools",
		`{"Name":"a","description":"b","metadata":{"version":"1","tags":["x","y"]}}`:                        "name",
	} {
		if field, err := s.CompareFrontmatter(json.RawMessage(js)); field != want || err != nil {
			t.Errorf("%s: field %q, error %v; want %q", js, field, err, want)
		}
	}
	for _, js := range []string{``, `null`, `[]`, `"a"`, `{} {}`} {
		if _, err := s.CompareFrontmatter(json.RawMessage(js)); err == nil {
			t.Errorf("%q: no error", js)
		}
	}
}

// Each level has a key twice, and only the last one is compared: comparing both
// would double the time with each level.
func TestNestedDuplicateKeysAreComparedOnce(t *testing.T) {
	const depth = 50
	s := parseFrontmatter(t, "name: a\ndescription: b\nm: "+strings.Repeat("{x: 0, x: ", depth)+"1"+strings.Repeat("}", depth))
	done := make(chan string, 1)
	go func() {
		field, err := s.CompareFrontmatter(json.RawMessage(`{"name":"a","description":"b","m":` + strings.Repeat(`{"x":`, depth) + "1" + strings.Repeat("}", depth) + "}"))
		done <- fmt.Sprint(field, err)
	}()
	select {
	case got := <-done:
		if got != "<nil>" {
			t.Errorf("field and error %s, want none", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the comparison does not end")
	}
}

func TestRepairedFrontmatterHasNoJSON(t *testing.T) {
	s := parseFrontmatter(t, "name: a\ndescription: use when: anything")
	if !s.Repaired {
		t.Skip("this frontmatter is not repaired")
	}
	if _, err := s.CompareFrontmatter(json.RawMessage(`{"name":"a","description":"use when: anything"}`)); err == nil {
		t.Error("no error for repaired frontmatter")
	}
}

// The JSON form of any frontmatter equals it, and no longer does once a field is
// added or removed.
func FuzzCompareFrontmatter(f *testing.F) {
	for _, s := range []string{"d: 2026-09-13", "d: yes", "d: [1.0, {x: 0x10}]", "? a\n: b", "a: .inf", "a: *b", "<<: {a: 1}", "a: 0b1\nb: -1:30", "a: !!str 1", "a: |\n  x\n", "a: {x: 0, x: {x: 0, x: 1}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, yaml string) {
		s, _ := skill.ParseBytes([]byte("---\nname: a\ndescription: b\n"+yaml+"\n---\n"), "", "")
		if s == nil || s.Repaired {
			return
		}
		js, err := s.FrontmatterJSON()
		if err != nil {
			return
		}
		if field, err := s.CompareFrontmatter(js); field != "" || err != nil {
			t.Fatalf("field %q of %s differs from its JSON %s: %v", field, s.Frontmatter, js, err)
		}
		more := strings.TrimSuffix(string(js), "}") + `,"\u0000added":1}`
		if field, err := s.CompareFrontmatter(json.RawMessage(more)); field == "" && err == nil && string(js) != "{}" {
			t.Fatalf("an added field does not differ: %s", more)
		}
	})
}
