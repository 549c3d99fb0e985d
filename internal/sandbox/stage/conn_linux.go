package stage

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"syscall"
)

// headerSize is the size of a message header: kind and length. Descriptors are
// sent with the header.
const headerSize = 8

// appendHeader appends the header of a message to b.
func appendHeader(b []byte, kind uint32, size int) []byte {
	b = binary.LittleEndian.AppendUint32(b, kind)
	return binary.LittleEndian.AppendUint32(b, uint32(size))
}

// Frame encodes a message with a JSON body.
func Frame(kind uint32, body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return append(appendHeader(nil, kind, len(data)), data...), nil
}

// FrameBytes encodes the header of a message with n bytes of data.
func FrameBytes(kind uint32, n int) []byte { return appendHeader(nil, kind, n) }

// ParseHeader decodes the header of a message.
func ParseHeader(b []byte) (kind uint32, size int, err error) {
	kind, n := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if n > MaxMessage {
		return 0, 0, fmt.Errorf("message too large (%d bytes, limit %d)", n, MaxMessage)
	}
	return kind, int(n), nil
}

// conn is the stage's end of the socket. Its descriptor is blocking, because a
// stage has few goroutines and needs no poller.
type conn struct{ fd int }

// send writes a message and sends the given descriptors.
func (c conn) send(kind uint32, body any, fds ...int) error {
	b, err := Frame(kind, body)
	if err != nil {
		return err
	}
	var oob []byte
	if len(fds) > 0 {
		oob = syscall.UnixRights(fds...)
	}
	for first := true; len(b) > 0; first = false {
		if !first {
			oob = nil
		}
		n, err := syscall.SendmsgN(c.fd, b, oob, nil, syscall.MSG_NOSIGNAL)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// readHeader reads the next message header and the descriptors sent with it.
func (c conn) readHeader() (kind uint32, size int, fds []int, err error) {
	var buf [headerSize]byte
	oob := make([]byte, syscall.CmsgSpace(4*4))
	for got := 0; got < len(buf); {
		n, oobn, _, _, err := syscall.Recvmsg(c.fd, buf[got:], oob, syscall.MSG_CMSG_CLOEXEC)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, 0, nil, err
		case n == 0:
			return 0, 0, nil, errClosed
		}
		got += n
		if oobn > 0 {
			got, err := descriptors(oob[:oobn])
			if err != nil {
				return 0, 0, nil, err
			}
			fds = append(fds, got...)
		}
	}
	kind, size, err = ParseHeader(buf[:])
	return kind, size, fds, err
}

func descriptors(oob []byte) ([]int, error) {
	var fds []int
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, m := range msgs {
		got, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

// read reads exactly len(b) bytes.
func (c conn) read(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Read(c.fd, b)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return errClosed
		}
		b = b[n:]
	}
	return nil
}

// readBody reads the JSON body of a message into v.
func (c conn) readBody(size int, v any) error {
	b := make([]byte, size)
	if err := c.read(b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

type closedError struct{}

func (closedError) Error() string { return "socket closed" }

var errClosed = closedError{}
