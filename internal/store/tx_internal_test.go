package store

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// A transaction starts over if the server closed its connection before the commit,
// even if the client does not learn why.
func TestEndedTransactionIsTemporary(t *testing.T) {
	for _, cause := range []error{
		&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)},
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		io.ErrUnexpectedEOF,
		errors.New("conn closed"),
	} {
		tx := &transaction{}
		err := tx.run(t.Context(), func(context.Context, querier) error { return cause })
		if !errors.Is(err, ErrUnavailable) || !isTemporary(err) {
			t.Errorf("%v: %v, temporary %t", cause, err, isTemporary(err))
		}
	}
}
