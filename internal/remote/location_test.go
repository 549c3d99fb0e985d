package remote_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/remote"
)

const (
	github  = "https://github.com/owner/repo.git"
	generic = "https://example.com/team/repo.git"
)

func gitAt(url, dir, ref string) remote.Location {
	return remote.Location{Kind: remote.Git, URL: url, Dir: dir, Ref: ref}
}

// written lists texts and their locations. String returns the last field, or else the
// text.
var written = []struct {
	text  string
	want  remote.Location
	shown string
}{
	{"owner/repo", gitAt(github, "", ""), ""},
	{"owner/repo/", gitAt(github, "", ""), "owner/repo"},
	{"owner/repo.git", gitAt(github, "", ""), "owner/repo"},
	{"owner/repo/dir/sub", gitAt(github, "dir/sub", ""), ""},
	{"owner/repo/dir/SKILL.md", gitAt(github, "dir", ""), "owner/repo/dir"},
	{"owner/repo@v1.2", gitAt(github, "", "v1.2"), ""},
	{"owner/repo@HEAD", gitAt(github, "", ""), "owner/repo"},
	{"owner/repo@feature/x", gitAt(github, "", "feature/x"), ""},
	{"owner/repo@pkg@1.2.3", gitAt(github, "", "pkg@1.2.3"), ""},
	{"owner/repo@@scope/pkg@1.2.3", gitAt(github, "", "@scope/pkg@1.2.3"), ""},
	{"owner/repo/dir@feature/x", gitAt(github, "dir", "feature/x"), ""},
	{"owner/repo/@scope/pkg", gitAt(github, "@scope/pkg", ""), "owner/repo/@scope/pkg@HEAD"},
	{"owner/repo/a@b@v1", gitAt(github, "a@b", "v1"), ""},
	{"owner/repo/a@b@HEAD", gitAt(github, "a@b", ""), ""},
	{"owner/repo//dir@v1", gitAt(github, "dir", "v1"), "owner/repo/dir@v1"},
	{"owner/repo/50%", gitAt(github, "50%", ""), ""},
	{"  owner/repo\n", gitAt(github, "", ""), "owner/repo"},
	{"github.com/owner/repo/dir@v1", gitAt(github, "dir", "v1"), "owner/repo/dir@v1"},
	{"GitHub.com/owner/repo", gitAt(github, "", ""), "owner/repo"},
	{"https://github.com/owner/repo", gitAt(github, "", ""), "owner/repo"},
	{"https://www.github.com/owner/repo/", gitAt(github, "", ""), "owner/repo"},
	{"https://github.com:443/owner/repo.git@v1", gitAt(github, "", "v1"), "owner/repo@v1"},
	{"HTTPS://GitHub.com/owner/repo", gitAt(github, "", ""), "owner/repo"},
	{"git+https://github.com/owner/repo", gitAt(github, "", ""), "owner/repo"},
	{"https://github.com/owner/repo#readme", gitAt(github, "", ""), "owner/repo"},
	{"https://github.com/owner/repo?tab=readme-ov-file#usage", gitAt(github, "", ""), "owner/repo"},
	{"https://github.com/owner/repo/tree/v1/dir/sub", gitAt(github, "dir/sub", "v1"), "owner/repo/dir/sub@v1"},
	{"https://github.com/owner/repo/tree/v1", gitAt(github, "", "v1"), "owner/repo@v1"},
	{"https://github.com/owner/repo/tree/main/a%20b", gitAt(github, "a b", "main"), "owner/repo/a b@main"},
	{"https://github.com/owner/repo/tree/pkg%401.2.3/dir", gitAt(github, "dir", "pkg@1.2.3"), "https://github.com/owner/repo.git//dir@pkg%401.2.3"},
	{"github.com/owner/repo/tree/v1/dir", gitAt(github, "dir", "v1"), "owner/repo/dir@v1"},
	{"https://github.com/owner/repo/blob/main/dir/SKILL.md", gitAt(github, "dir", "main"), "owner/repo/dir@main"},
	{"https://github.com/owner/repo/blob/main/SKILL.md?plain=1#L3", gitAt(github, "", "main"), "owner/repo@main"},
	{"https://github.com/owner/repo.git//dir@v1", gitAt(github, "dir", "v1"), "owner/repo/dir@v1"},

	{"gitlab.com/group/sub/repo", gitAt("https://gitlab.com/group/sub/repo.git", "", ""), ""},
	{"https://gitlab.com/group/sub/repo/-/tree/v1/dir?ref_type=heads", gitAt("https://gitlab.com/group/sub/repo.git", "dir", "v1"), "gitlab.com/group/sub/repo//dir@v1"},
	{"https://git.example.com/group/sub/repo/-/blob/main/dir/SKILL.md", gitAt("https://git.example.com/group/sub/repo.git", "dir", "main"), "https://git.example.com/group/sub/repo.git//dir@main"},
	{"https://codeberg.org/owner/repo/src/branch/main/dir", gitAt("https://codeberg.org/owner/repo.git", "dir", "main"), "codeberg.org/owner/repo/dir@main"},
	{"https://git.example.com/owner/repo/src/tag/v1/dir", gitAt("https://git.example.com/owner/repo.git", "dir", "v1"), "https://git.example.com/owner/repo.git//dir@v1"},
	{"https://bitbucket.org/owner/repo/src/main/dir/", gitAt("https://bitbucket.org/owner/repo.git", "dir", "main"), "bitbucket.org/owner/repo/dir@main"},

	{"https://example.com/team/repo.git", gitAt(generic, "", ""), ""},
	{"https://example.com/team/repo.git@v1", gitAt(generic, "", "v1"), ""},
	{"https://example.com/team/repo.git@pkg@1.2", gitAt(generic, "", "pkg@1.2"), "https://example.com/team/repo.git@pkg%401.2"},
	{"https://example.com/team/repo.git//dir/sub@feature/x", gitAt(generic, "dir/sub", "feature/x"), ""},
	{"https://example.com/team/repo.git//a%40b@v1", gitAt(generic, "a@b", "v1"), ""},
	{"https://example.com/team/repo.git//50%25", gitAt(generic, "50%", ""), ""},
	{"https://example.com/@me/repo@v1", gitAt("https://example.com/@me/repo", "", "v1"), ""},
	{"git+https://example.com/x.zip", gitAt("https://example.com/x.zip", "", ""), ""},
	{"git+https://example.com", remote.Location{}, "!missing repository"},
	{"https://[2001:DB8::1]:8443/r.git", gitAt("https://[2001:db8::1]:8443/r.git", "", ""), "https://[2001:db8::1]:8443/r.git"},
	{"http://localhost:8080/r.git@v1", gitAt("http://localhost:8080/r.git", "", "v1"), ""},
	{"http://127.0.0.1:8080/r.git", gitAt("http://127.0.0.1:8080/r.git", "", ""), ""},
	{"http://[::1]/r.git", gitAt("http://[::1]/r.git", "", ""), ""},
	{"http://[::ffff:127.0.0.1]/r.git", gitAt("http://127.0.0.1/r.git", "", ""), "http://127.0.0.1/r.git"},
	{"ssh://git@example.com/owner/repo.git@v1", gitAt("ssh://git@example.com/owner/repo.git", "", "v1"), ""},
	{"ssh://example.com:2222/~me/repo.git//dir", gitAt("ssh://example.com:2222/~me/repo.git", "dir", ""), ""},
	{"git+ssh://git@example.com/repo", gitAt("ssh://git@example.com/repo", "", ""), "ssh://git@example.com/repo"},
	{"git@example.com:owner/repo.git", gitAt("git@example.com:owner/repo.git", "", ""), ""},
	{"git@example.com:owner/repo.git//dir@v1", gitAt("git@example.com:owner/repo.git", "dir", "v1"), ""},
	{"git@github.com:owner/repo.git@feature/x", gitAt("git@github.com:owner/repo.git", "", "feature/x"), ""},
	{"file:///srv/repo", gitAt("file:///srv/repo", "", ""), ""},
	{"file:///srv/repo.git//dir@v1", gitAt("file:///srv/repo.git", "dir", "v1"), ""},
	{"file://localhost/srv/repo", gitAt("file:///srv/repo", "", ""), "file:///srv/repo"},

	{"https://example.com/x.zip", remote.Location{Kind: remote.Archive, URL: "https://example.com/x.zip"}, ""},
	{"https://example.com/x.skill", remote.Location{Kind: remote.Archive, URL: "https://example.com/x.skill"}, ""},
	{"https://example.com/x@1.0.tar.gz", remote.Location{Kind: remote.Archive, URL: "https://example.com/x@1.0.tar.gz"}, ""},
	{"https://example.com/x.TGZ?version=3", remote.Location{Kind: remote.Archive, URL: "https://example.com/x.TGZ?version=3"}, ""},
	{"https://example.com/x.zip//dir", remote.Location{Kind: remote.Archive, URL: "https://example.com/x.zip", Dir: "dir"}, ""},
	{"https://github.com/owner/repo/releases/download/v1/x.zip", remote.Location{Kind: remote.Archive, URL: "https://github.com/owner/repo/releases/download/v1/x.zip"}, ""},
	{"https://github.com/owner/repo/archive/refs/heads/main.tar.gz", remote.Location{Kind: remote.Archive, URL: "https://github.com/owner/repo/archive/refs/heads/main.tar.gz"}, ""},
	{"https://example.com/pdf/SKILL.md", remote.Location{Kind: remote.File, URL: "https://example.com/pdf/SKILL.md"}, ""},
	{"https://raw.githubusercontent.com/o/r/main/pdf/skill.md", remote.Location{Kind: remote.File, URL: "https://raw.githubusercontent.com/o/r/main/pdf/skill.md"}, ""},

	{"https://example.com", remote.Location{Kind: remote.Index, URL: "https://example.com/"}, "https://example.com/"},
	{"https://example.com/.well-known/agent-skills/index.json", remote.Location{Kind: remote.Index, URL: "https://example.com/.well-known/agent-skills/index.json"}, ""},
	{"https://example.com/docs/.well-known/skills", remote.Location{Kind: remote.Index, URL: "https://example.com/docs/.well-known/skills"}, ""},
	{"index+https://example.com/docs", remote.Location{Kind: remote.Index, URL: "https://example.com/docs"}, ""},
	{"index+https://example.com", remote.Location{Kind: remote.Index, URL: "https://example.com/"}, "https://example.com/"},

	{"./folder", remote.Location{Kind: remote.Local, URL: "/work/folder"}, "/work/folder"},
	{"./owner/repo@v1", remote.Location{Kind: remote.Local, URL: "/work/owner/repo@v1"}, "/work/owner/repo@v1"},
	{"../x", remote.Location{Kind: remote.Local, URL: "/x"}, "/x"},
	{".", remote.Location{Kind: remote.Local, URL: "/work"}, "/work"},
	{"/srv/skills", remote.Location{Kind: remote.Local, URL: "/srv/skills"}, ""},
	{"x.zip", remote.Location{Kind: remote.Local, URL: "/work/x.zip"}, "/work/x.zip"},
	{"dist/x.tar.gz", remote.Location{Kind: remote.Local, URL: "/work/dist/x.tar.gz"}, "/work/dist/x.tar.gz"},
	{"./a /", remote.Location{Kind: remote.Local, URL: "/work/a "}, "/work/a /"},
	{"SKILL.md", remote.Location{Kind: remote.Local, URL: "/work/SKILL.md"}, "/work/SKILL.md"},

	// What is refused says what to write; the last column is a part of it.
	{"", remote.Location{}, "!want owner/repo"},
	{"pdf", remote.Location{}, "!./pdf for a folder"},
	{"~/skills", remote.Location{}, "!write the full path"},
	{"--upload-pack=touch x", remote.Location{}, "!starts with -"},
	{"-owner/repo", remote.Location{}, "!starts with -"},
	{"owner/-repo", remote.Location{}, "!is not a user or repository name"},
	{"owner/repo@--upload-pack=x", remote.Location{}, "!invalid branch"},
	{"owner/repo/--dir", remote.Location{}, "!starts with -"},
	{"https://--upload-pack=x/r.git", remote.Location{}, "!starts with -"},
	{"ssh://-oProxyCommand=x/r.git", remote.Location{}, "!starts with -"},
	{"ssh://-oProxyCommand=x@example.com/r.git", remote.Location{}, "!invalid user name"},
	{"-oProxyCommand=x@example.com:r.git", remote.Location{}, "!starts with -"},
	{"git@-oProxyCommand=x:r.git", remote.Location{}, "!starts with -"},
	{"git@example.com:-r.git", remote.Location{}, "!missing repository"},
	{"git@example.com:/-r.git", remote.Location{}, "!missing repository"},
	{"file:///-r", remote.Location{}, "!starts with -"},
	{"ext::sh -c x", remote.Location{}, "!remote helpers"},
	{"fd::17", remote.Location{}, "!remote helpers"},
	{"ext::https://example.com/r.git", remote.Location{}, "!"},
	{"ext+https://example.com/r.git", remote.Location{}, "!git+ or index+"},
	{"git+ext://x/r", remote.Location{}, "!write https://"},
	{"ftp://example.com/r.git", remote.Location{}, "!write https://"},
	{"git://example.com/r.git", remote.Location{}, "!write https://"},
	{"javascript:alert(1)", remote.Location{}, "!write ssh://"},
	{"http://example.com/r.git", remote.Location{}, "!write https://"},
	{"http://192.0.2.1/r.git", remote.Location{}, "!write https://"},
	{"http://localhost.example.com/r.git", remote.Location{}, "!write https://"},
	{"https://2130706433/r.git", remote.Location{}, "!four numbers"},
	{"https://0x7f.1/r.git", remote.Location{}, "!four numbers"},
	{"https://127.1/r.git", remote.Location{}, "!four numbers"},
	{"https://exämple.com/r.git", remote.Location{}, "!xn--"},
	{"https://example.com./r.git", remote.Location{}, "!invalid host name"},
	{"https://me:hunter2@example.com/r.git", remote.Location{}, "!credential helper"},
	{"https://hunter2@github.com/owner/repo", remote.Location{}, "!credential helper"},
	{"ssh://git:hunter2@example.com/r.git", remote.Location{}, "!credential helper"},
	{"https://example.com/x.zip?access_token=hunter2", remote.Location{}, "!download the file and use its path"},
	{"https://example.com/x.zip?X-Amz-Signature=hunter2", remote.Location{}, "!download the file and use its path"},
	{"ftp://me:hunter2@example.com/r.git", remote.Location{}, "!write https://"},
	{"https://me:hun/ter2@example.com/r.git", remote.Location{}, "!"},
	{"https://me:hunter2@exa mple.com/r.git", remote.Location{}, "!"},
	{"https://me:hunter2@%zz/r.git", remote.Location{}, "!"},
	{"http://hunter2@%zz/r.git", remote.Location{}, "!"},
	{"me:hunter2@example.com:r.git", remote.Location{}, "!write ssh://"},
	{"git+https://me:hunter2@example.com/r.git", remote.Location{}, "!credential helper"},
	{"index+https://me:hunter2@example.com/", remote.Location{}, "!credential helper"},
	{"https://example.com/r.git?x=1", remote.Location{}, "!? or #"},
	{"https://example.com/r.git#v1", remote.Location{}, "!write @"},
	{"https://example.com/a/../r.git", remote.Location{}, "!."},
	{"https://example.com/a/%2e%2e/r.git", remote.Location{}, "!."},
	{"https://example.com/r.git//../x", remote.Location{}, "!.."},
	{"https://example.com/r.git@v1//x", remote.Location{}, "!%40"},
	{"owner/repo/../../x", remote.Location{}, "!.."},
	{"owner/repo/a\\b", remote.Location{}, "!write / between names"},
	{"owner/..", remote.Location{}, "!is not a user"},
	{"example.com/repo", remote.Location{}, "!https://example.com/repo"},
	{"https://github.com", remote.Location{}, "!owner/repo"},
	{"https://github.com/owner", remote.Location{}, "!owner/repo"},
	{"https://github.com/owner/repo/issues/1", gitAt(github, "issues/1", ""), "owner/repo/issues/1"},
	{"https://github.com/owner/repo/blob/main/x.zip", remote.Location{}, "!Raw"},
	{"https://github.com/owner/repo/tree/", remote.Location{}, "!branch"},
	{"owner/repo@a..b", remote.Location{}, "!invalid branch"},
	{"owner/repo@main@{1}", remote.Location{}, "!invalid branch"},
	{"owner/repo@v1~1", remote.Location{}, "!invalid branch"},
	{"owner/repo@a b", remote.Location{}, "!invalid branch"},
	{"owner/repo@x.lock", remote.Location{}, "!invalid branch"},
	{"owner/repo@.x", remote.Location{}, "!invalid branch"},
	{"owner/repo@a//b", remote.Location{}, "!"},
	{"https://example.com/x.zip@v1.zip@v1", gitAt("https://example.com/x.zip", "", "v1.zip@v1"), "https://example.com/x.zip@v1.zip%40v1"},
	{"owner/repo@v\x1b[31m", remote.Location{}, "!nvisible characters"},
	{"owner/re\u202epo", remote.Location{}, "!nvisible characters"},
	{"https://example.com/r%0a.git", remote.Location{}, "!nvisible characters"},
	{"https://example.com/r.git//%1b", remote.Location{}, "!nvisible characters"},
	{strings.Repeat("a", 5000), remote.Location{}, "!limit 4096 bytes"},
}

func TestB11Sources(t *testing.T) {
	for _, tt := range written {
		t.Run(fmt.Sprintf("%.60s", tt.text), func(t *testing.T) {
			got, err := remote.Parse(tt.text, "/work")
			part, refused := strings.CutPrefix(tt.shown, "!")
			if refused {
				if e, ok := errors.AsType[*remote.LocationError](err); !ok || !strings.Contains(e.Reason, part) {
					t.Fatalf("got %+v, %v; want an error with %q", got, err, part)
				}
				if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ter2") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
					t.Errorf("the error repeats what it must not: %q", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			want := tt.shown
			if want == "" {
				want = tt.text
			}
			if got.String() != want {
				t.Errorf("String is %q, want %q", got.String(), want)
			}
		})
	}
}

func TestEmptyWorkDirIsTheCurrentDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.Abs("x")
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Parse("./x", "")
	if err != nil || got.URL != here {
		t.Errorf("got %+v, %v; want %s", got, err, here)
	}
}

// What is read is written as a text that is read to the same, and nothing in it is
// an option, a secret, or a character that nvisible characters.
func FuzzParse(f *testing.F) {
	for _, tt := range written {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := remote.Parse(text, "/work")
		if err != nil {
			if _, ok := errors.AsType[*remote.LocationError](err); !ok || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("error %q", err)
			}
			return
		}
		again, err := remote.Parse(l.String(), "/elsewhere")
		if err != nil || again != l {
			t.Errorf("%q is %+v, written %q, which is %+v, %v", text, l, l, again, err)
		}
		for _, s := range []string{l.URL, l.Dir, l.Ref} {
			if strings.HasPrefix(s, "-") || strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("%q is %+v", text, l)
			}
		}
		if _, after, ok := strings.Cut(l.URL, "://"); ok && l.Kind != remote.Local {
			host, _, _ := strings.Cut(after, "/")
			user, _, named := strings.Cut(host, "@")
			if strings.HasPrefix(host, "-") || named && (strings.Contains(user, ":") || !strings.HasPrefix(l.URL, "ssh://")) {
				t.Errorf("%q is %+v", text, l)
			}
		}
	})
}

func ExampleParse() {
	l, err := remote.Parse("https://github.com/owner/repo/tree/v1.2/skills/pdf", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.URL)
	fmt.Println(l.Dir)
	fmt.Println(l)
	// Output:
	// https://github.com/owner/repo.git
	// skills/pdf
	// owner/repo/skills/pdf@v1.2
}
