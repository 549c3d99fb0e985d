package execute

// Overlayer is implemented by sandboxes that support [sandbox.Mount.Overlay]. It is safe
// for concurrent use.
type Overlayer interface {
	// OverlayError returns the reason why the mount is read-only instead of an
	// overlay, or nil if it is an overlay.
	OverlayError() error
	// Changes kills all processes in the sandbox and returns the directory with
	// the changes to the mount: the upper directory of an overlay file system,
	// as described in the documentation of the Linux kernel, with attributes
	// named user.overlay. Its content is untrusted. [sandbox.Sandbox.Close]
	// removes it. If there is no overlay, it returns the error of OverlayError.
	Changes() (dir string, err error)
}
