/* SPDX-License-Identifier: Apache-2.0
 *
 * dlsym and dlvsym tell their caller by the return address (RTLD_NEXT, RTLD_DEFAULT of a library
 * loaded RTLD_LOCAL), so what is not ours to answer goes on by a jump that leaves no trace.
 */
    .text

.macro STUB name, next, version
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint #34 // bti c
    stp x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    .if !\version
    mov x2, xzr
    .endif
    mov x3, x30
    bl krex_look_up
    cbnz x1, 1f
    .cfi_remember_state
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x29
    .cfi_restore x30
    adrp x16, \next
    ldr x16, [x16, #:lo12:\next]
    cbz x16, 2f
    br x16
2:  mov x0, xzr
    ret
    .cfi_restore_state
1:  ldp x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size \name, . - \name
.endm

    STUB dlsym, krex_next_dlsym, 0
    STUB dlvsym, krex_next_dlvsym, 1

    .section .note.GNU-stack, "", %progbits
