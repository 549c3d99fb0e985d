package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

// tempFile is a temporary file that is removed when it is closed.
type tempFile struct {
	*os.File
	size int64
}

func (c *Client) newTempFile() (*tempFile, error) {
	f, err := os.CreateTemp(c.opts.TempDir, "loadout-*")
	if err != nil {
		return nil, fmt.Errorf("create temporary file for download: %w", err)
	}
	return &tempFile{File: f}, nil
}

// Close closes and removes the temporary file.
func (t *tempFile) Close() error {
	return errors.Join(t.File.Close(), os.Remove(t.Name()))
}

// copyFrom copies r to the file until EOF or ctx is done. It calls step, which
// may be nil, with the size so far. An error from step stops the copy.
func (t *tempFile) copyFrom(ctx context.Context, r io.Reader, step func(int64) error) error {
	buf := make([]byte, 128<<10)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := t.Write(buf[:n]); err != nil {
				return err
			}
			t.size += int64(n)
			if step != nil {
				if err := step(t.size); err != nil {
					return err
				}
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// download stores the content of a URL in a temporary file. The caller must
// close the file.
func (c *Client) download(ctx context.Context, from string) (*tempFile, error) {
	resp, err := c.fetch(ctx, from, "archive")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	t, err := c.newTempFile()
	if err != nil {
		return nil, err
	}
	total := max(0, resp.ContentLength)
	err = t.copyFrom(ctx, resp.Body, func(n int64) error {
		c.progress(Progress{What: "downloading", Done: n, Total: total, Bytes: true})
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// fetch is like get, but maps some statuses to this package's error types.
// label describes the resource in errors.
func (c *Client) fetch(ctx context.Context, from, label string) (*http.Response, error) {
	resp, err := c.get(ctx, from, nil)
	status, ok := errors.AsType[*StatusError](err)
	if !ok {
		return resp, err
	}
	t, _ := ctx.Value(sessionKey{}).(*httpSession)
	shown := t != nil && t.authorizationHeader() != ""
	switch status.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, &DeniedError{Host: urlHost(status.URL), CredentialSent: shown}
	case http.StatusNotFound, http.StatusGone:
		notFound := &NotFoundError{What: label + " " + status.URL}
		if !shown {
			notFound.Hint = "if it is private, the host requires a credential"
		}
		return nil, notFound
	}
	return nil, err
}

// urlHost returns the host of a URL, which must be valid.
func urlHost(from string) string {
	u, err := url.Parse(from)
	if err != nil {
		return ""
	}
	return u.Host
}
