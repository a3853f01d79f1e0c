// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The options of send and recv.
#include <CLI/CLI.hpp>

#include <map>
#include <string>

#include "control/transfer/settings.hpp"
#include "tools/onehop/command/commands.hpp"

namespace onehop::tool {

namespace {

constexpr const char* config_footer =
    "\n'--config FILE' reads options from a file: see 'onehop --help'.\n"
    "'--help-all' lists options for experiments, too.";

}  // namespace

void add_send_options(CLI::App& command, SendCommand& send) {
  command
      .add_option("PATH", send.transfer.paths,
                  "files and folders; FOLDER/ sends what the folder holds, without the folder "
                  "itself; - sends standard input under --name")
      ->required();
  command.add_option("--name", send.transfer.stream_name, "what standard input arrives as");
  CLI::Option* to =
      command
          .add_option("--to", send.transfer.to,
                      "the receiver: an address, or the name that it shows (default: the "
                      "receiver on a link of this machine)")
          ->type_name("HOST[:PORT]");
  add_p2p_options(command, send.p2p);
  CLI::Option* wait =
      command
          .add_option("--wait", send.transfer.wait_seconds,
                      "seconds to wait for a receiver that is not there yet, or busy (at a "
                      "terminal and without --to: until one is there)")
          ->check(CLI::Range(0.0, 3600.0))
          ->capture_default_str();
  using Unit = CLI::AsNumberWithUnit;
  command
      .add_option("--patience", send.transfer.patience_seconds,
                  "wait so long for a receiver that is gone when something has arrived there, and "
                  "go on (90s, 10min, 1h; 0: end at once)")
      ->transform(Unit{std::map<std::string, double>{{"s", 1}, {"min", 60}, {"h", 3600}},
                       Unit::UNIT_OPTIONAL, "TIME"})
      ->envname("ONEHOP_PATIENCE")
      ->default_str("10min");
  send.transfer.patience_seconds = 600;
  command.callback([to, wait, &send] {
    if (send.p2p.is_wanted && !to->empty()) throw CLI::ExcludesError("--p2p", "--to");
    send.has_wait = !wait->empty();
  });
  add_tree_options(command, send);
  command.add_flag("--hide", send.output.is_code_hidden,
                   "do not show the code while it is typed (the receiver's screen shows it)");
  add_common_options(command, send.transfer.common, send.output);
  command
      .add_option("--link-model", send.transfer.common.link_model,
                  "a model of the link publishes its facts to this Unix socket, in place of the "
                  "interface's own")
      ->type_name("FILE")
      ->group("Link");
  command
      .add_flag("--fragment", send.transfer.has_fragments,
                "an experiment: datagrams of 64 KB in IP fragments (--io udp), until the path "
                "loses 0.1 % of its frames")
      ->group("Link");
  command
      .add_flag("--mac-noack", send.transfer.has_mac_noack,
                "with --repair lazy on Wi-Fi: no receiver's MAC acknowledges our data frames, "
                "which get a TID of their own (needs sudo)")
      ->group("Link");
  command.footer(std::string{"Example: onehop send video.mkv Photos --to 192.168.49.1"} +
                 config_footer);
  command.fallthrough();  // so that --config may stand behind the command as well
}

void add_recv_options(CLI::App& command, RecvCommand& recv) {
  command
      .add_option("--dir", recv.transfer.directory,
                  "destination folder; - writes the one file of one session to standard output")
      ->type_name("FOLDER")
      ->capture_default_str();
  command
      .add_option("--listen", recv.transfer.listen,
                  "where to listen (default: all addresses, port 7411)")
      ->type_name("ADDR[:PORT]");
  command.add_flag("--once", recv.transfer.is_once,
                   "end after the first accepted session, with its exit code");
  command.add_option("--on-exist", recv.transfer.on_exist, "what to do about a name that exists")
      ->check(CLI::IsMember(transfer::words_of("--on-exist")))
      ->capture_default_str();
  command
      .add_option("--durability", recv.transfer.durability,
                  "when a file is on the disk: with its name, small ones in batches or each; none: "
                  "when the kernel likes, and a power cut may leave a name with any content")
      ->check(CLI::IsMember(transfer::words_of("--durability")))
      ->capture_default_str();
  command.add_flag("--quick", recv.transfer.is_quick,
                   "take a file that is there with the same size and time for the offered one, "
                   "unread (default: compare its content)");
  command.add_flag("--allow-hidden", recv.transfer.is_hidden_allowed,
                   "also take names that begin with a dot");
  command
      .add_option("--symlinks", recv.transfer.symlinks,
                  "symbolic links: refuse all, or take those that stay below the folder that was "
                  "sent")
      ->check(CLI::IsMember(transfer::words_of("recv --symlinks")))
      ->capture_default_str();
  command.add_flag("--long", recv.transfer.is_code_long,
                   "show a code of 28 letters, which wrong ones never burn, instead of three "
                   "words");
  command.add_flag("--no-space-check", recv.transfer.is_space_unchecked,
                   "do not hold what is offered against the free space and inodes of the disk");
  add_found_options(command, recv);
  CLI::Option* clean =
      command
          .add_option("--clean", recv.clean,
                      "receive nothing: remove what interrupted sessions left in this folder and "
                      "below it, and end")
          ->type_name("FOLDER");
  for (const char* name : {"--once", "--dir", "--listen"}) clean->excludes(name);
  add_p2p_option(command, recv);
  command.add_flag("--dry-run", recv.is_dry_run, "list it, and remove nothing")->needs(clean);
  add_common_options(command, recv.transfer.common, recv.output);
  add_service_options(command, recv);
  for (const char* name : {"--law", "--target", "--bounds", "--qcut", "--key-interval"}) {
    CLI::Option* option = command.get_option(name);
    option->description(option->get_description() + "; the sender's counts");
  }
  command.get_option("--digest")
      ->description("digest of blocks and files; sha256 is required of the sender");
  command.footer(std::string{"Example: onehop recv --dir Downloads"} + config_footer);
  command.fallthrough();
}

}  // namespace onehop::tool
