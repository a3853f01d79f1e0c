// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// steer: hands the UDP frames of this run to its AF_XDP sockets and the rest to the kernel.
//
//   NIC queue q ─▶ steer ─┬─ UDP to our address and port ─▶ XSKMAP[q] ─▶ socket of queue q
//                         └─ else, or no socket at q     ─▶ XDP_PASS  ─▶ kernel, firewall
//
// Only frames as onehop sends them are taken: IPv4 without options and unfragmented, IPv6 with UDP
// as the first next header, no VLAN tag in the frame. A tag that the device has already stripped
// cannot be seen here; such a frame still has to authenticate. No state is kept or written.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "steer_config.h"

#define IPV4_FRAGMENT_MASK 0x3fff /* more-fragments bit and offset */

const volatile struct onehop_steer_config steer_config;

struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, 1); /* set to the number of receive queues before loading */
  __type(key, __u32);
  __type(value, __u32);
} xsks_map SEC(".maps"); /* DPDK's net_af_xdp looks for this name */

static __always_inline int is_ours_ipv4(void* l3, void* end) {
  struct iphdr* ip = l3;
  if ((void*)(ip + 1) > end) return 0;
  if (ip->version != 4 || ip->ihl != 5 || ip->protocol != IPPROTO_UDP) return 0;
  if (ip->frag_off & bpf_htons(IPV4_FRAGMENT_MASK)) return 0;
  if (ip->daddr != steer_config.local_address[0]) return 0;
  struct udphdr* udp = (void*)(ip + 1);
  return (void*)(udp + 1) <= end && udp->dest == steer_config.local_port;
}

static __always_inline int is_equal_ipv6(const struct in6_addr* a, const volatile __u32* b) {
  return a->s6_addr32[0] == b[0] && a->s6_addr32[1] == b[1] && a->s6_addr32[2] == b[2] &&
         a->s6_addr32[3] == b[3];
}

static __always_inline int is_ours_ipv6(void* l3, void* end) {
  struct ipv6hdr* ip = l3;
  if ((void*)(ip + 1) > end) return 0;
  if (ip->version != 6 || ip->nexthdr != IPPROTO_UDP) return 0;
  if (!is_equal_ipv6(&ip->daddr, steer_config.local_address)) return 0;
  struct udphdr* udp = (void*)(ip + 1);
  return (void*)(udp + 1) <= end && udp->dest == steer_config.local_port;
}

SEC("xdp")
int onehop_steer(struct xdp_md* ctx) {
  void* data = (void*)(long)ctx->data;
  void* end = (void*)(long)ctx->data_end;
  struct ethhdr* eth = data;
  if ((void*)(eth + 1) > end) return XDP_PASS;
  int is_ours = 0;
  if (!steer_config.is_ipv6 && eth->h_proto == bpf_htons(ETH_P_IP))
    is_ours = is_ours_ipv4(eth + 1, end);
  if (steer_config.is_ipv6 && eth->h_proto == bpf_htons(ETH_P_IPV6))
    is_ours = is_ours_ipv6(eth + 1, end);
  if (!is_ours) return XDP_PASS;
  return (int)bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS);
}

char onehop_license[] SEC("license") = "Dual BSD/GPL";
