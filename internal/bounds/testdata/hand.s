# Code that compilers seldom make, to be judged and not run. HEAD leaves the
# threads in ebx, the thread number in ecx, the quotient in eax and the rest in edx.
	.macro HEAD name
	.globl \name
	.type \name, @function
\name:
	push %rbx
	sub $64, %rsp
	mov %edi, %r12d
	call omp_get_num_threads@PLT
	mov %eax, %ebx
	call omp_get_thread_num@PLT
	mov %eax, %ecx
	mov %r12d, %eax
	cltd
	idiv %ebx
	.endm
	.macro SHARE # from t in ecx, q in eax and r in edx
	imul %eax, %ecx
	add %edx, %ecx
	add %ecx, %eax
	xor %r8d, %r8d
	.endm
	.macro TAIL name
	mov %eax, (%rsi)
	xor %eax, %eax
	add $64, %rsp
	pop %rbx
	ret
	.size \name, .-\name
	.endm
	.text

	HEAD ok_reversed # r - t
	cmp %ecx, %edx
	jg 1f
2:	SHARE
	TAIL ok_reversed
1:	inc %eax
	xor %edx, %edx
	jmp 2b
	.size ok_reversed, .-ok_reversed

	HEAD no_wrong_way
	cmp %ecx, %edx
	jl 1f
2:	SHARE
	TAIL no_wrong_way
1:	inc %eax
	xor %edx, %edx
	jmp 2b
	.size no_wrong_way, .-no_wrong_way

	HEAD no_equal
	cmp %edx, %ecx
	je 1f
2:	SHARE
	TAIL no_equal
1:	inc %eax
	xor %edx, %edx
	jmp 2b
	.size no_equal, .-no_equal

	HEAD ok_carry
	mov $0, %r9d
	cmp %edx, %ecx
	mov %eax, %r10d
	adc $0, %r10d
	cmp %edx, %ecx
	cmovb %r9d, %edx
	mov %r10d, %eax
	SHARE
	TAIL ok_carry

	HEAD no_carry
	mov $0, %r9d
	cmp %ecx, %edx
	adc $0, %eax
	cmp %edx, %ecx
	cmovb %r9d, %edx
	SHARE
	TAIL no_carry

	HEAD no_argument # on the stack
	mov %rcx, (%rsp)
	cmp %edx, %ecx
	setl %r10b
	movzbl %r10b, %r10d
	add %r10d, %eax
	SHARE
	xor %ecx, %ecx
	call many@PLT
	TAIL no_argument

	HEAD no_merge # the number on one path only
	mov %ecx, %r9d
	test %r12d, %r12d
	je 1f
	mov $7, %r9d
1:	cmp %edx, %ecx
	setl %r10b
	movzbl %r10b, %r10d
	add %r10d, %eax
	SHARE
	movslq %r9d, %r9
	movl $1, (%rsi,%r9,4)
	TAIL no_merge

	HEAD no_byte
	mov %cl, (%rsi)
	cmp %edx, %ecx
	setl %r10b
	movzbl %r10b, %r10d
	add %r10d, %eax
	SHARE
	TAIL no_byte

	HEAD no_slot_part # the number within a wider load
	mov %ecx, 12(%rsp)
	mov 8(%rsp), %r9
	mov %r9, (%rsi)
	mov 12(%rsp), %ecx
	cmp %edx, %ecx
	setl %r10b
	movzbl %r10b, %r10d
	add %r10d, %eax
	SHARE
	TAIL no_slot_part

	HEAD no_table # kept across a switch
	mov %ecx, %ebp
	cmp %edx, %ecx
	setl %r10b
	movzbl %r10b, %r10d
	add %r10d, %eax
	SHARE
	jmp *%r11
	mov %ebp, (%rsi)
	TAIL no_table

	HEAD no_landing_pad # used where no jump leads
	mov %ecx, %ebx
	cmp %edx, %ecx
	setl %r10b
	movzbl %r10b, %r10d
	add %r10d, %eax
	SHARE
	xor %ecx, %ecx
	call many@PLT
	TAIL no_landing_pad
	mov %ebx, (%rsi)
	ud2
	.size no_landing_pad, .-no_landing_pad

	HEAD no_vector # into a vector register
	vmovd %ecx, %xmm0
	cmp %edx, %ecx
	setl %r10b
	movzbl %r10b, %r10d
	add %r10d, %eax
	SHARE
	TAIL no_vector

	.globl many
	.type many, @function
many:	vcmppd $1, 8(%rax), %ymm1, %ymm2
	vpermpd $27, (%rcx), %ymm0
	vpinsrw $1, 6(%rax,%rbx,2), %xmm0, %xmm1
	vshufps $4, 0x12345678(%rip), %xmm2, %xmm3
	vgatherdpd %ymm1, 8(%rax,%xmm2,8), %ymm3
	shlx %rax, 16(%rsp), %rcx
	rorx $3, (%rdi), %edx
	vaddpd 64(%rsp), %zmm1, %zmm2
	vaddpd 0x1234(%r13,%r14,4), %zmm21, %zmm31{%k1}
	vpternlogd $0x96, (%rbp){1to16}, %zmm1, %zmm2
	vfmadd231sd 8(%r12), %xmm1, %xmm2
	vpbroadcastd %r9d, %zmm4
	vpslld $3, %ymm1, %ymm2
	vpshufd $5, (%r8), %ymm9
	kmovw %k1, %eax
	vpextrd $2, %xmm1, 4(%rsp)
	vblendvpd %ymm1, (%rax), %ymm2, %ymm3
	vmovsd %xmm0, %fs:-8
	vmovsd %gs:(%rax,%rbx), %xmm0
	vmovaps (%eax), %ymm0
	vzeroupper
	endbr64
	ret
	.size many, .-many
	.type region._omp_fn.0, @function
region._omp_fn.0: # that the loops without objection belong to
	call ok_reversed
	call ok_carry
	ret
	.size region._omp_fn.0, .-region._omp_fn.0
	.section .note.GNU-stack,"",@progbits
