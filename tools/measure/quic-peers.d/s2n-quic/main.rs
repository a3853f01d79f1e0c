// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//! What s2n-quic costs per byte: one stream of static memory to a peer that counts and drops it. The draft of QUIC's
//! performance protocol (draft-banks-quic-performance) the other way round: the sender ends, the receiver answers with
//! the eight bytes of its count. Settings are those that were measured to serve s2n-quic best; see tools/measure/quic-peers.
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::provider::{congestion_controller, io, limits::Limits, tls::s2n_tls};
use s2n_quic::{Client, Server};

#[path = "../words.rs"]
mod words;
use words::{Best, Words};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

static DATA: [u8; 1 << 20] = [42; 1 << 20];
// Of windows of 1 to 32 MB, both congestion controllers and one or two threads. This program has options for all of them, to look again.
const BEST: Best = Best { window: 4 << 20, ack_threshold: 0 };
const SOCKET_BYTES: usize = 4 << 20; // what net.core.rmem_max gives on most machines

fn main() -> Result<()> {
    let words = Words::read("s2n-quic", "1.91.0", BEST)?;
    if words.ack_threshold > 0 { bail!("s2n-quic has no --ack-threshold") }
    words.runtime()?.block_on(async { if words.is_sending { send(&words).await } else { receive(&words).await } })
}

fn limits(words: &Words) -> Result<Limits> {
    Ok(Limits::new()
        .with_data_window(words.window)?
        .with_bidirectional_local_data_window(words.window)?
        .with_bidirectional_remote_data_window(words.window)?
        .with_max_send_buffer_size(words.window as u32)?)
}

fn socket(words: &Words, at: std::net::SocketAddr) -> Result<io::Default> {
    Ok(io::Default::builder()
        .with_receive_address(at)?
        .with_send_buffer_size(SOCKET_BYTES)?
        .with_recv_buffer_size(SOCKET_BYTES)?
        .with_max_mtu(words.mtu)?
        .with_initial_mtu(words.mtu)?
        .build()?)
}

async fn receive(words: &Words) -> Result<()> {
    let tls = s2n_tls::Server::builder()
        .with_certificate(words.certificate.as_path(), words.key.as_path())?
        .with_application_protocols(["perf"].iter())?
        .build()?;
    let builder = Server::builder().with_io(socket(words, words.address)?)?.with_tls(tls)?.with_limits(limits(words)?)?;
    let mut server = match words.congestion.as_str() {
        "bbr" => builder.with_congestion_controller(congestion_controller::Bbr::default())?.start()?,
        _ => builder.start()?,
    };
    let Some(mut connection) = server.accept().await else { bail!("nobody came") };
    let Some(stream) = connection.accept_bidirectional_stream().await? else { bail!("no stream came") };
    let (mut stream, mut answer) = stream.split();
    let mut pieces = vec![Bytes::new(); 64];
    let mut bytes: u64 = 0;
    loop {
        let (count, is_open) = stream.receive_vectored(&mut pieces).await?;
        for piece in pieces[..count].iter_mut() { bytes += std::mem::take(piece).len() as u64; }
        if !is_open { break }
    }
    answer.send(Bytes::copy_from_slice(&bytes.to_be_bytes())).await?;
    let _ = answer.close().await; // the peer may have closed by now: it has what it wanted
    let _ = connection.accept_bidirectional_stream().await; // the peer closes
    Ok(())
}

async fn send(words: &Words) -> Result<()> {
    let tls = s2n_tls::Client::builder()
        .with_certificate(words.certificate.as_path())?
        .with_application_protocols(["perf"].iter())?
        .build()?;
    let any = if words.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse()?;
    let builder = Client::builder().with_io(socket(words, any)?)?.with_tls(tls)?.with_limits(limits(words)?)?;
    let mut client = match words.congestion.as_str() {
        "bbr" => builder.with_congestion_controller(congestion_controller::Bbr::default())?.start()?,
        _ => builder.start()?,
    };
    let mut connection = client.connect(Connect::new(words.address).with_server_name("localhost")).await.context("connect")?;
    let (mut answer, mut stream) = connection.open_bidirectional_stream().await?.split();
    let begin = Instant::now();
    let (until, mut left) = (begin + Duration::from_secs_f64(words.seconds), words.bytes);
    while left > 0 && (words.seconds == 0.0 || Instant::now() < until) {
        let now = left.min(DATA.len() as u64);
        stream.send(Bytes::from_static(&DATA[..now as usize])).await?;
        left -= now;
    }
    stream.finish()?;
    let mut count = Vec::new();
    while let Some(piece) = answer.receive().await? { count.extend_from_slice(&piece); }
    words::say_result(u64::from_be_bytes(count.as_slice().try_into().context("read the answer")?), begin.elapsed());
    connection.close(0u32.into());
    client.wait_idle().await?; // until the peer has been told
    Ok(())
}
