//! A provider that speaks HTTP/1.1 by hand: it answers, says nothing, or ends a connection in the middle of whatever a test
//! wants, and knows over which connection it was asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{GLANCE, soon};

/// One question as it came.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    /// Counted from 0.
    pub(crate) connection: usize,
    /// The connection has brought an answer before.
    pub(crate) kept: bool,
    /// Of a batch: of its first call.
    pub(crate) method: String,
}

/// What the provider does with a question.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    Answer,
    /// Answers once this method has come so often: so many connections are in use at once.
    AnswerTogether(usize),
    /// This, instead of what is right.
    Says(u16, Value),
    /// Answers, and closes the connection without having announced it.
    AnswerAndClose,
    /// Closes the connection in order, after so much of an answer.
    Close(&'static str),
    /// Resets the connection.
    Reset,
    Nothing,
}

/// Decides what is done with each question.
pub(crate) type Manner = Arc<dyn Fn(&Came) -> Does + Send + Sync>;

/// A running provider; serves until the test ends.
pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Raw {
    pub(crate) async fn start(manner: impl Fn(&Came) -> Does + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("an address");
        let (manner, came): (Manner, _) = (Arc::new(manner), Arc::default());
        let raw = Self { address, came: Arc::clone(&came) };
        tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((stream, _)) = listener.accept().await {
                // The proxy may end a connection at any time.
                tokio::spawn(serve(stream, connection, Arc::clone(&manner), Arc::clone(&came)));
                connection += 1;
            }
        });
        raw
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that came so far.
    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().expect("no panic").clone()
    }

    /// The connections over which this method came so far.
    pub(crate) fn connections(&self, method: &str) -> Vec<usize> {
        let came = self.came();
        came.into_iter().filter(|came| came.method == method).map(|came| came.connection).collect()
    }

    /// Waits until a method has come so often.
    pub(crate) async fn has(&self, method: &str, times: usize) {
        soon(async {
            while self.connections(method).len() < times {
                tokio::time::sleep(GLANCE).await;
            }
        })
        .await;
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    manner: Manner,
    came: Arc<Mutex<Vec<Came>>>,
) -> Option<()> {
    let mut kept = false;
    loop {
        let question = question(&mut stream).await?;
        let first = question.get(0).unwrap_or(&question);
        let method = first["method"].as_str().unwrap_or_default().to_owned();
        let one = Came { connection, kept, method };
        let does = manner(&one);
        came.lock().expect("no panic").push(one.clone());
        let (status, answer) = match does {
            Does::Answer | Does::AnswerAndClose => (200, right(&question)),
            Does::AnswerTogether(times) => {
                while came.lock().expect("no panic").iter().filter(|c| c.method == one.method).count() < times
                {
                    tokio::time::sleep(GLANCE).await;
                }
                (200, right(&question))
            }
            Does::Says(status, ref answer) => (status, answer.clone()),
            Does::Close(part) => return stream.write_all(part.as_bytes()).await.ok(),
            Does::Reset => {
                return socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).ok();
            }
            Does::Nothing => std::future::pending().await,
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}",
            answer.len()
        );
        stream.write_all(format!("{head}\r\n\r\n{answer}").as_bytes()).await.ok()?;
        if matches!(does, Does::AnswerAndClose) {
            return Some(());
        }
        kept = true;
    }
}

/// The next question; none when the other side has closed.
async fn question(stream: &mut TcpStream) -> Option<Value> {
    let mut text = Vec::new();
    loop {
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
        let Some(head) = text.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let lines = std::str::from_utf8(&text[..head]).expect("text").lines();
        let mut fields = lines.filter_map(|line| line.split_once(": "));
        let length =
            fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length")).expect("a length").1;
        if text.len() >= head + 4 + length.parse::<usize>().expect("a number") {
            return Some(serde_json::from_slice(&text[head + 4..]).expect("JSON"));
        }
    }
}

fn right(question: &Value) -> Value {
    if let Some(calls) = question.as_array() {
        return calls.iter().map(right).collect();
    }
    let result = match question["method"].as_str().unwrap_or_default() {
        "eth_blockNumber" => json!("0x10"),
        "eth_syncing" => json!(false),
        method => simulator::expected(method, &question["params"]),
    };
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}
