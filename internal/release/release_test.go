package release

import (
	"strings"
	"testing"
)

const sum = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"

func TestLatest(t *testing.T) {
	x, err := Parse([]byte(`{"format": 1, "releases": [
		{"version": "v1.9.0"}, {"version": "v1.10.0", "files": [{"platform": "linux/amd64", "url": "a.tar.gz", "sha256": "` + sum + `"}]},
		{"version": "v1.11.0-rc.1"}, {"version": "v1.2.0"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		current, latest string
		state           State
	}{
		{"v1.2.0", "v1.10.0", Newer},
		{"v1.10.0", "v1.10.0", Current},
		{"v1.10.0+dirty", "v1.10.0", Current},
		{"v1.10.0-rc.1", "v1.11.0-rc.1", Newer},
		{"v2.0.0", "v1.10.0", Current},
		{"v1.9.1-0.20261128120000-aa170b2016ce", "v1.10.0", Newer},
		{"v1.10.1-0.20261128120000-aa170b2016ce", "v1.10.0", Current},
		{"v1.10.1-0.20261128120000-aa170b2016ce+dirty", "v1.10.0", Current},
		{"devel", "v1.10.0", Unknown},
	} {
		latest := x.Latest(test.current)
		if latest.Version != test.latest || Compare(test.current, latest) != test.state {
			t.Errorf("%s: got latest %s (%s), want %s (%s)", test.current, latest.Version, Compare(test.current, latest), test.latest, test.state)
		}
	}
	r := x.Latest("v1.2.0")
	if f := r.File("linux/amd64"); f == nil || f.URL != "a.tar.gz" {
		t.Errorf("file for linux/amd64 is %v", f)
	}
	if f := r.File("plan9/amd64"); f != nil {
		t.Errorf("file for plan9/amd64 is %v", f)
	}
	if latest := (&Index{}).Latest("v1.0.0"); latest != nil || Compare("v1.0.0", latest) != Current {
		t.Errorf("latest of no releases is %v", latest)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		`nothing`:                      "invalid release index",
		`{}`:                           "not a release index",
		`{"format": 2, "releases": 7}`: "unsupported release index format 2 (want 1)",
		`{"format": 1, "releases": 7}`: "invalid release index",
		`{"format": 1, "releases": [{"version": "1.2.0"}]}`:                                                   `"1.2.0" is not a version`,
		`{"format": 1, "releases": [{"version": "v1.2"}]}`:                                                    `"v1.2" is not a version`,
		`{"format": 1, "releases": [{"version": "v1.2.0", "files": [{"sha256": "5F"}]}]}`:                     `"5F" is not a SHA-256`,
		`{"format": 1, "releases": [` + strings.Repeat(`{"version": "v1.0.0"},`, maxReleases) + `{}]}`:        "too many releases in the index (10001, limit 10000)",
		`{"format": 1, "releases": [{"version": "v1.0.0", "files": [` + strings.Repeat(`{},`, 100) + `{}]}]}`: "too many files (101, limit 100)",
		strings.Repeat(" ", MaxSize+1):                                                                        "index too large (1048577 bytes, limit 1048576)",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
}

// An accepted index has a latest version that is one of its releases, and every
// checksum is complete.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format": 1, "releases": [{"version": "v1.10.0", "files": [{"platform": "linux/amd64", "sha256": "` + sum + `"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Parse(data)
		if err != nil {
			return
		}
		for _, r := range x.Releases {
			if Compare(r.Version, x.Latest(r.Version)) == Unknown {
				t.Errorf("release %q has no version", r.Version)
			}
			for _, file := range r.Files {
				if len(file.SHA256) != 64 {
					t.Errorf("checksum %q", file.SHA256)
				}
			}
		}
	})
}
