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

// servicePath is the path and query of the Git service, relative to a
// repository's URL.
const servicePath = "/info/refs?service=git-upload-pack"

// isHTTP reports whether an address uses http or https.
func isHTTP(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// serviceURL returns the URL of the Git service of the remote.
func (g *gitSession) serviceURL() string { return strings.TrimSuffix(g.url, "/") + servicePath }

// listAdvertised lists the branches and tags of the remote without running git,
// because the git program would hold in memory everything that a server sends.
// In protocol version 0, the first response contains all refs. at is the URL of
// the response, after redirects.
func (g *gitSession) listAdvertised(ctx context.Context) (refs *gitRefs, at *url.URL, err error) {
	err = g.withRemote(ctx, func() error {
		resp, err := g.get(ctx)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if kind := resp.Header.Get("Content-Type"); kind != "application/x-git-upload-pack-advertisement" {
			return fmt.Errorf("%s is not a git server", shownURL(g.url))
		}
		at = resp.Request.URL
		refs, err = parseAdvertised(resp.Body, g.location.Ref)
		return err
	})
	return refs, at, err
}

// get requests the list of refs from the remote. It sends no credential except
// one found by findCredential.
func (g *gitSession) get(ctx context.Context) (*http.Response, error) {
	if t, ok := ctx.Value(sessionKey{}).(*httpSession); ok {
		t.mu.Lock()
		if t.credentialTried = true; g.cred != nil {
			t.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(g.cred.gitUser()+":"+g.cred.Password))
		}
		t.mu.Unlock()
	}
	return g.client.get(ctx, g.serviceURL(), nil)
}

// parseAdvertised parses the first response of a git server. It consists of
// lines, each prefixed by its length in four hex digits. The first line is the
// name of the service. Each following line has an object and a ref. The first
// of them also lists the capabilities after a NUL byte, including the target of
// HEAD.
func parseAdvertised(r io.Reader, wanted string) (*gitRefs, error) {
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
			return nil, errors.New("invalid list of branches and tags")
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
		if err := out.add(id, name, wanted); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func advertisedError(limited *io.LimitedReader, err error) error {
	if limited.N <= 0 {
		return errRefBytes
	}
	return fmt.Errorf("read list of branches and tags: %w", err)
}
