package stage

const (
	sysSchedSetattr = 314
	sysSeccomp      = 317
	sysPrlimit      = 302
)
