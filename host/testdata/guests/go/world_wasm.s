//go:build !extism

#include "textflag.h"

// func memoryPages() int32
TEXT ·memoryPages(SB), NOSPLIT, $0-4
	Get SP
	CurrentMemory
	I32Store ret+0(FP)
	RET

// func wreck()
TEXT ·wreck(SB), NOSPLIT, $0-0
	I32Const $0
	I32Const $165
	CurrentMemory
	I32Const $16
	I32Shl
	MemoryFill
	UNDEF
