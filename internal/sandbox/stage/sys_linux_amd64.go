package stage

const (
	sysSeccomp = 317
	sysPrlimit = 302
)
