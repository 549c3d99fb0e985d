package main

import "io"

// readCloser gives a reader a Close, its own if it has one.
func readCloser(r io.Reader) io.ReadCloser {
	if rc, ok := r.(io.ReadCloser); ok {
		return rc
	}
	return io.NopCloser(r)
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// writeCloser keeps standard output open for the last words of the command.
func writeCloser(w io.Writer) io.WriteCloser { return nopWriteCloser{w} }
