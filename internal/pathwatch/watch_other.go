//go:build !linux

package pathwatch

// Watch is not supported on this system.
type Watch struct{}

// New returns [ErrUnsupported].
func New([]string) (*Watch, error) { return nil, ErrUnsupported }

// Changed returns true.
func (*Watch) Changed() bool { return true }

// Close does nothing.
func (*Watch) Close() {}
