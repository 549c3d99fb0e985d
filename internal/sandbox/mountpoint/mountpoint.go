// Package mountpoint names the paths that code in a sandbox sees. The comment
// of package sandbox documents them.
package mountpoint

// Paths of the layout.
const (
	Skill     = "/skill"
	Work      = "/work"
	In        = "/work/in"
	Out       = "/work/out"
	Workspace = "/workspace"
	Tmp       = "/tmp"
	Secrets   = "/run/secrets"
	Needs     = "/needs" // dependencies of a skill, one directory each
	Build     = "/deps"  // packages installed for a script
)
