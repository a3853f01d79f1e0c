// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//! The command line and the output that the peers' programs share.
use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{bail, Context, Result};

const USAGE: &str = "send|recv ADDR:PORT --folder DIR (with cert.pem and key.pem)
  send: --seconds S or --bytes N
  --mtu N (1500)  --window BYTES  --congestion cubic|bbr  --threads N (1)  --ack-threshold N (quinn)  --verbose";

pub struct Best {
    pub window: u64,
    pub ack_threshold: u32,
}

pub struct Words {
    pub is_sending: bool,
    pub address: SocketAddr,
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub seconds: f64, // 0: by bytes
    pub bytes: u64,
    pub mtu: u16,
    pub window: u64,
    pub congestion: String,
    pub threads: usize,
    pub ack_threshold: u32, // frames per acknowledgement that the receiver is asked for; 0: it is not asked
    pub is_verbose: bool,
}

impl Words {
    /// `best` has what serves the library best, where nothing else is said.
    pub fn read(library: &str, version: &str, best: Best) -> Result<Self> {
        let mut words = std::env::args().skip(1);
        let verb = words.next().unwrap_or_default();
        if verb == "--version" {
            println!("{library} {version}");
            std::process::exit(0);
        }
        if verb != "send" && verb != "recv" { bail!("usage: {USAGE}") }
        let address = words.next().context(USAGE)?.parse().context("read the address")?;
        let mut read = Self {
            is_sending: verb == "send", address, certificate: PathBuf::new(), key: PathBuf::new(), seconds: 0.0, bytes: u64::MAX,
            mtu: 1500, window: best.window, congestion: "cubic".into(), threads: 1, ack_threshold: best.ack_threshold, is_verbose: false,
        };
        while let Some(word) = words.next() {
            if word == "--verbose" {
                read.is_verbose = true;
                continue;
            }
            let value = words.next().with_context(|| format!("{word} has no value\nusage: {USAGE}"))?;
            match word.as_str() {
                "--folder" => (read.certificate, read.key) = (PathBuf::from(&value).join("cert.pem"), PathBuf::from(&value).join("key.pem")),
                "--seconds" => read.seconds = value.parse()?,
                "--bytes" => read.bytes = value.parse()?,
                "--mtu" => read.mtu = value.parse()?,
                "--window" => read.window = value.parse()?,
                "--congestion" => read.congestion = value,
                "--threads" => read.threads = value.parse()?,
                "--ack-threshold" => read.ack_threshold = value.parse()?,
                _ => bail!("there is no {word}\nusage: {USAGE}"),
            }
        }
        if read.is_sending && read.seconds == 0.0 && read.bytes == u64::MAX { bail!("--seconds or --bytes is missing\nusage: {USAGE}") }
        Ok(read)
    }

    pub fn runtime(&self) -> Result<tokio::runtime::Runtime> {
        let mut builder = if self.threads == 1 { tokio::runtime::Builder::new_current_thread() } else { tokio::runtime::Builder::new_multi_thread() };
        if self.threads > 1 { builder.worker_threads(self.threads); }
        Ok(builder.enable_all().build()?)
    }
}

/// One line: what arrived, as the receiver counted it, from the first byte written to its answer.
pub fn say_result(bytes: u64, took: Duration) {
    println!("{{\"bytes\": {bytes}, \"seconds\": {:.6}}}", took.as_secs_f64());
}
