//! `why`: asks the running proxy what happened to a request, and prints it for people.

use super::ask;
use config::{Env, Options};
use serde_json::Value;
use std::process::ExitCode;

pub(super) fn print(options: &Options, env: &Env, id: &str, url: Option<String>) -> ExitCode {
    let (settings, _) = config::load_settings(options, env);
    let url = url.unwrap_or_else(|| format!("http://127.0.0.1:{}", settings.metrics_port));
    let story = format!("{}/status/why/{id}", url.trim_end_matches('/'));
    let asked = ask::get(&story).and_then(|(status, body)| Ok((status, serde_json::from_slice(&body)?)));
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
