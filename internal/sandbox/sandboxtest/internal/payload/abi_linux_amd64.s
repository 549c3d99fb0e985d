#include "textflag.h"

// func int80(nr, a, b, c uint32) (r int32)
TEXT ·int80(SB), NOSPLIT, $0-20
	MOVL nr+0(FP), AX
	MOVL a+4(FP), BX
	MOVL b+8(FP), CX
	MOVL c+12(FP), DX
	INT  $0x80
	MOVL AX, r+16(FP)
	RET
