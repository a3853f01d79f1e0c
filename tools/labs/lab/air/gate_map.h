// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the gate's BPF program and its control process share: mapped memory, one entry per
// direction.
#pragma once

enum { ONEHOP_GATE_A_TO_B = 0, ONEHOP_GATE_B_TO_A = 1, ONEHOP_GATE_DIRECTIONS = 2 };

// Arrivals per direction that the ring holds; a power of two, and above the largest queue.
enum { ONEHOP_GATE_RING = 8192 };

// A packet as it came to the gate. A GSO packet stands for several frames: all but the last have
// first_bytes. Written by the program; `serial_1` last: who reads another number there comes too
// early.
struct onehop_gate_arrival {
  unsigned long long at_ns;     // CLOCK_MONOTONIC
  unsigned long long serial_1;  // place in the order of arrival, from 1
  unsigned int packet_bytes;    // what the gate's size table sees
  unsigned short frames;
  unsigned short first_bytes;  // Ethernet frame
  unsigned short last_bytes;
  unsigned short unused[3];
};

struct onehop_gate_direction {
  // Written by the program at the sender's end.
  unsigned long long packets_total;  // arrivals, the next serial
  unsigned long long frames_total;
  unsigned long long refused_total;  // frames that found the queue full
  unsigned long long unused_1[5];
  // Written by the program at the receiver's end.
  unsigned long long departed_total;  // frames
  unsigned long long dropped_total;   // of them: given up by the model
  unsigned long long unused_2[6];
  // Written by the control process.
  unsigned long long is_open;       // 0: everything is refused
  unsigned long long queue_frames;  // limit
  unsigned long long
      is_wake_wanted;  // 1: the next arrival rings the bell; the program sets it back
  unsigned long long unused_3[5];
};

// Verdict on a frame by its place in the order of departure: 1 if the model gave it up.
enum { ONEHOP_GATE_VERDICTS = 16384 };
