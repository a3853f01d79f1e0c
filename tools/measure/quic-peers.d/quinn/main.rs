// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//! What quinn costs per byte: one stream of static memory to a peer that counts and drops it. The draft of QUIC's
//! performance protocol (draft-banks-quic-performance) the other way round: the sender ends, the receiver answers with
//! the eight bytes of its count. Settings are those that were measured to serve quinn best; see tools/measure/quic-peers.
use std::{fs, net::SocketAddr, sync::Arc, time::{Duration, Instant}};

use anyhow::{bail, Context, Result};
use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{congestion, AckFrequencyConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, TransportConfig, VarInt};
use rustls::pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer};
use socket2::{Domain, Protocol, Socket, Type};

#[path = "../words.rs"]
mod words;
use words::{Best, Words};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

static DATA: [u8; 1 << 20] = [42; 1 << 20];
// Of windows of 1 to 32 MB, three congestion controllers, one or two threads, and acknowledgements as usual or one per 10 to 100
// frames (quinn's own program has --ack-frequency for that). This program has options for all of them, to look again.
const BEST: Best = Best { window: 8 << 20, ack_threshold: 40 };
const SOCKET_BYTES: usize = 4 << 20; // what net.core.rmem_max gives on most machines; quinn's own program asks for 2 MiB
const IP_UDP_BYTES: u16 = 28;

fn main() -> Result<()> {
    let words = Words::read("quinn", "0.11.12", BEST)?;
    words.runtime()?.block_on(async { if words.is_sending { send(&words).await } else { receive(&words).await } })
}

fn transport(words: &Words) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u64(words.window).unwrap_or(VarInt::MAX);
    transport.stream_receive_window(window).receive_window(window).send_window(words.window);
    let payload = words.mtu - IP_UDP_BYTES;
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(payload);
    transport.initial_mtu(payload).mtu_discovery_config(Some(discovery));
    if words.ack_threshold > 0 {
        let mut frequency = AckFrequencyConfig::default();
        frequency.ack_eliciting_threshold(VarInt::from_u32(words.ack_threshold));
        transport.ack_frequency_config(Some(frequency));
    }
    match words.congestion.as_str() {
        "bbr" => transport.congestion_controller_factory(Arc::new(congestion::BbrConfig::default())),
        "newreno" => transport.congestion_controller_factory(Arc::new(congestion::NewRenoConfig::default())),
        _ => transport.congestion_controller_factory(Arc::new(congestion::CubicConfig::default())),
    };
    Arc::new(transport)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites = vec![rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(provider)
}

fn endpoint(words: &Words, at: SocketAddr, server: Option<quinn::ServerConfig>) -> Result<Endpoint> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP)).context("make a socket")?;
    socket.set_send_buffer_size(SOCKET_BYTES).context("size the send buffer")?;
    socket.set_recv_buffer_size(SOCKET_BYTES).context("size the receive buffer")?;
    socket.bind(&at.into()).with_context(|| format!("bind {at}"))?;
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(words.mtu - IP_UDP_BYTES)?;
    Ok(Endpoint::new(config, server, socket.into(), Arc::new(quinn::TokioRuntime))?)
}

async fn receive(words: &Words) -> Result<()> {
    let certificate = CertificateDer::from_pem_slice(&fs::read(&words.certificate).context("read the certificate")?)?;
    let key = PrivateKeyDer::from_pem_slice(&fs::read(&words.key).context("read the key")?)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![b"perf".to_vec()];
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    server.transport_config(transport(words));
    let endpoint = endpoint(words, words.address, Some(server))?;
    let Some(incoming) = endpoint.accept().await else { bail!("nobody came") };
    let connection = incoming.await.context("hand-shake")?;
    let (mut answer, mut stream) = connection.accept_bi().await?;
    let mut pieces: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
    let mut bytes: u64 = 0;
    while let Some(count) = stream.read_chunks(&mut pieces).await? {
        bytes += pieces[..count].iter().map(|piece| piece.len() as u64).sum::<u64>();
    }
    answer.write_all(&bytes.to_be_bytes()).await?;
    answer.finish()?;
    connection.closed().await;
    Ok(())
}

async fn send(words: &Words) -> Result<()> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&fs::read(&words.certificate).context("read the certificate")?)?)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"perf".to_vec()];
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(words));
    let any: SocketAddr = if words.address.is_ipv4() { "0.0.0.0:0".parse()? } else { "[::]:0".parse()? };
    let endpoint = endpoint(words, any, None)?;
    let connection = endpoint.connect_with(config, words.address, "localhost")?.await.context("connect")?;
    let (mut stream, mut answer) = connection.open_bi().await?;
    let begin = Instant::now();
    let (until, mut left) = (begin + Duration::from_secs_f64(words.seconds), words.bytes);
    while left > 0 && (words.seconds == 0.0 || Instant::now() < until) {
        let now = left.min(DATA.len() as u64);
        stream.write_chunk(Bytes::from_static(&DATA[..now as usize])).await?;
        left -= now;
    }
    stream.finish()?;
    let mut count = [0; 8];
    answer.read_exact(&mut count).await?;
    words::say_result(u64::from_be_bytes(count), begin.elapsed());
    if words.is_verbose { eprintln!("{:?}", connection.stats()); }
    connection.close(0u32.into(), b"done");
    endpoint.wait_idle().await;
    Ok(())
}
