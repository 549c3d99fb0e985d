package seccomp

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/bpf"
	reference "gvisor.dev/gvisor/pkg/seccomp"
)

// referenceProgram returns a program with the same rules as compile, written for and
// compiled by another library.
func referenceProgram(k kind) ([]bpf.Instruction, error) {
	errno := func(e unix.Errno) reference.Action { return reference.ReturnError.Code(uint16(e)) }
	deny := reference.NewSyscallRules()
	for _, nr := range slices.Concat(forbiddenCalls, neverHere, k.more) {
		deny.Set(nr, reference.MatchAll{})
	}
	deny.Set(unix.SYS_CLONE, refAnyFlag(0, namespaces))
	deny.Set(unix.SYS_UNSHARE, refAnyFlag(0, namespaces))
	deny.Set(unix.SYS_IOCTL, reference.Or{refArgument(1, unix.TIOCSTI), refArgument(1, unix.TIOCLINUX), refArgument(1, unix.TIOCSETD)})
	for nr, arg := range modeArgument {
		if !deny.Has(nr) {
			deny.Set(nr, refAnyFlag(arg, unix.S_ISUID|unix.S_ISGID))
		}
	}
	permitted := reference.NewSyscallRules()
	permitted.Set(unix.SYS_PERSONALITY, reference.Or{refArgument(0, linuxPersonality), refArgument(0, queryPersonality)})
	if k.isolated {
		families := reference.Or{refArgument(0, unix.AF_INET), refArgument(0, unix.AF_INET6)}
		if k.unix {
			families = append(families, refArgument(0, unix.AF_UNIX))
		}
		permitted.Set(unix.SYS_SOCKET, families)
	}
	permitted.Set(unix.SYS_SOCKETPAIR, refArgument(0, unix.AF_UNIX))
	noSockets := reference.NewSyscallRules()
	noSockets.Set(unix.SYS_SOCKET, reference.MatchAll{})
	noSockets.Set(unix.SYS_SOCKETPAIR, reference.MatchAll{})
	for nr, arg := range processArgument {
		other := reference.PerArg{}
		other[arg] = reference.NotEqual(0)
		rule := reference.Or{other}
		if nr == unix.SYS_SETPRIORITY {
			rule = append(rule, refArgument(0, unix.PRIO_USER)) // affects all processes of the user
		}
		deny.Set(nr, rule)
	}
	if !k.isolated {
		affinity := reference.PerArg{reference.NotEqual(0)} // libraries use 0 to bind their own threads
		deny.Set(unix.SYS_SCHED_SETAFFINITY, affinity)
		for _, nr := range forbiddenShared {
			deny.Set(nr, reference.MatchAll{})
		}
	}
	unknown := reference.NewSyscallRules()
	unknown.Set(unix.SYS_CLONE3, reference.MatchAll{}) // a filter cannot check its flags; libraries fall back to clone
	for _, nr := range unboundedMemory {
		unknown.Set(nr, reference.MatchAll{})
	}
	unsupported := reference.NewSyscallRules()
	for _, nr := range wholePages {
		unsupported.Set(nr, reference.MatchAll{})
	}
	deny.Set(unix.SYS_MMAP, refSharedAnonymous)
	ignored := reference.NewSyscallRules()
	ignored.Set(unix.SYS_SETSOCKOPT, refBufferSizes)
	unknown.Set(unix.SYS_OPENAT2, reference.MatchAll{}) // a filter cannot check its mode; see modes
	p := reference.Program{
		RuleSets: []reference.RuleSet{
			{Rules: unknown, Action: errno(unix.ENOSYS)},
			{Rules: unsupported, Action: errno(unix.EINVAL)},
			{Rules: ignored, Action: errno(0)},
			{Rules: permitted, Action: reference.Allow},
			{Rules: noSockets, Action: errno(unix.EAFNOSUPPORT)},
			{Rules: deny, Action: errno(unix.EPERM)},
		},
		Options: reference.ProgramOptions{
			DefaultAction: reference.Allow,
			BadArchAction: reference.KillProcess,
		},
	}
	insns, _, err := p.Build()
	if err != nil {
		return nil, err
	}
	return insns, err
}

func refArgument(n int, value uint32) reference.PerArg {
	rule := reference.PerArg{}
	rule[n] = reference.MaskedEqual(0xffffffff, uintptr(value))
	return rule
}

func refAnyFlag(n int, flags uintptr) reference.Or {
	var or reference.Or
	for bit := uintptr(1); bit <= flags; bit <<= 1 {
		if flags&bit != 0 {
			rule := reference.PerArg{}
			rule[n] = reference.MaskedEqual(bit, bit)
			or = append(or, rule)
		}
	}
	return or
}

var refSharedAnonymous = reference.PerArg{
	reference.AnyValue{}, reference.AnyValue{}, reference.AnyValue{},
	reference.MaskedEqual(unix.MAP_SHARED|unix.MAP_ANONYMOUS, unix.MAP_SHARED|unix.MAP_ANONYMOUS),
}

var refBufferSizes = func() reference.Or {
	var or reference.Or
	for _, option := range []uint32{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE} {
		rule := refArgument(1, unix.SOL_SOCKET)
		rule[2] = refArgument(2, option)[2]
		or = append(or, rule)
	}
	return or
}()

// filter is a compiled program that can be asked for its verdicts.
type filter struct {
	p      bpf.Program
	buffer []byte
}

func newFilter(t *testing.T, insns []bpf.Instruction) *filter {
	t.Helper()
	p, err := bpf.Compile(insns, false)
	if err != nil {
		t.Fatal(err)
	}
	return &filter{p, make([]byte, 64)}
}

func (f *filter) verdict(t *testing.T, nr uint32, arch uint32, args [6]uint64) uint32 {
	t.Helper()
	data := linux.SeccompData{Nr: int32(nr), Arch: arch, Args: args}
	v, err := bpf.Exec[bpf.NativeEndian](f.p, reference.DataAsBPFInput(&data, f.buffer))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// values are arguments with a meaning in some rule.
var values = []uint64{0, 1, 2, 7, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TCGETS, unix.S_ISUID, unix.S_ISGID, 0o755, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_VSOCK,
	unix.MAP_SHARED, unix.MAP_ANONYMOUS, unix.MAP_SHARED | unix.MAP_ANONYMOUS, unix.MAP_SHARED_VALIDATE | unix.MAP_ANONYMOUS, unix.SO_SNDBUF, unix.SO_RCVBUFFORCE,
	unix.CLONE_NEWNS, unix.CLONE_NEWUSER, unix.CLONE_NEWCGROUP, unix.CLONE_VM | unix.CLONE_THREAD, queryPersonality, 1<<32 - 1, 1 << 32, 1<<63 | unix.CLONE_NEWPID}

// Our programs and those of another compiler return the same verdict for each system
// call, for all arguments in rules, and for unassigned numbers.
func TestVerdictsEqualReference(t *testing.T) {
	for name, k := range map[string]kind{
		"isolated": {isolated: true, unix: true}, "isolated without Unix sockets": {isolated: true},
		"host": {}, "host user": {more: slices.Concat(changeByName, byNameHere)},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := program(k)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d instructions", len(b)/8)
			var insns []bpf.Instruction
			for ; len(b) > 0; b = b[8:] {
				insns = append(insns, bpf.Instruction{OpCode: binary.NativeEndian.Uint16(b), JumpIfTrue: b[2], JumpIfFalse: b[3], K: binary.NativeEndian.Uint32(b[4:])})
			}
			other, err := referenceProgram(k)
			if err != nil {
				t.Fatal(err)
			}
			got, want := newFilter(t, insns), newFilter(t, other)
			rnd := rand.New(rand.NewPCG(1, 1))
			check := func(nr, at uint32, args [6]uint64) {
				t.Helper()
				if g, w := got.verdict(t, nr, at, args), want.verdict(t, nr, at, args); g != w {
					t.Fatalf("call %d (architecture %#x) with %#x: %#x, want %#x", nr, at, args, g, w)
				}
			}
			for nr := range uint32(600) {
				check(nr, arch, [6]uint64{})
				check(nr, 0x40000003, [6]uint64{}) // i386
				for arg := range 6 {
					for _, v := range values {
						var args [6]uint64
						args[arg] = v
						check(nr, arch, args)
					}
				}
				for range 200 {
					var args [6]uint64
					for i := range args {
						args[i] = values[rnd.IntN(len(values))] | uint64(rnd.IntN(2))<<40
					}
					check(nr, arch, args)
				}
			}
			for _, nr := range []uint32{1 << 20, 0x3fffffff, 1 << 31, 1<<32 - 1} {
				check(nr, 0x40000003, [6]uint64{})
				if arch != unix.AUDIT_ARCH_X86_64 { // the reference lacks the rule for the x32 ABI
					check(nr, arch, [6]uint64{})
				}
			}
		})
	}
}

// Calls of the x32 ABI have the same architecture as those of x86-64.
func TestForeignCalls(t *testing.T) {
	if arch != unix.AUDIT_ARCH_X86_64 {
		t.Skip("the architecture has no second ABI")
	}
	b, err := Isolated()
	if err != nil {
		t.Fatal(err)
	}
	var insns []bpf.Instruction
	for ; len(b) > 0; b = b[8:] {
		insns = append(insns, bpf.Instruction{OpCode: binary.NativeEndian.Uint16(b), JumpIfTrue: b[2], JumpIfFalse: b[3], K: binary.NativeEndian.Uint32(b[4:])})
	}
	f := newFilter(t, insns)
	for nr, want := range map[uint32]uint32{0x3fffffff: allow, 0x40000000: fail(unix.EPERM), 0x40000001: fail(unix.EPERM), 1<<32 - 1: fail(unix.EPERM)} {
		if got := f.verdict(t, nr, arch, [6]uint64{}); got != want {
			t.Errorf("call %#x: %#x, want %#x", nr, got, want)
		}
	}
}

// A rule that a jump cannot skip is an error, not a wrong program.
func TestTooManyRules(t *testing.T) {
	s := ruleSet{}
	for i := range uint32(100) {
		s.add(allow, 1, equals(0, i))
	}
	if _, err := s.compile(); err == nil {
		t.Error("100 rules for a call are compiled")
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := program(kind{isolated: true, unix: true}); err != nil {
			b.Fatal(err)
		}
	}
}
