// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Embeds the compiled softirq program.
    .section .rodata
    .balign 16
    .global onehop_softirq_object
    .global onehop_softirq_object_end
onehop_softirq_object:
    .incbin ONEHOP_SOFTIRQ_OBJECT
onehop_softirq_object_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
