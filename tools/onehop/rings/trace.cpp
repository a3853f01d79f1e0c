// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/rings/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace onehop::rings {

Result<RingTrace> RingTrace::open(const std::string& path, const std::string& command_line,
                                  const Program& of) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr)
    return errno_error(ExitCode::local_file_error, "open the trace file " + path,
                       "Check the folder's permissions.");
  RingTrace self{path, file};
  std::string head = fmt::format("# command line: {}\n# version: {}\n# config: rings of {} {}\n",
                                 command_line, ONEHOP_VERSION, of.pid, of.name);
  // A line of the head stays one line, whatever the command line held.
  std::replace(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(head.find("\n# version")),
               '\n', ' ');
  head += "t_ns,socket,queue";
  for (const std::string_view name : ring_names)
    head += fmt::format(",{0}_held_entries,{0}_ring_entries", name);
  head += ",rx_dropped_total,rx_ring_full_total,fill_ring_empty_total\n";
  if (std::fputs(head.c_str(), file) < 0) return self.failed();
  return self;
}

Error RingTrace::failed() const {
  return errno_error(ExitCode::local_file_error, "write the trace file " + path_,
                     "Is the disk full?");
}

Result<void> RingTrace::write(Nanos at, std::span<const Socket> sockets) {
  for (const Socket& socket : sockets) {
    const SocketFacts& facts = socket.facts;
    line_ = fmt::format("{},{},", at.count(), socket.inode);
    if (facts.queue) line_ += std::to_string(*facts.queue);
    for (const auto& ring : socket.rings) {
      if (ring && ring->use.last)
        line_ += fmt::format(",{},{}", ring->use.now, ring->use.capacity.most);
      else
        line_ += ",,";
    }
    if (facts.counts)
      line_ += fmt::format(",{},{},{}", facts.counts->rx_dropped, facts.counts->rx_ring_full,
                           facts.counts->rx_fill_ring_empty_descs);
    else
      line_ += ",,,";
    line_ += '\n';
    if (std::fwrite(line_.data(), 1, line_.size(), file_.get()) != line_.size()) return failed();
  }
  return success();
}

Result<void> RingTrace::close() {
  if (std::fclose(file_.release()) != 0) return failed();
  return success();
}

}  // namespace onehop::rings
