#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""How a person carries a code from one screen to the other: code_screen_test.py ONEHOP [WORD].

Goal:   words and long codes are taken as people type them, a slip is named before anybody is asked,
        and wrong words burn the right ones, which both screens say.
Method: the real program over UDP on loopback, in a terminal of 80 x 24.
Bounds: texts; that no line is wider than the terminal.
"""

import re
import socket
import subprocess
import sys

from first_screen_test import LONG, WORDS, Desk, made_code
from loopback import check
from program import main
from screen import Screen


def other(letter) -> str:
    """Another one; a digit for a digit, by which a code is known to be made."""
    first, second = ("3", "4") if letter.isdigit() else ("b", "c")
    return first if letter != first else second


def slips(code) -> dict[str, str]:
    """slips are codes with one slip, and what is said of each."""
    groups = code.split("-")
    turned = next(i for i, group in enumerate(groups) if group[1] != group[2])

    def with_group(at, text) -> str:
        return "-".join([*groups[:at], text, *groups[at + 1:]])

    return {
        with_group(2, groups[2][:3] + other(groups[2][3])): "group 3",
        with_group(6, other(groups[6][0]) + groups[6][1:]): "group 7",
        with_group(turned, groups[turned][0] + groups[turned][2] + groups[turned][1] +
                   groups[turned][3]): f"group {turned + 1}",
        with_group(4, groups[4][:3]): "group 5",
        with_group(0, groups[0] + "a"): "group 1",
        with_group(1, "0" + groups[1][1:]): "group 2",
        "-".join(groups[:5] + ["2" + groups[5][1:]]): "6 groups",
        "too short": "9 characters",
    }


def test_a_slip_in_the_code_is_named_before_anybody_is_asked(onehop) -> None:
    with Desk(onehop) as desk:
        code = ""
        while not any(letter.isdigit() for letter in code):
            receiver = desk.recv("--long", environment={})
            code = made_code(receiver)
            receiver.close()
        host, port = desk.address.split(":")
        with socket.create_server((host, int(port))) as nobody:
            nobody.setblocking(False)
            texts = list(slips(code).items())
            for begin in range(0, len(texts), 3):
                sender = desk.typing()
                for tries, (typed, said) in enumerate(texts[begin:begin + 3], 1):
                    sender.read_until(lambda: sender.text.count("Code:") == tries, "it asks")
                    seen = len(sender.text)
                    sender.write(typed + "\n")
                    sender.read_until(lambda: said in sender.text[seen + len(typed):],
                                      f"of {typed} it says '{said}'")
                    check(typed in sender.text, "what is typed is shown")
                if len(texts[begin:begin + 3]) == 3:
                    check(sender.code() == 2, f"three tries: {sender.rows()}")
                sender.check_whole()
                sender.close()
            try:
                nobody.accept()
                raise AssertionError("somebody was asked")
            except BlockingIOError:
                pass


def test_a_code_is_taken_as_people_type_it(onehop) -> None:
    with Desk(onehop) as desk:
        receiver = desk.recv("--on-exist", "overwrite", "--long", environment={})
        code = made_code(receiver)
        for typed in (code, code.upper(), code.replace("-", " "), code.replace("-", ""),
                      f"  {code} "):
            sender = desk.typing()
            sender.write("a wrong\n")  # too short: it asks again
            sender.read_until(lambda: sender.text.count("Code:") == 2, "it asks again")
            sender.write(typed + "\n")
            check(sender.code() == 0, f"{typed}: {sender.rows()}")
        hidden = desk.typing("--hide")
        hidden.expect_echo(False, "--hide hides")
        hidden.write(code + "\n")
        check(hidden.code() == 0 and code not in hidden.text, f"{hidden.rows()}")


def test_words_are_taken_as_people_type_them(onehop) -> None:
    with Desk(onehop) as desk:
        receiver = desk.recv("--on-exist", "overwrite", environment={})
        code = made_code(receiver, WORDS)
        first, second, third = code.split("-")
        short = f"{first[:3]} {second[:3]} {third[:3]}"
        for typed in (code, code.upper(), code.replace("-", "."), f"  {first}  {second}-{third} ",
                      short, f"{first[:3]}\t{second[:3]}\t{third[:3]}\t",
                      f"{first[:3]}q\x7fx\x08\t{second}\x1b[D {third}",
                      f"nonsense\x15{code}"):
            sender = desk.typing()
            sender.write(typed + "\n")
            check(sender.code() == 0, f"{typed!r}: {sender.rows()}")
            sender.check_whole()
            if typed.endswith("\t"):
                check("Code: " + code in sender.text, f"TAB completes: {sender.text!r}")
        for how, given in (("ONEHOP_CODE", short), ("--code-file", short)):
            file = desk.text("code", given)
            options = ("--code-file", file) if how == "--code-file" else ()
            sender = desk.screen("send", desk.text("note", "a few words"), "--to", desk.address,
                                 "--io", "udp", *options,
                                 environment={"ONEHOP_CODE": given} if not options else None)
            check(sender.code() == 0, f"{how}: {sender.rows()}")
        hidden = desk.typing("--hide")
        hidden.expect_echo(False, "--hide hides")
        hidden.write(short + "\n")
        check(hidden.code() == 0 and short not in hidden.text, f"{hidden.rows()}")


def test_a_word_that_does_not_exist_is_named_and_costs_no_try(onehop) -> None:
    with Desk(onehop) as desk:
        receiver = desk.recv(environment={})
        code = made_code(receiver, WORDS)
        first, second, third = code.split("-")
        sender = desk.typing()
        for tries, (typed, said) in enumerate(
                ((f"{first} qqqzz {third}", "word 2 is not in the list of words: qqqzz"),
                 (f"{first[:2]} {second} {third}", "word 1 is not in the list"),
                 (f"{first}x {second} {third}", "word 1 is not in the list"),
                 (f"{first} {second} {third}xx", "word 3 is not in the list"),
                 (f"zz yy {third}", "word 1 is not in the list")), 2):
            sender.write(typed + "\n")
            sender.read_until(lambda: sender.text.count("Code:") == tries, "it asks again")
            check(said in " ".join(sender.text.split()), f"{said}: {sender.rows()}")
        sender.write(code + "\n")
        check(sender.code() == 0, f"{sender.rows()}")
        check("wrong" not in receiver.text, f"nobody was asked: {receiver.rows()}")
        for name, given in ("environment", {"ONEHOP_CODE": f"{first} qqqzz {third}"}), ("file", {}):
            options = () if given else ("--code-file",
                                        desk.text("code", f"{first} qqqzz {third}"))
            sender = desk.screen("send", desk.text("note", "x"), "--to", desk.address, *options,
                                 environment=given)
            check(sender.code() == 2 and "word 2" in sender.text and "qqqzz" not in sender.text,
                  f"{name}: {sender.rows()}")


def test_wrong_words_burn_the_right_ones_and_both_ends_say_so(onehop) -> None:
    with Desk(onehop) as desk:
        receiver = desk.recv("--once", environment={})
        code = made_code(receiver, WORDS)
        wrong = "abandon-abandon-abandon"
        note = desk.text("note", "a few words")

        def send(words) -> Screen:
            sender = desk.screen("send", note, "--to", desk.address, "--io", "udp",
                                 environment={"ONEHOP_CODE": words})
            sender.code()
            return sender

        for _ in range(3):
            check("do not have the same code" in " ".join(send(wrong).text.split()), "it is wrong")
        receiver.wait_text("somebody tried 3 wrong codes")
        receiver.read_until(lambda: len(re.findall(WORDS, "\n".join(receiver.rows()), re.M)) == 2,
                            "it shows new words")
        receiver.check_whole()
        said = " ".join(send(code).text.split())
        check("somebody has tried so many wrong ones" in said, f"the sender says so, too: {said}")
        new = re.findall(WORDS, "\n".join(receiver.rows()), re.M)[1]
        sender = desk.screen("send", note, "--to", desk.address, "--io", "udp",
                             environment={"ONEHOP_CODE": new})
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.rows()} {receiver.rows()}")


def test_a_code_of_full_length_is_printed_for_scripts(onehop) -> None:
    with Desk(onehop) as desk:
        codes = [subprocess.run([onehop, "code"], capture_output=True, text=True, timeout=60)
                 for _ in range(2)]
        check(all(done.returncode == 0 and re.fullmatch(LONG, done.stdout.strip())
                  for done in codes) and codes[0].stdout != codes[1].stdout, f"{codes}")
        given = {"ONEHOP_CODE": codes[0].stdout}
        receiver = desk.recv("--once", environment=given)
        sender = desk.screen("send", desk.text("note", "x"), "--to", desk.address, "--io", "udp",
                             environment={"ONEHOP_CODE": codes[0].stdout.upper()})
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.rows()} {receiver.rows()}")
        full = subprocess.run([onehop, "code"], stdout=open("/dev/full", "w"),
                              stderr=subprocess.PIPE, text=True, timeout=60)
        check(full.returncode == 8 and "write the code" in full.stderr, f"{full}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
