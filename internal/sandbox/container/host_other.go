//go:build !unix

package container

// environmentFile is "": there is no name for an open file here.
const environmentFile = ""

// gone cannot tell, so that nothing is removed that may be in use.
func gone(int) bool { return false }
