package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"archive/tar"
)

const someCommit = "0123456789abcdef0123456789abcdef01234567"

// Without git the archive of a known host is asked for, with the credential of the
// host itself.
func TestKnownHostsWithoutGit(t *testing.T) {
	src := gzipped(tarOf(t, packed{flag: tar.TypeXGlobalHeader, pax: map[string]string{"comment": someCommit}}, packed{name: "r-main/pdf/SKILL.md", content: doc("pdf")}))
	w := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "private") && r.Header.Get("Authorization") == "" || strings.Contains(r.URL.Path, "missing") {
			http.NotFound(w, r)
			return
		}
		w.Write(src)
	})
	for _, tt := range []struct{ url, ref, asked string }{
		{"https://github.com/o/r", "", "https://codeload.github.com/o/r/tar.gz/HEAD"},
		{"https://github.com/o/r.git", "feature/a#b", "https://codeload.github.com/o/r/tar.gz/feature/a%23b"},
		{"https://gitlab.com/g/sub/r", "v1", "https://gitlab.com/g/sub/r/-/archive/v1/r.tar.gz"},
		{"https://codeberg.org/o/r", "main", "https://codeberg.org/api/v1/repos/o/r/archive/main.tar.gz"},
		{"https://bitbucket.org/o/r", someCommit, "https://bitbucket.org/o/r/get/" + someCommit + ".tar.gz"},
		{"https://github.com/o/private", "", "https://codeload.github.com/o/private/tar.gz/HEAD Basic dTpw"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			c := w.client(t, &Options{Git: "-", Credential: func(_ context.Context, host string) (*Credential, error) {
				if host != urlHost(tt.url) {
					t.Errorf("asked for %s", host)
				}
				return &Credential{"u", "p"}, nil
			}})
			o, err := c.Open(t.Context(), Location{Kind: Git, URL: tt.url, Ref: tt.ref})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			if len(o.Skills) != 1 || o.Skills[0].Dir != "pdf" || o.Revision.Commit != someCommit {
				t.Errorf("%v of %v", o.Skills, o.Revision)
			}
			asked, _ := w.log()
			if got := asked[len(asked)-1]; got != tt.asked {
				t.Errorf("asked for %s, want %s", got, tt.asked)
			}
		})
	}
	c := w.client(t, &Options{Git: "-"})
	_, err := c.Open(t.Context(), Location{Kind: Git, URL: "https://github.com/o/missing", Ref: "v9"})
	if notFound, ok := errors.AsType[*NotFoundError](err); !ok || !strings.Contains(notFound.Error(), `https://github.com/o/missing with the branch, tag or commit "v9"`) {
		t.Errorf("%v", err)
	}
	_, err = c.Open(t.Context(), Location{Kind: Git, URL: "https://github.com/o/r", Ref: strings.Repeat("f", 40)})
	if err == nil || !strings.Contains(err.Error(), someCommit) {
		t.Errorf("another commit than was asked for: %v", err)
	}
	if _, err = c.Open(t.Context(), Location{Kind: Git, URL: "https://git.example.com/o/r"}); !errors.Is(err, ErrNoGit) {
		t.Errorf("an unknown host: %v", err)
	}
}
