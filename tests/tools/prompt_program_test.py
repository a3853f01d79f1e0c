#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The prompt for the code in a pseudo-terminal, under shells with job control: whatever ends or
stops the program, the terminal is as it was; when it goes on, what is typed is not shown,
with --hide."""

import os
import pathlib
import pty
import select
import signal
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))

from program import check, main  # noqa: E402

PATIENCE = 30
PROMPT = "Code: "
SECRET = "typed-and-never-shown"


class Shell:
    """A shell in a pseudo-terminal that is its own. Its prompt is a word that nothing else says."""

    def __init__(self, words, environment=None) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # nohup ignores the first for all its children, and `sh -c 'COMMAND &'` the others.
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            os.environ.pop("ONEHOP_CODE", None)
            os.environ.update({"PS1": "ready> ", "TERM": "dumb"} | (environment or {}))
            os.execvp(words[0], words)
        self.text = ""

    def write(self, text) -> None:
        os.write(self.fd, text.encode())

    def read_until(self, condition, claim) -> None:
        give_up_at = time.monotonic() + PATIENCE
        while not condition():
            check(time.monotonic() < give_up_at, f"{claim}: {self.text!r}")
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    check(condition(), f"{claim}: {self.text!r}")
                    return

    def read_more(self, words, claim) -> None:
        """read_more waits for words behind what was read before."""
        seen = len(self.text)
        self.read_until(lambda: words in self.text[seen:], claim)

    @property
    def has_echo(self) -> bool:
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def expect_echo(self, is_on, claim) -> None:
        give_up_at = time.monotonic() + PATIENCE
        while self.has_echo != is_on:
            check(time.monotonic() < give_up_at, f"{claim}: {self.text!r}")
            time.sleep(0.02)

    def job(self) -> int:
        """job is the process in the foreground."""
        return os.tcgetpgrp(self.fd)

    def close(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def asking(onehop) -> str:
    return f"'{onehop}' send /etc/hostname --to 127.0.0.1:1 --io udp --wait 0 --hide\n"


def interactive(onehop, words=("bash", "--norc", "--noprofile", "-i")) -> Shell:
    shell = Shell(list(words))
    shell.read_until(lambda: "ready> " in shell.text, "the shell is there")
    shell.write(asking(onehop))
    shell.read_more(PROMPT, "it asks")
    shell.expect_echo(False, "and what is typed is not shown")
    return shell


def test_ctrl_z_gives_the_terminal_back_and_fg_silences_it_again(onehop) -> None:
    for words in (("bash", "--norc", "--noprofile", "-i"), ("dash", "-i")):
        shell = interactive(onehop, words)
        for _ in range(2):
            shell.write("\x1a")
            shell.read_more("ready> ", "the shell has the terminal")
            if words[0] == "dash":  # the other shell sets the terminal itself
                check(shell.has_echo, "with its echo")
            shell.write("fg\n")
            shell.read_more(PROMPT, "it asks again")
            shell.expect_echo(False, "in silence")
        shell.write(SECRET + "\n")
        shell.read_more("ready> ", "it has read the code, and finds nobody")
        check(SECRET not in shell.text, f"nothing of it was shown: {shell.text!r}")
        shell.close()


def test_what_is_stopped_by_sigstop_is_silent_when_it_goes_on(onehop) -> None:
    shell = interactive(onehop)
    os.kill(-shell.job(), signal.SIGSTOP)
    shell.read_more("ready> ", "the shell has the terminal")
    shell.write("stty echo; fg\n")
    shell.read_more(PROMPT, "it asks again")
    shell.expect_echo(False, "in silence")
    shell.close()


def test_in_the_background_it_waits_for_the_foreground(onehop) -> None:
    shell = interactive(onehop)
    shell.write("\x1a")
    shell.read_more("ready> ", "the shell has the terminal")
    shell.write("bg; sleep 0.3; echo is$((1+1)); stty -a\n")
    shell.read_more("is2", "the shell goes on")
    shell.read_until(lambda: "ready> " in shell.text[shell.text.rindex("is2"):], "to its prompt")
    check(" echo " in shell.text[shell.text.rindex("is2"):], "whose echo is on")
    shell.write("fg\n")
    shell.read_more(PROMPT, "it asks again")
    shell.expect_echo(False, "in silence")
    shell.close()


def test_whatever_signal_ends_it_the_terminal_is_as_it_was(onehop) -> None:
    # No shell, which would set the terminal itself.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT, signal.SIGALRM,
                   signal.SIGUSR1):
        shell = Shell([onehop, *asking("x").split()[1:]])
        shell.read_until(lambda: PROMPT in shell.text, "it asks")
        shell.expect_echo(False, "and what is typed is not shown")
        os.kill(shell.pid, number)
        status = os.waitstatus_to_exitcode(os.waitpid(shell.pid, 0)[1])
        check(status == -number, f"the signal ends it: {status}")
        check(shell.has_echo, f"{number.name}: echo is on again")
        os.close(shell.fd)


def test_a_shell_that_traps_the_interrupt_has_its_echo(onehop) -> None:
    script = f"trap 'echo trapped' INT; {asking(onehop)} echo left; read -r line; echo \"[$line]\""
    shell = Shell(["dash", "-c", script])
    shell.read_until(lambda: PROMPT in shell.text, "it asks")
    shell.expect_echo(False, "and what is typed is not shown")
    shell.write("\x03")
    shell.read_more("left", "the script goes on")
    check(shell.has_echo, "with its echo")
    shell.write("a word\n")
    shell.read_more("[a word]", "and reads")
    shell.close()


def test_who_ignores_hang_ups_still_asks(onehop) -> None:
    shell = Shell(["dash", "-c", f"trap '' HUP; exec {asking(onehop)}"])
    shell.read_until(lambda: PROMPT in shell.text, "it asks")
    shell.expect_echo(False, "and what is typed is not shown")
    os.kill(shell.pid, signal.SIGHUP)
    time.sleep(0.2)
    check(os.waitpid(shell.pid, os.WNOHANG) == (0, 0), "it goes on")
    check(not shell.has_echo, "in silence")
    shell.close()


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # this test may run below nohup
    sys.exit(main(globals(), needs_root=False))
