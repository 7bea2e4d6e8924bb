//! How a connection to an endpoint is made: name, TCP, TLS, and which HTTP it speaks.

use crate::hush::Hushed;
use crate::target::Target;
use crate::watched::{Heard, Watched};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::Service;

/// The most that is read at once: a large answer passes in pieces of this size, small ones are read into 8 KiB. A larger buffer
/// would stay alive as long as the smallest piece of it waits for a slow client.
const MOST_READ: usize = 64 * 1024;

/// A connection that is ready for its first request.
pub(crate) enum Established {
    Http1(http1::SendRequest<Full<Bytes>>, Heard),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Makes connections; cheap to clone, one set of trusted roots for the whole process.
#[derive(Clone)]
pub struct Connector {
    tcp: HttpConnector,
    /// Offers HTTP/2 and HTTP/1.1.
    http: TlsConnector,
    /// Offers HTTP/1.1 alone: WebSockets begin with it.
    http1: TlsConnector,
}

/// A connected stream.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection could not be made. The peer saw no request.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("connecting: {0}")]
    Tcp(String),
    #[error("TLS: {0}")]
    Tls(#[from] std::io::Error),
    #[error("not a name TLS can check")]
    Name,
    #[error("HTTP handshake: {0}")]
    Http(#[from] hyper::Error),
}

impl Default for Connector {
    fn default() -> Self {
        Self::new()
    }
}

impl Connector {
    /// Trusts the roots that ship with the program and those named by `SSL_CERT_FILE` or `SSL_CERT_DIR`.
    pub fn new() -> Connector {
        let mut tls = rustls::ClientConfig::builder().with_root_certificates(trusted()).with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let http1 = TlsConnector::from(Arc::new(tls.clone()));
        tls.alpn_protocols.insert(0, b"h2".to_vec());
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(30)));
        tcp.enforce_http(false);
        Connector { tcp, http: TlsConnector::from(Arc::new(tls)), http1 }
    }

    /// Connects; the caller sets the time limit. The connection is driven by a task of the current worker.
    pub(crate) async fn establish(&self, target: &Target) -> Result<Established, ConnectError> {
        match self.dial(target, &self.http).await? {
            Stream::Plain(stream) => http1_over(stream).await,
            Stream::Tls(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                http2_over(TokioIo::new(stream)).await
            }
            Stream::Tls(stream) => http1_over(stream).await,
        }
    }

    /// Connects for a WebSocket's handshake.
    pub async fn dial_http1(&self, target: &Target) -> Result<Stream, ConnectError> {
        self.dial(target, &self.http1).await
    }

    async fn dial(&self, target: &Target, tls: &TlsConnector) -> Result<Stream, ConnectError> {
        let stream = self.tcp.clone().call(target.place()).await.map_err(|e| ConnectError::Tcp(chain(&e)))?;
        let stream = stream.into_inner();
        if !target.tls {
            return Ok(Stream::Plain(stream));
        }
        let name = ServerName::try_from(target.host.to_string()).map_err(|_| ConnectError::Name)?;
        Ok(Stream::Tls(Box::new(tls.connect(name, stream).await?)))
    }
}

/// The roots that ship with the program and those that the environment names.
fn trusted() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if std::env::var_os("SSL_CERT_FILE").is_some() || std::env::var_os("SSL_CERT_DIR").is_some() {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "reading certificates named by SSL_CERT_FILE or SSL_CERT_DIR");
        }
        roots.add_parsable_certificates(found.certs);
    }
    roots
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

async fn http1_over<S>(stream: S) -> Result<Established, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let heard = Heard::default();
    let stream = TokioIo::new(Watched::new(stream, heard.clone()));
    let (sender, mut connection) = http1::Builder::new().max_buf_size(MOST_READ).handshake(stream).await?;
    tokio::task::spawn_local(async move {
        let hushed = Hushed::default();
        if let Err(error) = poll_fn(|cx| hushed.poll(Pin::new(&mut connection), cx)).await {
            tracing::debug!(%error, "upstream connection ended");
        }
    });
    Ok(Established::Http1(sender, heard))
}

async fn http2_over<S>(stream: S) -> Result<Established, ConnectError>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let (sender, connection) = http2::Builder::new(crate::local::LocalExecutor)
        .timer(hyper_util::rt::TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .handshake(stream)
        .await?;
    tokio::task::spawn_local(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "upstream connection ended");
        }
    });
    Ok(Established::Http2(sender))
}
