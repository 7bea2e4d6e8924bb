//! One client's connection: the handshake, then texts in and out. Pings are answered.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use bytes::{Buf, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::frames::{CLOSE, PING, PONG, TEXT, first, masked};

pub(crate) struct Client {
    stream: TcpStream,
    read: BytesMut,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, read: BytesMut::with_capacity(2048) })
    }

    /// A WebSocket at `path`.
    pub(crate) async fn open(address: SocketAddr, path: &str) -> anyhow::Result<Client> {
        let mut client = Self::connect(address).await?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        client.stream.write_all(request.as_bytes()).await.context("sending the handshake")?;
        let end = client.head().await?;
        let head = client.read.split_to(end);
        ensure!(head.starts_with(b"HTTP/1.1 101"), "refused: {}", String::from_utf8_lossy(&head));
        Ok(client)
    }

    pub(crate) async fn send(&mut self, text: &str) -> anyhow::Result<()> {
        self.stream.write_all(&masked(TEXT, text.as_bytes())).await.context("sending")
    }

    /// Hands the next text to `see`.
    pub(crate) async fn hear<T>(&mut self, see: impl FnOnce(&[u8]) -> T) -> anyhow::Result<T> {
        loop {
            let Some((kind, start, end)) = first(&self.read)? else {
                self.more().await?;
                continue;
            };
            match kind {
                TEXT => {
                    let seen = see(&self.read[start..end]);
                    self.read.advance(end);
                    return Ok(seen);
                }
                PING => {
                    let pong = masked(PONG, &self.read[start..end]);
                    self.stream.write_all(&pong).await?;
                    self.read.advance(end);
                }
                CLOSE => bail!("closed: {}", String::from_utf8_lossy(&self.read[(start + 2).min(end)..end])),
                kind => bail!("a frame of kind {kind}"),
            }
        }
    }

    /// A POST on this connection; its answer's body goes to `see`.
    pub(crate) async fn post<T>(&mut self, request: &str, see: impl FnOnce(&[u8]) -> T) -> anyhow::Result<T> {
        self.stream.write_all(request.as_bytes()).await.context("sending")?;
        let start = self.head().await?;
        let head = &self.read[..start];
        ensure!(head.starts_with(b"HTTP/1.1 200"), "refused: {}", String::from_utf8_lossy(head));
        let end = start + content_length(head).context("an answer that does not tell its length")?;
        while self.read.len() < end {
            self.more().await?;
        }
        let seen = see(&self.read[start..end]);
        self.read.advance(end);
        Ok(seen)
    }

    /// Reads until a head is complete; where it ends.
    async fn head(&mut self) -> anyhow::Result<usize> {
        loop {
            if let Some(end) = memmem::find(&self.read, b"\r\n\r\n") {
                return Ok(end + 4);
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        self.read.reserve(1024);
        ensure!(self.stream.read_buf(&mut self.read).await.context("reading")? > 0, "the connection ended");
        Ok(())
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, length) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    length.trim().parse().ok()
}
