//! `why`: asks the running proxy what happened to a request, and prints it for people.

use config::{Env, Options};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

/// A proxy that is alive answers well within this.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn print(options: &Options, env: &Env, id: &str, url: Option<String>) -> ExitCode {
    let (settings, _) = config::load_settings(options, env);
    let url = url.unwrap_or_else(|| format!("http://127.0.0.1:{}", settings.metrics_port));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asked = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            tokio::time::timeout(PATIENCE, ask(&url, id)).await.map_err(anyhow::Error::from)?
        })
    });
    match asked {
        Ok((200, story)) => {
            print!("{}", readable(&story));
            ExitCode::SUCCESS
        }
        Ok((_, refusal)) => {
            eprintln!("headgate-proxy why: {}", refusal["error"].as_str().unwrap_or("the proxy did not say"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!(
                "headgate-proxy why: asking {url}: {error:#} (is the proxy's metrics port there? see --url)"
            );
            ExitCode::FAILURE
        }
    }
}

async fn ask(url: &str, id: &str) -> anyhow::Result<(u16, Value)> {
    let url: http::Uri = format!("{}/status/why/{id}", url.trim_end_matches('/')).parse()?;
    let authority = url.authority().ok_or_else(|| anyhow::anyhow!("--url needs a host"))?;
    let host = (authority.host().trim_matches(['[', ']']), authority.port_u16().unwrap_or(80));
    let stream = tokio::net::TcpStream::connect(host).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let request = http::Request::get(url.path()).header(http::header::HOST, authority.as_str());
    let response = sender.send_request(request.body(Empty::<bytes::Bytes>::new())?).await?;
    let status = response.status().as_u16();
    let body =
        Limited::new(response.into_body(), 1 << 20).collect().await.map_err(anyhow::Error::from_boxed)?;
    driver.abort();
    Ok((status, serde_json::from_slice(&body.to_bytes())?))
}

/// A line for the request, a line for each step.
fn readable(story: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut out = format!(
        "{}  {}  {}  {} in {} ms{}\n",
        text(&story["request_id"]),
        text(&story["chain"]),
        text(&story["asked"]),
        text(&story["status"]),
        text(&story["took_ms"]),
        story["reason"].as_str().map(|reason| format!("  ({reason})")).unwrap_or_default(),
    );
    for step in story["steps"].as_array().into_iter().flatten() {
        let at = step["at_ms"].as_f64().unwrap_or(0.0);
        out += &format!("  {at:>9.3} ms  {}", text(&step["what"]));
        for key in ["endpoint", "status", "verdict", "rule", "why", "took_ms", "opens_unix_ms"] {
            if let Some(value) = step.get(key) {
                out += &format!("  {key}={}", text(value));
            }
        }
        out.push('\n');
    }
    out
}
