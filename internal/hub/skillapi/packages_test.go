package skillapi_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
)

// request sends a request to a path with its prefix, and returns the response with
// its body.
func (s *server) request(p account.Principal, method, path string, header map[string]string, body []byte) (*http.Response, string) {
	s.t.Helper()
	s.ctx = account.NewContext(s.t.Context(), p)
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res, string(text)
}

func form(t *testing.T, part, fileName string, data []byte) (kind string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.WriteField("note", "before the file"); err != nil {
		t.Fatal(err)
	}
	f, err := w.CreateFormFile(part, fileName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.Bytes()
}

func TestUploads(t *testing.T) {
	s := newServer(t)
	pkg := func(name string) []byte { return packed(t, name, "x", nil) }
	multi := func(part, name string) (string, []byte) { return form(t, part, name+".zip", pkg(name)) }
	formKind, formBody := multi("file", "as-form")
	otherKind, otherBody := multi("other", "other")
	for _, tt := range []struct {
		name, query string
		header      map[string]string
		body        []byte
		status      int
		code        string
	}{
		{"query", "?file_name=a.zip", map[string]string{"Content-Type": "application/zip"}, pkg("a"), 201, ""},
		{"octets", "?file_name=b.zip", map[string]string{"Content-Type": "application/octet-stream"}, pkg("b"), 201, ""},
		{"disposition", "", map[string]string{"Content-Type": "application/x-zip-compressed", "Content-Disposition": `attachment; filename="c.zip"`}, pkg("c"), 201, ""},
		{"form", "", map[string]string{"Content-Type": formKind}, formBody, 201, ""},
		{"lenient", "?lenient=true", map[string]string{"Content-Type": "application/zip"}, pkg("d"), 201, ""},
		{"no name", "", map[string]string{"Content-Type": "application/zip"}, pkg("e"), 422, "invalid"},
		{"another name", "?file_name=f.zip", map[string]string{"Content-Type": "application/zip"}, pkg("e"), 400, "package"},
		{"no file in the form", "", map[string]string{"Content-Type": otherKind}, otherBody, 422, "invalid"},
		{"half a form", "", map[string]string{"Content-Type": formKind}, formBody[:200], 400, ""},
		{"no form", "", map[string]string{"Content-Type": "multipart/form-data"}, formBody, 400, ""},
		{"text", "?file_name=e.zip", map[string]string{"Content-Type": "text/plain"}, pkg("e"), 415, ""},
		{"taken", "?file_name=a.zip", map[string]string{"Content-Type": "application/zip"}, pkg("a"), 409, "exists"},
	} {
		res, text := s.request(s.ada, "POST", api.Prefix+"/skills"+tt.query, tt.header, tt.body)
		if res.StatusCode != tt.status || tt.code != "" && tt.code != "package" && !strings.Contains(text, `"code":"`+tt.code+`"`) {
			t.Errorf("%s: %d %s", tt.name, res.StatusCode, text)
			continue
		}
		if at := res.Header.Get("Location"); tt.status == 201 {
			if at != api.Prefix+"/skills/"+id(t, text) || !strings.Contains(text, `"number":1`) {
				t.Errorf("%s: at %q: %s", tt.name, at, text)
			}
		} else if at != "" {
			t.Errorf("%s: at %q", tt.name, at)
		}
	}
	skill := id(t, s.must(s.ada, "GET", "/skills?q=as-form", nil))
	versions := api.Prefix + "/skills/" + skill + "/versions"
	zipped := map[string]string{"Content-Type": "application/zip"}
	if res, text := s.request(s.ada, "POST", versions+"?file_name=as-form.zip", zipped, packed(t, "as-form", "new", nil)); res.StatusCode != 201 || res.Header.Get("Location") != versions+"/2" {
		t.Errorf("second version: %d %v %s", res.StatusCode, res.Header, text)
	}
	if res, text := s.request(s.ada, "POST", versions+"?file_name=as-form.zip", zipped, packed(t, "as-form", "x", nil)); res.StatusCode != 409 || !strings.Contains(text, "/versions/{version}/use") {
		t.Errorf("the same files again: %d %s", res.StatusCode, text)
	}
}

func TestDownloads(t *testing.T) {
	s := newServer(t)
	binary := []byte("\x00\xff\x00")
	png := []byte("\x89PNG\x0D\x0A\x1A\x0A....")
	pkg := packed(t, "pdf", "Text.", fstest.MapFS{"data.bin": {Data: binary}, "a.png": {Data: png}, "page.html": {Data: []byte("<script>alert(1)</script>")}})
	skill := id(t, s.must(s.ada, "POST", "/skills?file_name=pdf.zip", pkg))
	at := api.Prefix + "/skills/" + skill + "/versions/1"
	res, text := s.request(s.ada, "GET", at+"/package", nil, nil)
	tag := res.Header.Get("ETag")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/zip" || res.Header.Get("Content-Disposition") != `attachment; filename="pdf-1.zip"` || tag == "" || res.Header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("package: %d %v", res.StatusCode, res.Header)
	}
	if _, err := zip.NewReader(strings.NewReader(text), int64(len(text))); err != nil {
		t.Error(err)
	}
	if res, text := s.request(s.ada, "GET", at+"/package", map[string]string{"If-None-Match": tag}, nil); res.StatusCode != 304 || text != "" {
		t.Errorf("package that the client has: %d", res.StatusCode)
	}
	if res, text := s.request(s.ada, "HEAD", at+"/package", nil, nil); res.StatusCode != 200 && res.StatusCode != 405 || text != "" {
		t.Errorf("head of the package: %d %q", res.StatusCode, text)
	}
	for name, want := range map[string]struct{ kind, disposition, content string }{
		"SKILL.md":  {"text/plain; charset=utf-8", "", "Does pdf."},
		"page.html": {"text/plain; charset=utf-8", "", "<script>"}, // never a page of the hub
		"a.png":     {"image/png", "", "PNG"},
		"data.bin":  {"application/octet-stream", `attachment; filename="data.bin"`, "\xff"},
	} {
		res, text := s.request(s.ada, "GET", at+"/files/"+name, nil, nil)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != want.kind || res.Header.Get("Content-Disposition") != want.disposition || !strings.Contains(text, want.content) {
			t.Errorf("%s: %d %v %q", name, res.StatusCode, res.Header, text)
		}
		if res, _ := s.request(s.ada, "GET", at+"/files/"+name, map[string]string{"If-None-Match": res.Header.Get("ETag")}, nil); res.StatusCode != 304 {
			t.Errorf("%s, which the client has: %d", name, res.StatusCode)
		}
	}
	if res, text := s.request(s.ada, "GET", at+"/files/SKILL.md", map[string]string{"Range": "bytes=4-7"}, nil); res.StatusCode != 206 || text != "name" {
		t.Errorf("part of a file: %d %q", res.StatusCode, text)
	}
}

// Programs can install skills from the hub as from any site that publishes them.
func TestSkillIndex(t *testing.T) {
	s := newServer(t)
	skill := id(t, s.must(s.ada, "POST", "/skills?file_name=pdf.zip", packed(t, "pdf", "Text.", nil)))
	s.must(s.ada, "POST", "/skills?file_name=csv.zip", packed(t, "csv", "Text.", nil))
	s.must(s.admin, "POST", "/skills?file_name=private.zip", packed(t, "private", "Text.", nil))
	for range 2 { // the second answer has cached digests
		res, text := s.request(s.ada, "GET", "/.well-known/agent-skills/index.json", nil, nil)
		var index struct {
			Schema string `json:"$schema"`
			Skills []struct{ Name, Type, Description, URL, Digest string }
		}
		if err := json.Unmarshal([]byte(text), &index); err != nil || res.StatusCode != 200 || len(index.Skills) != 2 || index.Schema == "" {
			t.Fatalf("%d %s: %v", res.StatusCode, text, err)
		}
		for _, one := range index.Skills {
			_, data := s.request(s.ada, "GET", one.URL, nil, nil)
			sum := sha256.Sum256([]byte(data))
			if one.Type != "archive" || one.Description != "Does "+one.Name+"." || one.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
				t.Errorf("%+v", one)
			}
			if one.Name == "pdf" && one.URL != api.Prefix+"/skills/"+skill+"/versions/1/package" {
				t.Errorf("%s at %s", one.Name, one.URL)
			}
		}
	}
	for name, p := range map[string]account.Principal{"nobody": {}, "a token for another purpose": {User: "ada", Scopes: account.ScopeMCP}} {
		if res, text := s.request(p, "GET", "/.well-known/agent-skills/index.json", nil, nil); res.StatusCode != 401 && res.StatusCode != 403 {
			t.Errorf("%s: %d %s", name, res.StatusCode, text)
		}
	}
}

// A skill whose files cannot be read does not hide the other skills of the index.
func TestSkillIndexOmitsUnreadableSkills(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"csv", "pdf", "zip"} {
		s.must(s.ada, "POST", "/skills?file_name="+name+".zip", packed(t, name, "Text.", nil))
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.database, "sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec("UPDATE blob_parts SET data = zeroblob(length(data)) WHERE CAST(data AS TEXT) LIKE '%Does pdf.%'")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d parts of files damaged, error %v", n, err)
	}
	found, text := s.request(s.ada, "GET", "/.well-known/agent-skills/index.json", nil, nil)
	if found.StatusCode != 200 || !strings.Contains(text, `"csv"`) || !strings.Contains(text, `"zip"`) || strings.Contains(text, `"pdf"`) {
		t.Errorf("%d %s", found.StatusCode, text)
	}
}

func TestDrafts(t *testing.T) {
	s := newServer(t)
	s.must(s.ada, "POST", "/skills?file_name=tides.zip", packed(t, "tides", "Text.", nil))
	const files = `"files": [{"path": "SKILL.md", "text": "---\nname: pdf\ndescription: Fills PDF forms.\n---\nText.\n"}, {"path": "run.sh", "text": "#!/bin/sh\necho hello\n"}]`
	if text := s.must(s.ada, "POST", "/drafts/check", "{"+files+`, "namespace": "user:ada"}`); !strings.Contains(text, "pdf: Fills PDF forms.") {
		t.Errorf("checked: %s", text)
	}
	text := s.must(s.ada, "POST", "/drafts/find", "{"+files+`, "queries": ["fill forms", "tides"]}`)
	if at := strings.Index(text, `"pdf"`); at < 0 || !strings.Contains(text[at:], `"draft":true`) || !strings.Contains(text, `"tides"`) {
		t.Errorf("found: %s", text)
	}
	res, pkg := s.request(s.ada, "POST", api.Prefix+"/drafts/package", map[string]string{"Content-Type": "application/json"}, []byte("{"+files+"}"))
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/zip" || res.Header.Get("Content-Disposition") != `attachment; filename="pdf.zip"` {
		t.Fatalf("packed: %d %v %s", res.StatusCode, res.Header, pkg)
	}
	skill := id(t, s.must(s.ada, "POST", "/skills?file_name=pdf.zip", []byte(pkg)))
	if text := s.must(s.ada, "GET", "/skills/"+skill+"/versions/1/files/run.sh", nil); text != "#!/bin/sh\necho hello\n" {
		t.Errorf("uploaded: %q", text)
	}
	for path, body := range map[string]string{"/drafts/check": "{" + files + `, "namespace": "none"}`, "/drafts/find": "{" + files + `, "namespace": "none", "queries": ["x"]}`} {
		if w := s.send(t.Context(), s.ada, "POST", path, body); w.status != 404 {
			t.Errorf("%s in an unknown namespace: %d %s", path, w.status, w.body)
		}
	}
}

func TestReviews(t *testing.T) {
	s := newServer(t)
	text := s.must(s.ada, "POST", "/skills?file_name=pdf.zip", packed(t, "pdf", "Text.", fstest.MapFS{"run.sh": {Data: []byte("#!/bin/sh\necho hello\n")}}))
	skill := id(t, text)
	s.must(s.admin, "PUT", "/skills/"+skill+"/listings/public", nil)
	var waiting struct {
		Items []struct {
			Name, Namespace string
			Version         struct{ Digest, Review string }
		}
	}
	if err := json.Unmarshal([]byte(s.must(s.admin, "GET", "/reviews", nil)), &waiting); err != nil || len(waiting.Items) != 1 || waiting.Items[0].Name != "pdf" || waiting.Items[0].Namespace != "user:ada" {
		t.Fatalf("waiting: %+v, %v", waiting, err)
	}
	at := "/skills/" + skill + "/versions/1/review"
	if w := s.send(t.Context(), s.admin, "PUT", at, `{"decision": "approved", "digest": "sha256:other"}`); w.status != 409 || !strings.Contains(w.body, "the files differ") {
		t.Errorf("of other files: %d %s", w.status, w.body)
	}
	s.must(s.admin, "PUT", at, `{"decision": "approved", "digest": "`+waiting.Items[0].Version.Digest+`"}`)
	if text := s.must(s.admin, "GET", "/reviews", nil); !strings.Contains(text, `"items":[]`) {
		t.Errorf("waiting after approval: %s", text)
	}
	if w := s.send(t.Context(), s.admin, "GET", "/reviews?namespace=none", nil); w.status != 404 {
		t.Errorf("of an unknown namespace: %d %s", w.status, w.body)
	}
}

func TestSkillListAndChanges(t *testing.T) {
	s := newServer(t)
	pdf := id(t, s.must(s.ada, "POST", "/skills?file_name=pdf.zip", packed(t, "pdf", "Text.", fstest.MapFS{"run.sh": {Data: []byte("#!/bin/sh\n")}})))
	s.must(s.ada, "POST", "/skills?file_name=csv.zip", packed(t, "csv", "Text.", nil))
	for query, want := range map[string]string{
		"": "csv pdf", "?code=yes": "pdf", "?code=no": "csv", "?imported=yes": "", "?imported=no": "csv pdf", "?namespace=default&namespace=user:ada": "csv pdf", "?namespace=public": "", "?q=pd": "pdf",
	} {
		var list struct {
			Items  []struct{ Name string }
			Total  int
			Facets any
		}
		if err := json.Unmarshal([]byte(s.must(s.ada, "GET", "/skills"+query, nil)), &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range list.Items {
			names = append(names, i.Name)
		}
		if got := strings.Join(names, " "); got != want || list.Total != len(names) || list.Facets != nil {
			t.Errorf("%q: %q of %d, facets %v", query, got, list.Total, list.Facets)
		}
	}
	if text := s.must(s.ada, "GET", "/skills?facets=true", nil); !strings.Contains(text, `"facets":{`) {
		t.Error(text)
	}
	if w := s.send(t.Context(), s.ada, "GET", "/skills?namespace=none", nil); w.status != 404 {
		t.Errorf("an unknown namespace: %d", w.status)
	}
	at := "/skills/" + pdf
	s.must(s.ada, "PATCH", at, "{}")
	if w := s.send(t.Context(), s.ada, "PATCH", at, `{"pinned": true, "hidden": true}`); w.status < 400 || strings.Contains(s.must(s.ada, "GET", at, nil), `"hidden":true`) {
		t.Errorf("pin a skill that was not imported: %d %s", w.status, w.body)
	}
	if text := s.must(s.ada, "PATCH", at, `{"hidden": true}`); !strings.Contains(text, "references") {
		t.Error(text)
	}
	if text := s.must(s.ada, "GET", "/skills", nil); strings.Contains(text, `"pdf"`) {
		t.Errorf("listed: %s", text)
	}
	for _, query := range []string{"?hidden=true", "?only_hidden=true"} {
		if text := s.must(s.ada, "GET", "/skills"+query, nil); !strings.Contains(text, `"pdf"`) {
			t.Errorf("%s: %s", query, text)
		}
	}
	if text := s.must(s.ada, "DELETE", at+"?dry=true", nil); text == "" || s.send(t.Context(), s.ada, "GET", at, nil).status != 200 {
		t.Errorf("dry run: %s", text)
	}
}

func TestImportRequests(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		path, body string
		status     int
		code       string
	}{
		{"/skills/import/look", `{"source": "https://example.com/x.zip", "ref": "v1"}`, 422, "invalid"},
		{"/skills/import", `{"source": "https://example.com/x.zip", "ref": "v1"}`, 422, "invalid"},
		{"/skills/import/look", `{"source": "ftp://example.com", "ref": "v1"}`, 422, "source_invalid"},
		{"/skills/import", `{"source": "ftp://example.com"}`, 422, "source_invalid"},
		{"/skills/import/look", `{"source": "team/skills", "namespace": "none"}`, 404, "not_found"},
		{"/skills/import", `{"source": "team/skills", "namespace": "none"}`, 404, "not_found"},
		{"/skills/import", `{"source": "team/skills", "namespace": "public"}`, 403, "forbidden"},
		{"/skills/import/look", `{"source": "https://127.0.0.1/x.zip"}`, 422, "source_address"},
		{"/skills/update", `{"namespace": "none"}`, 404, "not_found"},
	} {
		if w := s.send(t.Context(), s.ada, "POST", tt.path, tt.body); w.status != tt.status || !strings.Contains(w.body, `"code":"`+tt.code+`"`) {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, w.status, w.body)
		}
	}
	if text := s.must(s.ada, "POST", "/skills/update", "{}"); !strings.Contains(text, `"updated":[]`) {
		t.Errorf("nothing to update: %s", text)
	}
}
