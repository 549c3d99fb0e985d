//go:build linux && !amd64

package main

import "errors"

func foreignABI(t *tally) { t.try("foreign ABI", errors.ErrUnsupported) }
