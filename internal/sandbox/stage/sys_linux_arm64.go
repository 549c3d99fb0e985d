package stage

const (
	sysSchedSetattr = 274
	sysSeccomp      = 277
	sysPrlimit      = 261
)
