package installed

// Staging is the name of the directory for uncommitted files.
const Staging = staging

// At makes f be called before each step of the changes of d; it can make the step
// fail.
func (d *Dir) At(f func(step string) error) { d.fault = f }

// At is [Dir.At] of the directory that is changed.
func (c *Change) At(f func(step string) error) { c.dir.At(f) }

// Parsed is the lock that was parsed last.
func (d *Dir) Parsed() *Lockfile {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parsed
}

// Abandon closes the open files of a change, like the end of its process.
func (c *Change) Abandon() {
	c.lockFile.Close()
	c.root.Close()
}
