//go:build linux

package staged

import "strings"

// fixFor says what to do about a step that a stage could not take.
func fixFor(step string) string {
	switch {
	case step == "Landlock":
		return "use a kernel of 6.12 or newer with Landlock: lsm= on the kernel's command line must name it"
	case step == "seccomp":
		return "use a kernel with CONFIG_SECCOMP_FILTER, and a container that lets seccomp(2) through"
	case step == "drop capabilities", strings.HasPrefix(step, "mount"), strings.HasPrefix(step, "keep"), strings.HasPrefix(step, "make"), strings.HasPrefix(step, "protect"):
		return "let this program use user namespaces: on Ubuntu an AppArmor profile for it with userns, in a container --security-opt seccomp=unconfined; the kernel must be 5.12 or newer"
	}
	return ""
}
