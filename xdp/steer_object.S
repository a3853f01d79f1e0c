// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Embeds the compiled steering program, so that the installed binary needs no other file.
    .section .rodata
    .balign 16
    .global onehop_steer_object
    .global onehop_steer_object_end
onehop_steer_object:
    .incbin ONEHOP_STEER_OBJECT
onehop_steer_object_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
