// Package mountpoint defines the paths that code in a sandbox sees. They are
// documented in package sandbox.
package mountpoint

// Paths in a sandbox.
const (
	Skill     = "/skill"
	Work      = "/work"
	In        = "/work/in"
	Out       = "/work/out"
	Workspace = "/workspace"
	Tmp       = "/tmp"
	Secrets   = "/run/secrets"
	Needs     = "/needs" // a skill's dependencies, or the skills for a command, one directory each
	Build     = "/deps"  // packages installed for a script
)
