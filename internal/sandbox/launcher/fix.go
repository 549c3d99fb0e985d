//go:build linux

package launcher

import "strings"

// fixFor returns advice for the user if a step of the stage failed, or "" if
// there is none.
func fixFor(step string) string {
	switch {
	case step == "Landlock":
		return "use a kernel of 6.12 or newer with Landlock enabled: lsm= on the kernel's command line must contain it"
	case step == "seccomp":
		return "use a kernel with CONFIG_SECCOMP_FILTER, and a container that permits seccomp(2)"
	case step == "drop capabilities", strings.HasPrefix(step, "mount"), strings.HasPrefix(step, "keep"), strings.HasPrefix(step, "make"), strings.HasPrefix(step, "protect"):
		return "allow user namespaces for this program: on Ubuntu with an AppArmor profile with userns, in a container with --security-opt seccomp=unconfined; the kernel must be 5.12 or newer"
	}
	return ""
}
