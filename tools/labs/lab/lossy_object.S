// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Embeds the compiled loss program, so that the installed binary needs no other file.
    .section .rodata
    .balign 16
    .global onehop_lossy_object
    .global onehop_lossy_object_end
onehop_lossy_object:
    .incbin ONEHOP_LOSSY_OBJECT
onehop_lossy_object_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
