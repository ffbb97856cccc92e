/* SPDX-License-Identifier: Apache-2.0
 *
 * dlsym and dlvsym tell their caller by the return address (RTLD_NEXT, RTLD_DEFAULT of a library
 * loaded RTLD_LOCAL), so what is not ours to answer goes on by a jump that leaves no trace.
 */
    .text

.macro STUB name, next, version
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    subq $24, %rsp
    .cfi_adjust_cfa_offset 24
    movq %rdi, (%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    .if !\version
    xorl %edx, %edx
    .endif
    movq 24(%rsp), %rcx
    call krex_look_up
    movq %rdx, %rcx
    movq (%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    addq $24, %rsp
    .cfi_adjust_cfa_offset -24
    testq %rcx, %rcx
    jz 1f
    ret
1:  movq \next(%rip), %rcx
    testq %rcx, %rcx
    jz 2f
    jmp *%rcx
2:  xorl %eax, %eax
    ret
    .cfi_endproc
    .size \name, . - \name
.endm

    STUB dlsym, krex_next_dlsym, 0
    STUB dlvsym, krex_next_dlvsym, 1

    .section .note.GNU-stack, "", @progbits
