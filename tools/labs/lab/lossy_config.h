// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the loss program and its loader share: one map entry per direction, indexed by direction.
#pragma once

enum { ONEHOP_LOSSY_A_TO_B = 0, ONEHOP_LOSSY_B_TO_A = 1, ONEHOP_LOSSY_DIRECTIONS = 2 };

// Written by the loader, read by the program.
struct onehop_lossy_config {
  unsigned int loss_ppm;  // frames to drop, of a million
};

// Written by the program, read by `onehop lab` and tests (bpftool map dump).
struct onehop_lossy_counters {
  unsigned long long seen_total;
  unsigned long long dropped_total;
};
