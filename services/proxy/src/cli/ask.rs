//! One GET to a running process, for the commands that look into one.

use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use std::time::Duration;

/// A proxy that is alive answers well within this.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const LONGEST: usize = 1 << 20;

/// Status and body of what is at `url`; `http://` may be left out.
pub(super) fn get(url: &str) -> anyhow::Result<(u16, Vec<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::time::timeout(PATIENCE, ask(url)).await? })
}

async fn ask(url: &str) -> anyhow::Result<(u16, Vec<u8>)> {
    let url: http::Uri = match url.contains("://") {
        true => url.parse()?,
        false => format!("http://{url}").parse()?,
    };
    let authority = url.authority().ok_or_else(|| anyhow::anyhow!("--url needs a host"))?;
    let host = (authority.host().trim_matches(['[', ']']), authority.port_u16().unwrap_or(80));
    let stream = tokio::net::TcpStream::connect(host).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let path = url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let request = http::Request::get(path).header(http::header::HOST, authority.as_str());
    let response = sender.send_request(request.body(Empty::<bytes::Bytes>::new())?).await?;
    let status = response.status().as_u16();
    let body =
        Limited::new(response.into_body(), LONGEST).collect().await.map_err(anyhow::Error::from_boxed)?;
    driver.abort();
    Ok((status, body.to_bytes().into()))
}
