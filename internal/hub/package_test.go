package hub_test

import (
	"archive/zip"
	"bytes"
	"database/sql"
	"fmt"
	"image"
	"image/png"
	"mime"
	"path/filepath"
	"strings"
	"testing"
)

// W4: a package has the same bytes each time, a digest for caching, and a name with any
// characters.
func TestW4DownloadsOverHTTP(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		id := c.developer.upload(t, c.in, "pdf", "one", "scripts/run.sh", "#!/bin/sh\n")
		at := "/api/v1/skills/" + id + "/versions/current/package"
		first := c.reporter.send(t, "GET", at, nil).want(t, 200)
		digest := responseRecorder[skillAnswer](t, c.reporter, "/skills/"+id).Digest
		for name, want := range map[string]string{"Content-Type": "application/zip", "Etag": `"` + digest + `"`, "Cache-Control": "private, no-cache",
			"Content-Disposition": `attachment; filename="pdf-1.zip"`, "X-Content-Type-Options": "nosniff"} {
			if got := first.header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if second := c.reporter.send(t, "GET", at, nil).want(t, 200); second.body != first.body {
			t.Error("two downloads differ")
		}
		z := must(zip.NewReader(strings.NewReader(first.body), int64(len(first.body))))(t)
		if len(z.File) == 0 || !strings.HasPrefix(z.File[0].Name, "pdf/") {
			t.Errorf("the package has %v", z.File)
		}
		for tag, want := range map[string]int{`"` + digest + `"`: 304, `W/"` + digest + `"`: 304, `"x", "` + digest + `"`: 304, "*": 304, `"x"`: 200, digest: 200} {
			r := c.reporter.with("If-None-Match", tag).send(t, "GET", at, nil).want(t, want)
			if want == 304 && (r.body != "" || r.header.Get("Etag") != `"`+digest+`"`) {
				t.Errorf("with %s: %q, %v", tag, r.body, r.header)
			}
		}
		if r := c.reporter.send(t, "HEAD", at, nil).want(t, 200); r.body != "" || r.header.Get("Etag") != `"`+digest+`"` {
			t.Errorf("the head has %q, %v", r.body, r.header)
		}
		c.eve.with("If-None-Match", `"`+digest+`"`).send(t, "GET", at, nil).wantProblem(t, 404, "not_found")
		c.eve.with("If-None-Match", "*").send(t, "GET", at, nil).wantProblem(t, 404, "not_found")

		again := c.eve.send(t, "POST", "/api/v1/skills?lenient=true", inForm(t, "pdf-1.zip", first.body)).want(t, 201)
		if again.text(t, "digest") != digest {
			t.Errorf("uploaded again it is %s", again.body)
		}

		named := c.developer.upload(t, c.in, "数据", "one")
		said := c.reporter.send(t, "GET", "/api/v1/skills/"+named+"/versions/1/package", nil).want(t, 200).header.Get("Content-Disposition")
		_, params, err := mime.ParseMediaType(said)
		if err != nil || params["filename"] != "数据-1.zip" || !strings.Contains(said, `filename="__-1.zip"`) {
			t.Errorf("the name is said as %s: %v", said, err)
		}
	})
}

// A file of a skill is never a page of the hub, whatever is in it.
func TestFilesOfVersions(t *testing.T) {
	c := newGroupHub(t, "")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"page.html": "<!DOCTYPE html><script>alert(1)</script>", "drawing.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>", "picture.png": picture.String(),
		"page.png": "<html><body>no picture</body></html>", "data.bin": "\x00\x01\x02\xff", "doc.pdf": "%PDF-1.7\n\x00\xff", "deep/er/数 据.txt": "数", "empty.txt": "",
	}
	var more []string
	for path, data := range files {
		more = append(more, path, data)
	}
	id := c.developer.upload(t, c.in, "pdf", "one", more...)
	at := "/api/v1/skills/" + id + "/versions/1/files/"
	const text, bytesKind = "text/plain; charset=utf-8", "application/octet-stream"
	for _, tt := range []struct{ path, kind, said string }{
		{"page.html", text, ""}, {"drawing.svg", text, ""}, {"page.png", text, ""}, {"empty.txt", text, ""}, {"deep/er/数 据.txt", text, ""}, {"picture.png", "image/png", ""},
		{"data.bin", bytesKind, `attachment; filename="data.bin"`}, {"doc.pdf", bytesKind, `attachment; filename="doc.pdf"`},
	} {
		r := c.reporter.send(t, "GET", at+strings.ReplaceAll(tt.path, " ", "%20"), nil).want(t, 200)
		if r.body != files[tt.path] || r.header.Get("Content-Type") != tt.kind || r.header.Get("Content-Disposition") != tt.said {
			t.Errorf("%s is %q as %v", tt.path, r.body, r.header)
		}
		if r.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: a browser may guess: %v", tt.path, r.header)
		}
		c.reporter.with("If-None-Match", r.header.Get("Etag")).send(t, "GET", at+strings.ReplaceAll(tt.path, " ", "%20"), nil).want(t, 304)
	}
	part := c.reporter.with("Range", "bytes=2-8").send(t, "GET", at+"page.html", nil).want(t, 206)
	if part.body != "DOCTYPE" || part.header.Get("Content-Range") != "bytes 2-8/40" {
		t.Errorf("the part is %q, %v", part.body, part.header)
	}
	if r := c.reporter.send(t, "HEAD", at+"page.html", nil).want(t, 200); r.body != "" || r.header.Get("Content-Length") != "40" {
		t.Errorf("the head is %v", r.header)
	}
	for _, path := range []string{"nothing", "deep", "deep/", "..%2f..%2fhub.db", "deep%2f..%2fpage.html", "page.html/", "%00", ""} {
		if r := c.reporter.send(t, "GET", at+path, nil); r.status != 404 && r.status != 422 {
			t.Errorf("%q is %d: %s", path, r.status, r.body)
		}
	}
}

func TestDamagedFilesAreErrors(t *testing.T) {
	c := newGroupHub(t, "")
	var notes strings.Builder
	for i := range 10_000 {
		fmt.Fprintln(&notes, "line", i)
	}
	id := c.developer.upload(t, c.in, "pdf", "one", "notes.md", notes.String())
	db := must(sql.Open("sqlite", filepath.Join(c.data, "hub.db")))(t)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE blob_parts SET data = zeroblob(length(data)) WHERE length(data) > 1000"); err != nil {
		t.Fatal(err)
	}
	at := "/api/v1/skills/" + id + "/versions/1"
	c.reporter.send(t, "GET", at+"/files/SKILL.md", nil).want(t, 200)
	r := c.reporter.send(t, "GET", at+"/files/notes.md", nil)
	r.wantProblem(t, 500, "corrupt")
	if r.header.Get("Etag") != "" || !strings.Contains(r.body, "--check") || !strings.Contains(c.log.String(), "damaged") {
		t.Errorf("the answer is %s with %v", r.body, r.header)
	}
	pkg := c.reporter.send(t, "GET", at+"/package", nil)
	pkg.wantProblem(t, 500, "corrupt")
	if pkg.header.Get("Etag") != "" || pkg.header.Get("Content-Disposition") != "" {
		t.Errorf("the answer is %v", pkg.header)
	}
}
