package stage

const (
	sysSeccomp = 277
	sysPrlimit = 261
)
