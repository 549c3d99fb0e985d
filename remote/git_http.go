package remote

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// service is what a server of git is asked for, below the address of a repository.
const service = "/info/refs?service=git-upload-pack"

// isHTTP reports whether the remote at an address speaks http or https.
func isHTTP(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// service is the URL that the server of the remote is asked at.
func (g *gitTrip) service() string { return strings.TrimSuffix(g.url, "/") + service }

// advertised asks the remote for its branches and tags as git does, without git,
// which would keep in memory whatever a server lists: the first answer of the
// protocol's version 0 has them all. at is the URL that answered, after redirects.
func (g *gitTrip) advertised(ctx context.Context) (refs *gitRefs, at *url.URL, err error) {
	err = g.ask(ctx, func() error {
		resp, err := g.get(ctx)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if kind := resp.Header.Get("Content-Type"); kind != "application/x-git-upload-pack-advertisement" {
			return fmt.Errorf("%s does not speak git", shownURL(g.url))
		}
		at = resp.Request.URL
		refs, err = parseAdvertised(resp.Body, g.asked.Ref)
		return err
	})
	return refs, at, err
}

// get asks the server of the remote for its first answer. Who asks is said as git
// does, once sign has found out; the trip does not find out by itself.
func (g *gitTrip) get(ctx context.Context) (*http.Response, error) {
	if t, ok := ctx.Value(tripKey{}).(*trip); ok {
		t.mu.Lock()
		if t.asked = true; g.cred != nil {
			t.shown = "Basic " + base64.StdEncoding.EncodeToString([]byte(g.cred.gitUser()+":"+g.cred.Password))
		}
		t.mu.Unlock()
	}
	return g.client.get(ctx, g.service(), nil)
}

// parseAdvertised reads lines with their length in four hex digits before them: the
// name of the service, then objects and refs, of which the first has what the server
// can do after a zero byte. What HEAD names is there.
func parseAdvertised(r io.Reader, also string) (*gitRefs, error) {
	limited := &io.LimitedReader{R: r, N: maxRefBytes + 1}
	in := bufio.NewReader(limited)
	out := &gitRefs{objects: map[string]string{}}
	buf := make([]byte, 1<<16)
	for flushes := 0; flushes < 2; {
		if _, err := io.ReadFull(in, buf[:4]); err != nil {
			return nil, advertisedError(limited, err)
		}
		n, err := strconv.ParseUint(string(buf[:4]), 16, 16)
		switch {
		case err != nil || n > 0 && n < 4:
			return nil, errors.New("its list of branches and tags is not as git writes it")
		case n == 0:
			flushes++
			continue
		}
		line := buf[:n-4]
		if _, err := io.ReadFull(in, line); err != nil {
			return nil, advertisedError(limited, err)
		}
		text, abilities, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\x00")
		for ability := range strings.FieldsSeq(abilities) {
			if target, ok := strings.CutPrefix(ability, "symref=HEAD:"); ok {
				out.setHead(target)
			}
		}
		id, name, _ := strings.Cut(text, " ")
		if err := out.add(id, name, also); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func advertisedError(limited *io.LimitedReader, err error) error {
	if limited.N <= 0 {
		return errRefBytes
	}
	return fmt.Errorf("its list of branches and tags: %w", err)
}
