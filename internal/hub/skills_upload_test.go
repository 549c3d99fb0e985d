package hub_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/api"
)

// W1: a package is accepted as a form and as a body, with the fields of earlier systems.
// A numeric version becomes text, and the body stays unchanged.
func TestW1PackagesAreAcceptedOverHTTP(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		text := "---\ndescription: Reads forms.\ndisplayName: Form reader\nversion: 1.10\nauthor: someone\ntags: [pdf, forms]\nbindShells: [Chat]\n" +
			"tools:\n  - name: read\n    provider: forms\nprovider:\n  class: FormsProvider\n---\nRead the form.\n"
		files := skillFiles("forms", "", "provider.py", "pass\n")
		files["SKILL.md"].Data = []byte(text)
		data := zipOf(t, "forms", files)
		for way, send := range map[string]func(namespace string) reply{
			"form": func(in string) reply {
				return c.root.send(t, "POST", "/api/v1/skills?namespace="+in, inForm(t, "forms.zip", data))
			},
			"ZIP": func(in string) reply {
				return c.root.send(t, "POST", "/api/v1/skills?file_name=forms.zip&namespace="+in, typed{"application/zip", data})
			},
		} {
			in := map[string]string{"form": "team", "ZIP": "public"}[way]
			r := send(in).want(t, 201)
			var s skillAnswer
			r.into(t, &s)
			if s.Name != "forms" || s.DisplayName != "Form reader" || s.Version != "1.10" || s.Description != "Reads forms." || s.Number != 1 || !s.Code || s.Review != "pending" || s.Files != 2 || s.CurrentVersion.Scripts != 1 {
				t.Errorf("%s: the skill is %s", way, r.body)
			}
			wantSame(t, "tags", s.Tags, []string{"pdf", "forms"})
			if at := r.header.Get("Location"); at != "/api/v1/skills/"+s.ID {
				t.Errorf("%s: it is at %q", way, at)
			}
			if got := c.root.send(t, "GET", r.header.Get("Location")+"/versions/current/files/SKILL.md", nil).want(t, 200).body; got != text {
				t.Errorf("%s: SKILL.md is stored as %q", way, got)
			}
		}
	})
}

// W2: refused packages, with every reason and position.
func TestW2PackagesAreRefusedOverHTTP(t *testing.T) {
	c := newGroupHub(t, "")
	noise := make([]byte, 11<<20)
	rand.Read(noise)
	broken := skillFiles("pdf", "")
	broken["SKILL.md"].Data = []byte("---\nname: pdf\n---\nNo description.\n")
	empty := skillFiles("pdf", "")
	delete(empty, "SKILL.md")
	empty["README.md"] = skillFiles("pdf", "")["SKILL.md"]
	as := func(kind, data string) typed { return typed{kind, data} }
	const zipKind = "application/zip"
	good := zipOf(t, "pdf", skillFiles("pdf", ""))
	form := inForm(t, "pdf.zip", good)
	for _, tt := range []struct {
		what   string
		query  string
		body   typed
		status int
		code   string
		where  []string // what of the request is wrong
	}{
		{"no archive", "", as(zipKind, "hello"), 400, "bad_package", []string{"package"}},
		{"nothing", "", as(zipKind, ""), 400, "bad_package", []string{"package"}},
		{"out of its folder, twice", "", as(zipKind, slip(t)), 400, "bad_package", []string{"../a", "pdf/../../b"}},
		{"no SKILL.md", "", as(zipKind, zipOf(t, "pdf", empty)), 400, "bad_package", []string{"package"}},
		{"broken", "", as(zipKind, zipOf(t, "pdf", broken)), 400, "bad_skill", nil},
		{"too large", "", as(zipKind, string(noise)), 413, "too_large", nil},
		{"too large, in a form", "", inForm(t, "pdf.zip", string(noise)), 413, "too_large", nil},
		{"a name that means something else", "&lenient=true", as(zipKind, zipOf(t, "pdf", skillFiles("pdf@1", ""))), 422, "bad_name", nil},
		{"JSON", "", as("application/json", "{}"), 415, "media_type", nil},
		{"a form that is none", "", as("multipart/form-data; boundary=x", good), 400, "malformed", nil},
		{"a form without a boundary", "", as("multipart/form-data", good), 400, "malformed", nil},
		{"a form without a file", "", as("multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nhello\r\n--x--\r\n"), 422, "invalid", []string{"body.file"}},
		{"a form that ends in the middle", "", as(form.kind, form.data[:len(form.data)/2]), 400, "malformed", nil},
	} {
		r := c.developer.send(t, "POST", "/api/v1/skills?file_name=pdf.zip"+tt.query, tt.body)
		r.wantProblem(t, tt.status, tt.code)
		var p api.Problem
		r.into(t, &p)
		for _, where := range tt.where {
			if !slices.ContainsFunc(p.Errors, func(f api.Fault) bool {
				return f.Where == where && f.Message != "" && (f.Code != "") == (p.Code == "bad_package")
			}) {
				t.Errorf("%s: no message of %s: %s", tt.what, where, r.body)
			}
		}
		if tt.code == "bad_skill" && !strings.Contains(r.body, `"line"`) {
			t.Errorf("%s: it is missing where: %s", tt.what, r.body)
		}
		if p.Next == "" {
			t.Errorf("%s: no next step: %s", tt.what, r.body)
		}
	}
	if report := must(c.Library().Check(t.Context()))(t); report.Skills != 0 || report.Versions != 0 {
		t.Errorf("something is stored: %+v", report)
	}
	c.wantNoUploads(t)
}

// slip returns an archive with a path outside of its folder.
func slip(t *testing.T) string {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range []string{"pdf/SKILL.md", "../a", "pdf/../../b"} {
		if _, err := must(w.Create(name))(t).Write([]byte("---\nname: pdf\ndescription: d\n---\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wantNoUploads checks that no file of an upload is left on the disk.
func (c *groupHub) wantNoUploads(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(c.data, "node", "temp"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// W3: the folder must have the name of the archive, wherever that is given, unless the
// user disables this.
func TestW3FolderAndArchiveNames(t *testing.T) {
	c := newGroupHub(t, "")
	const zipKind = "application/zip"
	flat := func(folder string) string {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		for name, data := range map[string]string{folder + "SKILL.md": "---\nname: pdf\ndescription: d\n---\n", "__MACOSX/._SKILL.md": "x"} {
			if _, err := must(w.Create(name))(t).Write([]byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, tt := range []struct {
		what, query, said string
		body              typed
		status            int
	}{
		{"the same, by the query", "?file_name=pdf.zip", "", typed{zipKind, flat("pdf/")}, 201},
		{"the same, by a header", "", `attachment; filename="pdf.zip"`, typed{zipKind, flat("pdf/")}, 201},
		{"the same, by a header with any characters", "", `attachment; filename*=UTF-8''p%64f.zip`, typed{zipKind, flat("pdf/")}, 201},
		{"the same, by a form", "", "", inForm(t, "pdf.zip", flat("pdf/")), 201},
		{"no folder", "", "", inForm(t, "pdf.zip", flat("")), 201},
		{"downloaded twice by a browser", "", "", inForm(t, "pdf (1).zip", flat("pdf/")), 201},
		{"another, by the query", "?file_name=docx.zip", "", typed{zipKind, flat("pdf/")}, 400},
		{"another, by a header", "", `attachment; filename="docx.zip"`, typed{zipKind, flat("pdf/")}, 400},
		{"another, by a form", "", "", inForm(t, "docx.zip", flat("pdf/")), 400},
		{"another, and it may be", "?lenient=true", "", inForm(t, "docx.zip", flat("pdf/")), 201},
		{"not said", "", "", typed{zipKind, flat("pdf/")}, 422},
		{"not said, and it may be any", "?lenient=true", "", typed{zipKind, flat("pdf/")}, 201},
	} {
		sender := c.developer
		if tt.said != "" {
			sender = sender.with("Content-Disposition", tt.said)
		}
		r := sender.send(t, "POST", "/api/v1/skills"+tt.query, tt.body)
		if r.status != tt.status {
			t.Errorf("%s: %d, want %d: %s", tt.what, r.status, tt.status, r.body)
		}
		if r.status == 201 {
			c.developer.send(t, "DELETE", "/api/v1/skills/"+r.text(t, "id"), nil).want(t, 200)
		}
	}
}

// W5: a name is there once in a namespace, and free again after a deletion.
func TestW5NamesAreUniqueOverHTTP(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		id := c.developer.upload(t, c.in, "pdf", "one")
		r := c.another.send(t, "POST", "/api/v1/skills?namespace=team", zipped(t, "pdf", "two"))
		if r.wantProblem(t, 409, "exists"); !strings.Contains(r.text(t, "next"), "/skills/{skill}/versions") {
			t.Errorf("it does not say how a version is added: %s", r.body)
		}
		for who, mayAdd := range map[*caller]bool{&c.developer: true, &c.another: false, &c.maintainer: true} {
			var p api.Problem
			who.send(t, "POST", "/api/v1/skills?namespace=team", zipped(t, "pdf", "two")).into(t, &p)
			wantSame(t, "the skill with the name", p.Taken, &api.Taken{ID: id, MayAdd: mayAdd})
		}
		c.another.upload(t, "", "pdf", "in another namespace")
		c.developer.send(t, "DELETE", "/api/v1/skills/"+id, nil).want(t, 200)
		if again := c.another.upload(t, c.in, "pdf", "one"); again == id {
			t.Error("it is the skill that was deleted")
		}
	})
}

func TestConcurrentUploadsOfOneName(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		packages := []typed{zipped(t, "pdf", "one"), zipped(t, "pdf", "two")}
		replies := make([]reply, len(packages))
		errs := make([]error, len(packages))
		var wg sync.WaitGroup
		for i, who := range []caller{c.developer, c.another} {
			wg.Go(func() { replies[i], errs[i] = c.node.send(who, "POST", "/api/v1/skills?namespace=team", packages[i]) })
		}
		wg.Wait()
		var statuses []int
		for i, r := range replies {
			must(r, errs[i])(t)
			statuses = append(statuses, r.status)
			if r.status == 409 {
				r.wantProblem(t, 409, "exists")
			}
		}
		slices.Sort(statuses)
		wantSame(t, "statuses", statuses, []int{201, 409})
		if list := responseRecorder[skillList](t, c.reporter, "/skills?namespace=team"); len(list.Items) != 1 {
			t.Errorf("the skills are %v", list.ids())
		}
	})
}

// Who is cut off in the middle of an upload leaves nothing.
func TestInterruptedUpload(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		data := zipOf(t, "pdf", skillFiles("pdf", strings.Repeat("Do it.\n", 10_000)))
		form := inForm(t, "pdf.zip", data)
		for _, body := range []typed{{"application/zip", data}, form} {
			conn := must(net.Dial("tcp", c.Listener.Addr().String()))(t)
			w := bufio.NewWriter(conn)
			fmt.Fprintf(w, "POST /api/v1/skills?file_name=pdf.zip HTTP/1.1\r\nHost: hub\r\nCookie: %s=%s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
				c.developer.cookie.Name, c.developer.cookie.Value, body.kind, len(body.data))
			w.WriteString(body.data[:len(body.data)/2])
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp := must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
			resp.Body.Close()
			conn.Close()
			if resp.StatusCode != 400 {
				t.Errorf("%s: the answer is %s", body.kind, resp.Status)
			}
		}
		if list := responseRecorder[skillList](t, c.developer, "/skills"); len(list.Items) != 0 {
			t.Errorf("the skills are %v", list.ids())
		}
		c.wantNoUploads(t)
		if report := must(c.Library().Check(t.Context()))(t); report.Skills != 0 || report.Versions != 0 || report.Files != 0 {
			t.Errorf("something is stored: %+v", report)
		}
	})
}

// A provider's module, class or tool file that is missing from a package is named
// after an upload and an update, to the reviewer, and after the approval.
func TestMissingProviderFilesAreReportedOverHTTP(t *testing.T) {
	c := newGroupHub(t, "")
	type diagnostics struct {
		Diagnostics []api.Diagnostic
	}
	want := func(t *testing.T, where string, got diagnostics, code, file string) {
		t.Helper()
		var found []api.Diagnostic
		for _, d := range got.Diagnostics {
			if strings.HasPrefix(d.Code, "provider-") {
				found = append(found, d)
			}
		}
		if len(found) != 1 || found[0].Code != code || !strings.Contains(found[0].Message, file) || found[0].Line == 0 || found[0].Fix == "" {
			t.Errorf("%s: the findings are %+v", where, found)
		}
	}
	for name, test := range map[string]struct {
		python     []string // file and content
		code, file string
	}{
		"module":    {nil, "provider-file-missing", "provider.py"},
		"class":     {[]string{"provider.py", "class Chart:\n    pass\n"}, "provider-class-missing", "Charts"},
		"tool-file": {[]string{"provider.py", "class Charts:\n    def create_tool(self, name, context, config):\n        from .bar import Bar\n        return Bar()\n"}, "provider-import-missing", "bar.py"},
	} {
		t.Run(name, func(t *testing.T) {
			pkg := func(body string) typed {
				files := skillFiles(name, body, test.python...)
				files["SKILL.md"].Data = []byte("---\nname: " + name + "\ndescription: Draws charts.\ntools: [{name: bar, provider: charts}]\nprovider:\n  module: provider\n  class: Charts\n---\n" + body + "\n")
				return inForm(t, name+".zip", zipOf(t, name, files))
			}
			var uploaded struct {
				ID             string
				CurrentVersion diagnostics
			}
			c.root.send(t, "POST", "/api/v1/skills?namespace=team", pkg("Draw.")).want(t, 201).into(t, &uploaded)
			want(t, "upload", uploaded.CurrentVersion, test.code, test.file)
			at := "/api/v1/skills/" + uploaded.ID + "/versions"
			var second struct {
				diagnostics
				Digest string
			}
			c.root.send(t, "POST", at, pkg("Draw it.")).want(t, 201).into(t, &second)
			want(t, "update", second.diagnostics, test.code, test.file)
			var reviews struct {
				Items []struct {
					Name    string
					Version diagnostics
				}
			}
			c.root.send(t, "GET", "/api/v1/reviews", nil).want(t, 200).into(t, &reviews)
			pending := 0
			for _, r := range reviews.Items {
				if r.Name == name {
					pending++
					want(t, "review", r.Version, test.code, test.file)
				}
			}
			if pending == 0 {
				t.Error("no version is pending")
			}
			c.root.send(t, "PUT", at+"/2/review", map[string]string{"decision": "approved", "digest": second.Digest}).want(t, 204)
			var approved diagnostics
			c.root.send(t, "GET", at+"/2", nil).want(t, 200).into(t, &approved)
			want(t, "approved version", approved, test.code, test.file)
		})
	}
}
