package store

import (
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
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, true},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, true},
		{io.ErrUnexpectedEOF, true},
		{errors.New("conn closed"), true},
	} {
		tx := &transaction{}
		err := tx.run(t.Context(), func(querier) error { return tt.err })
		if !errors.Is(err, ErrUnavailable) || isTemporary(err) != tt.want {
			t.Errorf("%v: %v, temporary %t", tt.err, err, isTemporary(err))
		}
	}
}
