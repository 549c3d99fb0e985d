package script

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// needsOf returns the needs of the script at p without searching for
// interpreters.
func needsOf(fsys fstest.MapFS, p string, declared ...string) (*Needs, error) {
	src, mode, err := readHead(fsys, p)
	if err != nil {
		return nil, err
	}
	how, err := detectInterpreter(p, src, mode)
	if err != nil {
		return nil, err
	}
	if how.kind != Python {
		return nodeNeeds(fsys, p)
	}
	if src, err = readSource(fsys, p); err != nil {
		return nil, err
	}
	n, _, err := pythonNeeds(fsys, p, src, how, declared)
	return n, err
}

func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

const block = "# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"requests<3\",\n#   \"rich\",\n# ]\n# ///\nimport rich\n"

func TestPythonNeeds(t *testing.T) {
	for _, tt := range []struct {
		name string
		fsys fstest.MapFS
		p    string
		want *Needs
	}{
		{"nothing", files("a/x.py", "print()"), "a/x.py", nil},
		{"inline", files("x.py", "#!/usr/bin/env -S uv run --script\n"+block, "requirements.txt", "flask"), "x.py",
			&Needs{Kind: Python, Requirements: []string{"requests<3", "rich"}, RequiresPython: ">=3.11", Files: []string{"x.py"}, Source: "inline metadata of x.py"}},
		{"inline with CRLF", files("x.py", strings.ReplaceAll("\ufeff"+block, "\n", "\r\n")), "x.py",
			&Needs{Kind: Python, Requirements: []string{"requests<3", "rich"}, RequiresPython: ">=3.11", Files: []string{"x.py"}, Source: "inline metadata of x.py"}},
		{"inline asks for nothing", files("x.py", "# /// script\n# dependencies = []\n# ///\n", "requirements.txt", "flask"), "x.py", nil},
		{"first line", files("x.py", "#!/usr/bin/env -S uv run --with rich --script\n"), "x.py",
			&Needs{Kind: Python, Requirements: []string{"rich"}, Files: []string{"x.py"}, Source: "first line of x.py"}},
		{"unclosed block", files("x.py", "# /// script\n# dependencies = [\"rich\"]\n"), "x.py", nil},
		{"another type", files("x.py", "# /// pyproject\n# dependencies = [\"rich\"]\n# ///\n"), "x.py", nil},
		{"beside", files("s/x.py", "", "s/requirements.txt", "a==1\n", "requirements.txt", "b"), "s/x.py",
			&Needs{Kind: Python, Requirements: []string{"a==1"}, Files: []string{"s/requirements.txt"}, Source: "s/requirements.txt"}},
		{"above", files("s/t/x.py", "", "s/t/requirements.txt", "# nothing\n\n", "requirements.txt", "b"), "s/t/x.py",
			&Needs{Kind: Python, Requirements: []string{"b"}, Files: []string{"requirements.txt"}, Source: "requirements.txt"}},
		{"not in a sibling", files("s/x.py", "", "t/requirements.txt", "b"), "s/x.py", nil},
		{"the whole grammar", files("x.py", "", "requirements.txt", "\ufeffB  >= 1.0 ,!=1.5 # why\r\n\nA[x, y]==1.* ; python_version < '3.12' and sys_platform == \"linux\"\nC \\\n   ~=2.0 \\\n  --hash=sha256:bb \\\n  --hash=sha256:aa\n-r more/req.txt\n-c c.txt\n--require-hashes\n--only-binary :all:\nB  >= 1.0 ,!=1.5\nd (>=1)\n", "more/req.txt", "-r req2.txt\n", "more/req2.txt", "zope.interface\n-r ../requirements.txt\n", "c.txt", "k<2"), "x.py",
			&Needs{Kind: Python, Requirements: []string{"A[x, y]==1.* ; python_version < '3.12' and sys_platform == \"linux\"", "B >= 1.0 ,!=1.5", "C ~=2.0 --hash=sha256:aa --hash=sha256:bb", "d (>=1)", "zope.interface"},
				Constraints: []string{"k<2"}, RequireHashes: true, Files: []string{"requirements.txt", "more/req.txt", "more/req2.txt", "c.txt"}, Source: "requirements.txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := needsOf(tt.fsys, tt.p)
			if err != nil {
				t.Fatal(err)
			}
			if got != nil {
				if !strings.HasPrefix(got.Digest, "sha256:") || len(got.Digest) != 71 {
					t.Errorf("digest %q", got.Digest)
				}
				got.Digest = ""
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The requirements in SKILL.md have the lowest precedence.
func TestDeclaredNeeds(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		fsys         fstest.MapFS
		want         []string
	}{
		{"alone", "requirements in SKILL.md", files("x.py", "print()"), []string{"numpy>=1.24", "pandas>=2.0"}},
		{"inline", "inline metadata of x.py", files("x.py", block), []string{"requests<3", "rich"}},
		{"first line", "first line of x.py", files("x.py", "#!/usr/bin/env -S uv run --with rich --script\n"), []string{"rich"}},
		{"requirements file", "requirements.txt", files("x.py", "", "requirements.txt", "a==1\n"), []string{"a==1"}},
		{"empty requirements file", "requirements in SKILL.md", files("x.py", "", "requirements.txt", "# nothing\n"), []string{"numpy>=1.24", "pandas>=2.0"}},
	} {
		n, err := needsOf(tt.fsys, "x.py", "pandas>=2.0", "numpy>=1.24")
		if err != nil || n == nil || n.Source != tt.source || !slices.Equal(n.Requirements, tt.want) {
			t.Errorf("%s: got %+v, %v, want %s from %s", tt.name, n, err, tt.want, tt.source)
		}
	}
	if n, err := needsOf(files("x.py", "# /// script\n# dependencies = []\n# ///\n"), "x.py", "pandas"); err != nil || n != nil {
		t.Errorf("a script that names no packages got %+v, %v", n, err)
	}
	if _, err := needsOf(files("x.py", ""), "x.py", "x @ https://evil.example/x.whl"); err == nil {
		t.Error("a URL was accepted")
	}
}

func TestNeedsProblems(t *testing.T) {
	for _, tt := range []struct {
		name string
		fsys fstest.MapFS
		want []string // file:line code
	}{
		{"every dangerous line at once", files("x.py", "", "r/requirements.txt", "", "requirements.txt", strings.Join([]string{
			"ok==1", "--index-url https://evil.example/", "-i https://evil.example/", "--extra-index-url=https://evil.example/", "--trusted-host evil.example",
			"-e .", "--editable=git+https://x/y", "git+https://github.com/a/b", "file:///etc/passwd", "https://x/y.whl",
			"name @ https://x/y.whl", "name[x]@git+ssh://x", "./local", "../up", "pkg.whl", "C:\\x", "-r ../outside.txt", "-r/etc/passwd",
			"-r https://x/r.txt", "-r gone.txt", "-f https://x", "--find-links=x", "--global-option=x", "--config-settings x", "name==1 --global-option=x", "${EVIL}", "two words", "name=1", "~/x", "-c ${HOME}/c.txt", "-r"}, "\n")),
			[]string{"2 option", "3 option", "4 option", "5 option", "6 direct", "7 direct", "8 direct", "9 direct", "10 direct", "11 direct", "12 direct", "13 direct", "14 direct", "15 direct", "16 direct",
				"17 outside", "18 outside", "19 outside", "0 missing", "21 option", "22 option", "23 option", "24 option", "25 option", "26 syntax", "27 syntax", "28 syntax", "29 direct", "30 outside", "31 syntax"}},
		{"continued lines count from their first", files("x.py", "", "requirements.txt", "a \\\n ==1\n# c\\\n-e .\n"), []string{"4 direct"}},
		{"inline", files("x.py", "import x\n# /// script\n# dependencies = [\n#   \"ok\",\n#   \"a @ https://x/y\",\n#   \"--index-url x\",\n#   \"b # c\",\n# ]\n# ///\n"), []string{"5 direct", "6 option", "7 option"}},
		{"inline is not TOML", files("x.py", "# /// script\n# dependencies = [\n# ]]\n# ///\n"), []string{"3 syntax"}},
		{"inline is of wrong types", files("x.py", "# /// script\n# dependencies = \"rich\"\n# requires-python = 3\n# ///\n"), []string{"2 syntax", "3 syntax"}},
		{"inline holds numbers", files("x.py", "# /// script\n# dependencies = [1]\n# ///\n"), []string{"2 syntax"}},
		{"inline version", files("x.py", "# /// script\n# requires-python = \"3.11 or so\"\n# ///\n"), []string{"2 syntax"}},
		{"two blocks", files("x.py", block+block), []string{"9 syntax"}},
		{"inline index", files("x.py", "# /// script\n# dependencies = [\"a\"]\n# [tool.uv]\n# extra-index-url = [\"https://x\"]\n# [tool.uv.sources]\n# a = { git = \"https://x\" }\n# ///\n"), []string{"4 option", "5 option"}},
		{"node", files("x.js", "", "package.json", "{\"dependencies\": {\n\"a\": \"git+https://x/y\",\n\"b\": \"file:../x\",\n\"c\": \"user/repo\",\n\"d\": \"https://x/y.tgz\",\n\"e\": \"workspace:*\",\n\"f\": \"npm:../x@1\",\n\"g\": 1,\n\"../h\": \"1\",\n\"i\": \"github:a/b\",\n\"j\": \"./x\",\n\"k\": \"x.tgz\"},\n\"devDependencies\": {\"l\": \"link:x\"},\n\"workspaces\": [\"x\"], \"overrides\": {\"m\": {\"n\": \"file:x\"}}}"),
			[]string{"2 direct", "3 direct", "4 direct", "5 direct", "6 direct", "7 direct", "8 syntax", "9 syntax", "10 direct", "11 direct", "12 direct", "13 direct", "14 unsupported", "14 direct"}},
		{"node is not JSON", files("x.js", "", "package.json", "{\n\"dependencies\": {,}}"), []string{"2 syntax"}},
		{"node has a list", files("x.js", "", "package.json", "[]"), []string{"0 syntax"}},
		{"node lock", files("x.js", "", "package.json", `{"dependencies": {"a": "1"}}`, "package-lock.json", "{\"packages\": {\"node_modules/a\": {\n\"resolved\": \"https://evil.example/a.tgz\"}, \"b\": {\n\"link\": true, \"resolved\": \"../b\"}}}"), []string{"2 direct", "3 direct", "3 direct"}},
		{"node lock is broken", files("x.js", "", "package.json", `{"dependencies": {"a": "1"}}`, "package-lock.json", "{"), []string{"1 syntax"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := "x.py"
			if tt.fsys[p] == nil {
				p = "x.js"
			}
			n, err := needsOf(tt.fsys, p)
			ne, ok := err.(*NeedsError)
			if !ok || n != nil {
				t.Fatalf("%v, %v", n, err)
			}
			var got []string
			for _, p := range ne.Problems {
				got = append(got, fmt.Sprintf("%d %s", p.Line, p.Code))
				if p.Message == "" || p.Fix == "" || p.File == "" || !strings.Contains(err.Error(), p.String()) {
					t.Errorf("%+v", p)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, err)
			}
		})
	}
}

func TestNodeNeeds(t *testing.T) {
	lock := `{"lockfileVersion": 3, "packages": {"": {"version": "1"}, "node_modules/a": {"version": "1.0.0", "resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz", "integrity": "sha512-x"}}}`
	fsys := files("s/x.mjs", "", "s/package.json", `{"type": "module"}`, "package.json", `{"name": "n", "dependencies": {"a": "^1 || >=2.0.0-rc.1", "@s/b": "npm:c@~1.2", "d": "latest", "e": "*", "f": ""}}`)
	n, err := needsOf(fsys, "s/x.mjs")
	if err != nil || n.Kind != Node || n.Locked || !slices.Equal(n.Files, []string{"package.json"}) || n.Source != "package.json" {
		t.Fatalf("%+v, %v", n, err)
	}
	fsys["package-lock.json"] = &fstest.MapFile{Data: []byte(lock)}
	locked, err := needsOf(fsys, "s/x.mjs")
	if err != nil || !locked.Locked || !slices.Equal(locked.Files, []string{"package.json", "package-lock.json"}) || locked.Digest == n.Digest {
		t.Fatalf("%+v, %v", locked, err)
	}
	fsys["package-lock.json"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(lock, ", ", ",\r\n  "))}
	if again, err := needsOf(fsys, "s/x.mjs"); err != nil || again.Digest != locked.Digest {
		t.Errorf("white space changes the digest: %v", err)
	}
	fsys["node_modules/a/index.js"] = &fstest.MapFile{}
	if n, err := needsOf(fsys, "s/x.mjs"); n != nil || err != nil {
		t.Errorf("what is provided is asked for: %+v, %v", n, err)
	}
	if n, err := needsOf(files("x.js", "", "package.json", `{"Dependencies": {"a": "1"}, "devDependencies": {"b": "1"}}`), "x.js"); n != nil || err != nil {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestDigestOfNeeds(t *testing.T) {
	digest := func(text string) string {
		n, err := needsOf(files("x.py", "", "requirements.txt", text), "x.py")
		if err != nil {
			t.Fatal(err)
		}
		return n.Digest
	}
	same := digest("a==1\nb\n")
	for _, text := range []string{"b\r\na==1", "# c\na==1 # d\n\nb\nb", "\ufeffa==1\n\\\nb"} {
		if digest(text) != same {
			t.Errorf("%q has another digest", text)
		}
	}
	for _, text := range []string{"a==1", "a==1\nb\n--require-hashes", "a==1\nb --hash=sha256:aa", "a==2\nb", "a==1 b"[:4] + "1\nb"} {
		if digest(text) == same {
			t.Errorf("%q has the same digest", text)
		}
	}
	inline, err := needsOf(files("other.py", "# /// script\n# dependencies = [\"b\", \"a==1\"]\n# ///\n"), "other.py")
	if err != nil || inline.Digest != same {
		t.Error("the same needs of another script have another digest", err)
	}
}

func TestSatisfies(t *testing.T) {
	for _, tt := range []struct {
		version, spec string
		want          bool
	}{
		{"3.11.7", ">=3.11", true}, {"3.11.7", ">=3.12", false}, {"3.11.7", ">=3.8,<3.12", true}, {"3.12.0", ">=3.8,<3.12", false},
		{"3.11.7", "==3.11.*", true}, {"3.11.7", "==3.11", false}, {"3.11.7", "~=3.10", true}, {"3.11.7", "~=3.10.0", false}, {"4.0.0", "~=3.10", false},
		{"3.11.7", "!=3.11.*", false}, {"3.11.7", "!=3.11.7", false}, {"3.11", ">=3.11.4", true}, {"3.11", "==3.11.4", true}, {"3.11", "<3.11.4", true}, {"3.11", "<3.11", false}, {"3.10", ">=3.11", false},
		{"3.11.7", "", true}, {"3.11.7", ">3.11.6 , <= 3.11.7", true}, {"3.13", "<4", true}, {"3.9", ">=3.10", false},
	} {
		if got := satisfiesVersion(tt.version, tt.spec); got != tt.want || !isVersionSpecifier(tt.spec) {
			t.Errorf("satisfies(%q, %q) = %v", tt.version, tt.spec, got)
		}
	}
}

func FuzzInline(f *testing.F) {
	for _, s := range []string{block, block + block, "# /// script\n# dependencies = [\"a\"]\n#\n# ///\n# ///\n", "# /// script\n#x\n# ///\n", "# /// a\n# /// script\n# ///\n", "# /// script\n# [tool.uv]\n# index=1\n# ///\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		meta, ok, err := parseInline("x.py", []byte(src))
		lines := 1 + strings.Count(src, "\n")
		if err != nil {
			for _, p := range err.(*NeedsError).Problems {
				if p.Line < 1 || p.Line > lines {
					t.Fatalf("line %d of %d", p.Line, lines)
				}
			}
			return
		}
		if ok != slices.ContainsFunc(strings.Split(normalizeText([]byte(src)), "\n"), func(l string) bool { return l == "# /// script" }) && ok {
			t.Fatal("a block out of nothing")
		}
		for _, d := range meta.dependencies {
			if d.line < 1 || d.line > lines {
				t.Fatalf("line %d of %d", d.line, lines)
			}
		}
		// Code after the comment block, and line endings, change nothing.
		again, ok2, err := parseInline("x.py", []byte(strings.ReplaceAll(normalizeText([]byte(src)), "\n", "\r\n")+"\r\nprint()\r\n"))
		if strings.Contains(src, "\r") || strings.HasPrefix(normalizeText([]byte(src)), "\ufeff") {
			return
		}
		if diff := cmp.Diff(meta, again, cmp.AllowUnexported(inlineMetadata{}, dependency{})); err != nil || ok != ok2 || diff != "" {
			t.Fatal(ok, ok2, err, diff)
		}
	})
}

func FuzzRequirements(f *testing.F) {
	for _, s := range []string{"a==1 # c\n-r b.txt", "a \\\n--hash=sha256:aa", "-e .", "a @ b", "é", "a ;x\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := needsOf(files("x.py", "", "requirements.txt", text), "x.py")
		if err != nil || n == nil {
			return
		}
		// What is taken is plain, and reads the same again.
		for _, r := range n.Requirements {
			if strings.ContainsAny(r, "/\\@$%\n\r#") || strings.HasPrefix(r, "-") {
				t.Fatalf("%q", r)
			}
		}
		again, err := needsOf(files("x.py", "", "requirements.txt", strings.Join(n.Requirements, "\n")), "x.py")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n.Requirements, again.Requirements); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestPythonNeedsOfSkill(t *testing.T) {
	skill := files("a.py", block, "sub/b.py", "import flask\n", "sub/requirements.txt", "flask==3\n", "requirements.txt", "rich\nattrs\n", "c.py", "print()\n", "d.py", "#!/bin/sh\n")
	all, err := PythonNeeds(skill, []string{"a.py", "c.py", "d.py", "sub/b.py"}, []string{"pandas>=2"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range all {
		got = append(got, n.Source+": "+strings.Join(n.Requirements, " "))
	}
	want := []string{"requirements.txt: attrs rich", "SKILL.md: pandas>=2", "inline metadata of a.py: requests<3 rich", "requirements.txt: attrs rich", "sub/requirements.txt: flask==3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if all, err := PythonNeeds(files("a.sh", ""), nil, nil); len(all) > 0 || err != nil {
		t.Errorf("of nothing: %v, %v", all, err)
	}
	for _, bad := range []string{"--index-url=https://evil.example", "a @ https://evil.example/a.whl", "./local"} {
		n, err := DeclaredPython("configured packages", []string{bad})
		if n != nil || err == nil || !strings.HasPrefix(err.Error(), "configured packages: ") {
			t.Errorf("%s: %+v, %v", bad, n, err)
		}
		if all, err := PythonNeeds(files("a.sh", ""), nil, []string{bad}); len(all) > 0 || err == nil || !strings.HasPrefix(err.Error(), "SKILL.md: ") {
			t.Errorf("%s: %+v, %v", bad, all, err)
		}
	}
}

// merge returns the needs that contain all the given ones, and the first error.
func merge(all ...*Needs) (*Needs, error) {
	var m PythonMerge
	var first error
	for _, n := range all {
		if err := m.Add(n); err != nil && first == nil {
			first = err
		}
	}
	return m.Needs(), first
}

func TestMergePython(t *testing.T) {
	a := &Needs{Kind: Python, Requirements: []string{"rich", "attrs"}, RequiresPython: ">=3.9"}
	b := &Needs{Kind: Python, Requirements: []string{"rich"}, Constraints: []string{"attrs<30"}, RequiresPython: "<4"}
	got, err := merge(a, nil, b)
	want := (&Needs{Kind: Python, Requirements: []string{"attrs", "rich"}, Constraints: []string{"attrs<30"}, RequiresPython: "<4,>=3.9", Source: "active skills and the configuration"}).setDigest()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if again, _ := merge(b, a, b); got.Digest != again.Digest {
		t.Error("the order changes the digest")
	}
	if n, err := merge(nil, &Needs{RequiresPython: ">=3.9"}); n != nil || err != nil {
		t.Errorf("without packages: %+v, %v", n, err)
	}
}

// Installers reject requirements without hashes if others have some. The merge
// keeps those that it had first.
func TestMergeKeepsHashedApart(t *testing.T) {
	plain := &Needs{Kind: Python, Requirements: []string{"rich"}, RequiresPython: ">=3.9"}
	hashed := &Needs{Kind: Python, Requirements: []string{"attrs==1 --hash=sha256:aa"}, RequiresPython: "<4"}
	required := &Needs{Kind: Python, Requirements: []string{"attrs==1 --hash=sha256:bb"}, RequireHashes: true}
	for name, test := range map[string]struct {
		all    []*Needs
		want   *Needs // requirements, hashes and versions
		failed bool
	}{
		"plain first":  {[]*Needs{plain, hashed}, plain, true},
		"hashed first": {[]*Needs{hashed, plain}, &Needs{Requirements: hashed.Requirements, RequireHashes: true, RequiresPython: "<4"}, true},
		"both hashed":  {[]*Needs{hashed, required}, &Needs{Requirements: append(hashed.Requirements[:1:1], required.Requirements...), RequireHashes: true, RequiresPython: "<4"}, false},
		"only version": {[]*Needs{{RequiresPython: "<4"}, plain}, &Needs{Requirements: plain.Requirements, RequiresPython: "<4,>=3.9"}, false},
	} {
		n, err := merge(test.all...)
		if (err != nil) != test.failed || !slices.Equal(n.Requirements, test.want.Requirements) || n.RequireHashes != test.want.RequireHashes || n.RequiresPython != test.want.RequiresPython {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

// The merged needs are bounded. Equal requirements count once.
func TestMergedNeedsAreBounded(t *testing.T) {
	lines := func(prefix string, n int) *Needs {
		out := &Needs{Kind: Python}
		for i := range n {
			out.Requirements = append(out.Requirements, fmt.Sprint(prefix, i))
		}
		return out
	}
	for name, test := range map[string]struct {
		all  []*Needs
		want string // in the error; "" for none
		kept int
	}{
		"limit":            {[]*Needs{lines("a", 1000), lines("b", 1000), lines("a", 1000)}, "", 2000},
		"one more":         {[]*Needs{lines("a", 1000), lines("b", 1000), lines("c", 1)}, "too many requirements (2001, limit 2000); name fewer packages or unload skills", 2000},
		"constraints":      {[]*Needs{lines("a", 2000), {Kind: Python, Constraints: []string{"b"}}}, "too many requirements (2001, limit 2000)", 2000},
		"too large":        {[]*Needs{lines(strings.Repeat("a", 200), 1000), lines(strings.Repeat("b", 200), 1000)}, "requirements too large (", 1000},
		"version too long": {[]*Needs{lines("a", 1), {RequiresPython: strings.Repeat(">", 256<<10)}}, "limit 256 KiB)", 1},
	} {
		n, err := merge(test.all...)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || len(n.Requirements) != test.kept {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
