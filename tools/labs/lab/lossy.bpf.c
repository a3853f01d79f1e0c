// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Loss of the lab's link. It hangs on the tc ingress hooks of the middle namespace's two veths,
// behind the sender's shaper and before the receiver's device, where no XDP program of a host can
// pass it by. A frame is dropped at random or goes on to the bridge, which sends it out of the
// other veth as it came.
//
// It must not send the frame there itself: bpf_redirect() and mirred mark an skb as redirected,
// nothing on the way to the host takes the mark off, and netif_receive_generic_xdp() lets a marked
// skb pass by the host's XDP program (Linux 6.18, net/core/dev.c; the mark is for act_mirred onto
// ifb). An AF_XDP socket in skb mode would then never get a frame.
//
// ARP and neighbour discovery are never dropped: a Wi-Fi MAC repeats lost frames itself, and one
// lost solicitation would cost the first second of a run.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "lossy_config.h"

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, ONEHOP_LOSSY_DIRECTIONS);
  __type(key, __u32);
  __type(value, struct onehop_lossy_config);
} lossy_config SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, ONEHOP_LOSSY_DIRECTIONS);
  __type(key, __u32);
  __type(value, struct onehop_lossy_counters);
} lossy_counters SEC(".maps");

enum {
  ipv6_next_header_at = ETH_HLEN + 6,
  icmpv6_type_at = ETH_HLEN + 40,
  icmpv6 = 58,
  nd_first = 133,
  nd_last = 137
};

static __always_inline int is_spared(struct __sk_buff* skb) {
  __u8 next_header = 0, type = 0;
  if (skb->protocol == bpf_htons(ETH_P_IP)) return 0;
  if (skb->protocol != bpf_htons(ETH_P_IPV6)) return 1;
  if (bpf_skb_load_bytes(skb, ipv6_next_header_at, &next_header, 1) != 0 || next_header != icmpv6)
    return 0;
  if (bpf_skb_load_bytes(skb, icmpv6_type_at, &type, 1) != 0) return 0;
  return type >= nd_first && type <= nd_last;
}

static __always_inline int pass_or_drop(struct __sk_buff* skb, __u32 direction) {
  struct onehop_lossy_config* config = bpf_map_lookup_elem(&lossy_config, &direction);
  struct onehop_lossy_counters* counters = bpf_map_lookup_elem(&lossy_counters, &direction);
  if (!config || !counters) return TC_ACT_SHOT;
  if (!is_spared(skb)) {
    __sync_fetch_and_add(&counters->seen_total, 1);
    if (config->loss_ppm != 0 && bpf_get_prandom_u32() % 1000000 < config->loss_ppm) {
      __sync_fetch_and_add(&counters->dropped_total, 1);
      return TC_ACT_SHOT;
    }
  }
  return TC_ACT_OK;
}

SEC("tc")
int lossy_a_to_b(struct __sk_buff* skb) { return pass_or_drop(skb, ONEHOP_LOSSY_A_TO_B); }

SEC("tc")
int lossy_b_to_a(struct __sk_buff* skb) { return pass_or_drop(skb, ONEHOP_LOSSY_B_TO_A); }

char lossy_license[] SEC("license") = "Dual BSD/GPL";
