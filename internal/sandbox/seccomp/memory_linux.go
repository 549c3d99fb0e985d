package seccomp

import "golang.org/x/sys/unix"

// unboundedMemory lists calls that create kernel memory that belongs to no
// process, so that neither a resource limit nor the memory watch counts it. The
// calls fail as in a kernel that lacks them, so that programs use alternatives.
// The calls on existing System V objects are included, because code in the
// host's namespaces could use objects of other programs.
var unboundedMemory = []uintptr{
	unix.SYS_MEMFD_CREATE,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_VMSPLICE,                // a pipe keeps a huge page for each of its small pages
	unix.SYS_LANDLOCK_CREATE_RULESET, // has no limit on its rules
}

// wholePages lists calls that put pages of files into sockets. A socket is
// charged for the bytes but keeps the pages, even after the file is truncated.
// The calls fail as they do for files that do not support them, so that
// programs fall back to read and write. For splice, Go programs expect EINVAL
// and no other error.
var wholePages = []uintptr{unix.SYS_SPLICE, unix.SYS_TEE, unix.SYS_SENDFILE}

// sharedAnonymous matches a request for a shared anonymous mapping, whose
// memory the kernel keeps after the pages are unmapped. Files in /dev/shm and
// /tmp can also be used to share memory, but their size is limited.
var sharedAnonymous = allFlags(3, unix.MAP_SHARED|unix.MAP_ANONYMOUS) // includes MAP_SHARED_VALIDATE

// bufferSizes lists the options that change the sizes of socket buffers. Requests to
// change them are ignored rather than denied, because the sizes are hints to the
// kernel and programs do not expect an error.
var bufferSizes = []uint32{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE}

// Execution domains that code may select: that of Linux without flags, and the
// value that only returns the current one. Flags such as READ_IMPLIES_EXEC
// weaken protections.
const (
	linuxPersonality = 0
	queryPersonality = 0xffffffff
)
