package stage

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

// Landlock access rights; see the kernel's linux/landlock.h.
const (
	llExecute = 1 << iota
	llWriteFile
	llReadFile
	llReadDir
	llRemoveDir
	llRemoveFile
	llMakeChar
	llMakeDir
	llMakeReg
	llMakeSock
	llMakeFifo
	llMakeBlock
	llMakeSym
	llRefer    // ABI 2
	llTruncate // ABI 3
	llIoctlDev // ABI 5

	llAll  = 1<<16 - 1
	llFile = llExecute | llWriteFile | llReadFile | llTruncate | llIoctlDev // rights that apply to files

	llBindTCP    = 1 << 0 // ABI 4
	llConnectTCP = 1 << 1
	llAbstract   = 1 << 0 // ABI 6
	llSignal     = 1 << 1
)

type landlockAttr struct{ fs, net, scoped uint64 }

// LandlockABI returns the Landlock ABI version of the kernel, or 0 if the
// kernel has no Landlock.
func LandlockABI() int {
	v, _, e := syscall.RawSyscall(sysLandlockCreate, 0, 0, 1)
	if e != 0 {
		return 0
	}
	return int(v)
}

// restrict applies the rules to this thread and its future children. It never
// permits creating devices.
func (l *Landlock) restrict() (abi int, err error) {
	abi = LandlockABI()
	if abi < max(l.Least, 1) {
		return abi, fmt.Errorf("Landlock ABI too old: kernel has version %d, want %d", abi, l.Least)
	}
	handled := uint64(llAll)
	switch {
	case abi < 2:
		handled &^= llRefer | llTruncate | llIoctlDev
	case abi < 3:
		handled &^= llTruncate | llIoctlDev
	case abi < 5:
		handled &^= llIoctlDev
	}
	attr := landlockAttr{fs: handled}
	size := unsafe.Sizeof(attr.fs)
	if abi >= 4 {
		size += unsafe.Sizeof(attr.net)
		if l.TCP {
			attr.net = llBindTCP | llConnectTCP
		}
	}
	if abi >= 6 {
		size += unsafe.Sizeof(attr.scoped)
		attr.scoped = llAbstract | llSignal
	}
	rules, _, e := syscall.RawSyscall(sysLandlockCreate, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return abi, e
	}
	defer syscall.Close(int(rules))
	for access, paths := range map[uint64][]string{
		llExecute | llReadFile | llReadDir:                 l.Read,
		llAll &^ (llMakeChar | llMakeBlock):                l.Write,
		llReadFile | llWriteFile | llTruncate | llIoctlDev: l.Files,
	} {
		for _, p := range paths {
			if err := allow(int(rules), p, access&handled); err != nil && !errors.Is(err, syscall.ENOENT) {
				return abi, fmt.Errorf("add Landlock rule for %s: %w", p, err)
			}
		}
	}
	if _, _, e = syscall.RawSyscall(sysLandlockSelf, rules, 0, 0); e != 0 {
		return abi, e
	}
	return abi, nil
}

func allow(rules int, path string, access uint64) error {
	const oPath = 0x200000
	fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		access &= llFile
	}
	attr := struct {
		access uint64
		fd     int32
	}{access, int32(fd)}
	_, _, e := syscall.RawSyscall6(sysLandlockAdd, uintptr(rules), 1, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	return errnoError(e)
}
