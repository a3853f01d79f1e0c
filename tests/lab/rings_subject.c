// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// rings_subject IF ENTRIES: a program with AF_XDP rings that does nothing by itself, for the tests
// of `onehop rings`. It knows system calls alone: no libxdp, and nothing of onehop.
//
// It reads a command per line and answers each with its own view of its rings:
//
//   fill N      lend N chunks to the kernel       tx N        queue N frames, unsent
//   take N      take N received frames            kick        have the kernel send
//   reclaim N   take N completions                share       open a second socket on the UMEM
//   unshare     close that one                    forget      close the first one's descriptor
//
//   rx 3 tx 0 fill 61 completion 0
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { chunk_bytes = 2048, chunks = 4096 };

struct ring {
  uint32_t *producer, *consumer;
  void* entries;
  void* memory;
  size_t bytes;
};

static uint32_t entries_count;
static uint8_t* frames;

static void must(int is_good, const char* what) {
  if (is_good) return;
  perror(what);
  exit(1);
}

static int bpf(enum bpf_cmd command, union bpf_attr* attributes) {
  return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

// redirect gives each frame of queue 0 to the socket; what holds the program is never closed.
static void redirect(int socket, unsigned ifindex) {
  union bpf_attr map = {
      .map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
  const int map_fd = bpf(BPF_MAP_CREATE, &map);
  must(map_fd >= 0, "map");
  const struct bpf_insn code[] = {
      {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1, .off = 16},
      {.code = BPF_LD | BPF_DW | BPF_IMM,
       .dst_reg = BPF_REG_1,
       .src_reg = BPF_PSEUDO_MAP_FD,
       .imm = map_fd},
      {0},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = XDP_PASS},
      {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
      {.code = BPF_JMP | BPF_EXIT},
  };
  union bpf_attr program = {.prog_type = BPF_PROG_TYPE_XDP,
                            .insns = (uintptr_t)code,
                            .insn_cnt = sizeof code / sizeof code[0],
                            .license = (uintptr_t) "GPL"};
  const int program_fd = bpf(BPF_PROG_LOAD, &program);
  must(program_fd >= 0, "program");
  const uint32_t key = 0;
  union bpf_attr element = {
      .map_fd = (uint32_t)map_fd, .key = (uintptr_t)&key, .value = (uintptr_t)&socket};
  must(bpf(BPF_MAP_UPDATE_ELEM, &element) == 0, "element");
  union bpf_attr link = {.link_create = {.prog_fd = (uint32_t)program_fd,
                                         .target_ifindex = ifindex,
                                         .attach_type = BPF_XDP}};
  must(bpf(BPF_LINK_CREATE, &link) >= 0, "link");
}

static struct ring map_ring(int fd, int option, uint64_t at, const struct xdp_ring_offset* place,
                            size_t entry_bytes) {
  must(setsockopt(fd, SOL_XDP, option, &entries_count, sizeof entries_count) == 0, "ring");
  struct ring ring = {.bytes = place->desc + entries_count * entry_bytes};
  ring.memory =
      mmap(NULL, ring.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)at);
  must(ring.memory != MAP_FAILED, "mmap");
  ring.producer = (uint32_t*)((char*)ring.memory + place->producer);
  ring.consumer = (uint32_t*)((char*)ring.memory + place->consumer);
  ring.entries = (char*)ring.memory + place->desc;
  return ring;
}

static uint32_t held(const struct ring* ring) {
  return ring->memory == NULL ? 0
                              : __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) -
                                    __atomic_load_n(ring->consumer, __ATOMIC_ACQUIRE);
}

static void add(uint32_t* index, uint32_t count) {
  __atomic_store_n(index, *index + count, __ATOMIC_RELEASE);
}

static void bind_to(int fd, unsigned ifindex, uint16_t flags, int shared_fd) {
  const struct sockaddr_xdp address = {.sxdp_family = AF_XDP,
                                       .sxdp_ifindex = ifindex,
                                       .sxdp_flags = flags,
                                       .sxdp_shared_umem_fd = (uint32_t)shared_fd};
  // The kernel frees the queue of a program that has ended some milliseconds later.
  int rc = -1;
  for (int tries = 0; rc != 0 && tries < 200; tries++) {
    rc = bind(fd, (const struct sockaddr*)&address, sizeof address);
    if (rc == 0 || errno != EBUSY) break;
    usleep(10000);
  }
  must(rc == 0, "bind");
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const unsigned ifindex = if_nametoindex(argv[1]);
  must(ifindex != 0, argv[1]);
  entries_count = (uint32_t)strtoul(argv[2], NULL, 10);
  frames = mmap(NULL, (size_t)chunks * chunk_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(frames != MAP_FAILED, "frames");
  const int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  must(fd >= 0, "socket");
  const struct xdp_umem_reg umem = {
      .addr = (uintptr_t)frames, .len = (uint64_t)chunks * chunk_bytes, .chunk_size = chunk_bytes};
  must(setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem) == 0, "umem");
  struct xdp_mmap_offsets places;
  socklen_t length = sizeof places;
  must(getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &places, &length) == 0, "offsets");
  struct ring fill = map_ring(fd, XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING, &places.fr, 8);
  struct ring completion =
      map_ring(fd, XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING, &places.cr, 8);
  struct ring rx = map_ring(fd, XDP_RX_RING, XDP_PGOFF_RX_RING, &places.rx, 16);
  struct ring tx = map_ring(fd, XDP_TX_RING, XDP_PGOFF_TX_RING, &places.tx, 16);
  bind_to(fd, ifindex, XDP_COPY | XDP_USE_NEED_WAKEUP, 0);
  redirect(fd, ifindex);
  int second = -1;
  struct ring second_rx = {0};
  char line[64], word[16];
  do {
    printf("rx %u tx %u fill %u completion %u\n", held(&rx), held(&tx), held(&fill),
           held(&completion));
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) break;
    unsigned count = 0;
    if (sscanf(line, "%15s %u", word, &count) < 1) continue;
    if (strcmp(word, "fill") == 0) {
      for (uint32_t i = 0; i < count; i++)
        ((uint64_t*)fill.entries)[(*fill.producer + i) & (entries_count - 1)] =
            (*fill.producer + i) % (chunks / 2) * (uint64_t)chunk_bytes;
      add(fill.producer, count);
    } else if (strcmp(word, "tx") == 0) {
      for (uint32_t i = 0; i < count; i++)
        ((struct xdp_desc*)tx.entries)[(*tx.producer + i) & (entries_count - 1)] =
            (struct xdp_desc){.addr = (chunks / 2 + i) * (uint64_t)chunk_bytes, .len = 60};
      add(tx.producer, count);
    } else if (strcmp(word, "kick") == 0) {
      while (held(&tx) > 0 && sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0) {
      }
    } else if (strcmp(word, "take") == 0) {
      add(rx.consumer, count);
    } else if (strcmp(word, "reclaim") == 0) {
      add(completion.consumer, count);
    } else if (strcmp(word, "share") == 0) {
      second = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
      must(second >= 0, "second socket");
      second_rx = map_ring(second, XDP_RX_RING, XDP_PGOFF_RX_RING, &places.rx, 16);
      bind_to(second, ifindex, XDP_SHARED_UMEM, fd);
    } else if (strcmp(word, "unshare") == 0) {
      munmap(second_rx.memory, second_rx.bytes);
      close(second);
    } else if (strcmp(word, "forget") == 0) {
      close(fd);
    }
  } while (strcmp(word, "quit") != 0);
  return 0;
}
