// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Embeds the compiled program of the gate, so that the installed binary needs no other file.
    .section .rodata
    .balign 16
    .global onehop_gate_object
    .global onehop_gate_object_end
onehop_gate_object:
    .incbin ONEHOP_GATE_OBJECT
onehop_gate_object_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
