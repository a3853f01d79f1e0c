# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The programs onehop is compared with: iperf3, rsync daemon, curl from nginx (plain and over TLS),
scp. Each moves the same bytes from a to b.

Each function starts its server in the lab, moves the bytes, ends the server by pid and returns an
Outcome. Servers are measured as whole processes: their start and their children's time are in the
figure, as onehop's are.
"""

import json
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from collections.abc import Iterator
from typing import Any

import lab as labs
from measure import MeasureError, Process, SystemMeter
from transfer import Outcome

SECONDS_MAX = 600
RSYNC_PORT, NGINX_PORT, SSH_PORT = 8730, 8080, 2222


def _outcome(size, seconds, client, server, meter, wall) -> Any:
    return Outcome(size, seconds, 8 * size / seconds, client.cpu_seconds + server.cpu_seconds,
                   meter[0], meter[1], wall)


@contextmanager
def serving(process, lab, host, port) -> Iterator[Any]:
    """serving waits until the port listens (ss asks the kernel, so no connection is made that a -1
    server would count)."""
    try:
        give_up_at = time.monotonic() + 10
        while f":{port} " not in lab.read(host, "ss", "-Hltn"):
            if not process.is_alive or time.monotonic() > give_up_at:
                raise MeasureError(f"{process.label}: does not listen on {port}: {process.tail()}")
            time.sleep(0.05)
        yield process
    finally:
        process.end()


def iperf3(lab, size, work) -> Any:
    """iperf3 sends `size` bytes from memory to memory over one TCP connection; seconds are the
    receiver's."""
    with serving(Process(lab.on("b", "iperf3", "-s", "-1"), work, "iperf3-server"), lab, "b",
                 5201) as server:
        meter, at = SystemMeter(), time.monotonic()
        client = Process(
            lab.on("a", "iperf3", "-c", labs.ADDRESS_B, "-n", size, "-J", "-C", labs.IPERF3_LAW),
            work, "iperf3-client")
        client.wait(SECONDS_MAX)
        server.wait(10)
        wall, used = time.monotonic() - at, (meter.softirq_seconds(), meter.busy_seconds())
    end = json.loads(client.output.read_text())["end"]["sum_received"]
    return _outcome(end["bytes"], end["seconds"], client, server, used, wall)


def _client(command, server, target, file, work, label) -> Any:
    """_client runs a file-moving client to its end, lets the server reap its children, and checks
    what arrived."""
    meter = SystemMeter()
    client = Process(command, work, label)
    client.wait(SECONDS_MAX)
    seconds = client.ended_at - client.started_at
    # the server's child ends after the client; its time counts once its parent has waited for it
    time.sleep(0.2)
    used = (meter.softirq_seconds(), meter.busy_seconds())
    server.end()
    size = Path(file).stat().st_size
    if Path(target).stat().st_size != size:
        raise MeasureError(f"{label}: {Path(target).stat().st_size} of {size} bytes arrived")
    os.unlink(target)
    return _outcome(size, seconds, client, server, used, seconds)


@contextmanager
def rsync_daemon(lab, folder, work) -> Iterator[Any]:
    """rsync_daemon serves `folder` on b for writing."""
    config = Path(work) / "rsyncd.conf"
    config.write_text(
        f"use chroot = no\nuid = root\ngid = root\nlog file = {work}/rsyncd.log\npid file = "
        f"{work}/rsyncd.pid\n"
        f"lock file = {work}/rsyncd.lock\n[in]\npath = {folder}\nread only = no\n")
    Path(f"{work}/rsyncd.pid").unlink(missing_ok=True)
    command = lab.on("b", "rsync", "--daemon", "--no-detach", f"--port={RSYNC_PORT}",
                     f"--config={config}")
    with serving(Process(command, work, "rsync-daemon"), lab, "b", RSYNC_PORT) as server:
        yield server


def rsync_url() -> str:
    return f"rsync://{labs.ADDRESS_B}:{RSYNC_PORT}/in/"


def rsync(lab, file, folder, work) -> Any:
    with rsync_daemon(lab, folder, work) as server:
        return _client(lab.on("a", "rsync", file, rsync_url()), server,
                       Path(folder) / Path(file).name, file, work, "rsync")


def _certificate(work) -> tuple[Any, str]:
    """_certificate makes a key and a certificate of their own once; returns the nginx lines that
    use them."""
    key, certificate = Path(work) / "tls.key", Path(work) / "tls.crt"
    if not certificate.exists():
        subprocess.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-keyout", key, "-out", certificate, "-subj",
            f"/CN={labs.ADDRESS_A}", "-addext", f"subjectAltName=IP:{labs.ADDRESS_A}"
        ], check=True, capture_output=True)
    return certificate, (f"ssl_certificate {certificate};\nssl_certificate_key "
                         f"{key};\nssl_protocols TLSv1.3;\n")


def curl(lab, file, folder, work, has_tls=False) -> Any:
    """curl fetches from nginx: plain, by sendfile; or over TLS 1.3 with AES-128-GCM, as onehop
    seals, by the user space of both."""
    for sub in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
        (Path(work) / "nginx" / sub).mkdir(parents=True, exist_ok=True)
    config, label = Path(work) / "nginx" / "nginx.conf", "curl-tls" if has_tls else "curl"
    temporary = "".join(f"{kind}_temp_path {work}/nginx/{sub};\n"
                        for kind, sub in (("client_body", "body"), ("proxy", "proxy"),
                                          ("fastcgi", "fastcgi"), ("uwsgi", "uwsgi"), ("scgi",
                                                                                       "scgi")))
    certificate, tls = _certificate(work) if has_tls else (None, "")
    # One process, so that its rusage is the server's; sendfile is what makes nginx the cheapest
    # file server here.
    config.write_text(
        f"daemon off;\nmaster_process off;\nuser root;\npid {work}/nginx/pid;\nerror_log "
        f"{work}/nginx/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\nsendfile on;\ntcp_nopush on;\n{temporary}{tls}"
        f"server {{ listen {NGINX_PORT}{' ssl' if has_tls else ''}; "
        f"root {Path(file).parent}; }}\n}}\n"
    )
    command = lab.on("a", "nginx", "-p", f"{work}/nginx", "-c", config)
    with serving(Process(command, work, "nginx"), lab, "a", NGINX_PORT) as server:
        target = Path(folder) / Path(file).name
        url = f"http{'s' if has_tls else ''}://{labs.ADDRESS_A}:{NGINX_PORT}/{Path(file).name}"
        trust = ("--cacert", certificate, "--tls13-ciphers",
                 "TLS_AES_128_GCM_SHA256") if has_tls else ()
        return _client(lab.on("b", "curl", "-sS", "--fail", *trust, "-o", target, url), server,
                       target, file, work, label)


def _ssh_files(work) -> Any:
    folder = Path(work) / "ssh"
    if not folder.exists():
        folder.mkdir(mode=0o700)
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                 str(folder / name)], check=True)
        (folder / "authorized_keys").write_bytes((folder / "user.pub").read_bytes())
        (folder / "sshd_config").write_text(
            f"Port {SSH_PORT}\nListenAddress {labs.ADDRESS_B}\nHostKey {folder}/host\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\n"
            "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n"
            "PidFile none\nUseDNS no\n"
            "Subsystem sftp internal-sftp\n")
    # sshd refuses to start without its privilege separation folder
    Path("/run/sshd").mkdir(exist_ok=True)
    return folder


@contextmanager
def ssh_server(lab, work) -> Iterator[Any]:
    command = lab.on("b", "/usr/sbin/sshd", "-D", "-e", "-f", _ssh_files(work) / "sshd_config")
    with serving(Process(command, work, "sshd"), lab, "b", SSH_PORT) as server:
        yield server


def scp_command(lab, work, source, folder, *options) -> list[Any]:
    return lab.on("a", "scp", "-q", *options, "-F", "none", "-c", "aes128-gcm@openssh.com", "-P",
                  SSH_PORT, "-i", _ssh_files(work) / "user", "-o", "IdentitiesOnly=yes", "-o",
                  "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o",
                  "LogLevel=ERROR", source, f"root@{labs.ADDRESS_B}:{folder}/")


def scp(lab, file, folder, work) -> Any:
    with ssh_server(lab, work) as server:
        return _client(scp_command(lab, work, file, folder), server,
                       Path(folder) / Path(file).name, file, work, "scp")
