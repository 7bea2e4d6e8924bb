//! Providers over TLS: HTTP/2 where they offer it, HTTP/1.1 where they do not, and nobody who cannot be trusted.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::join_all;
use http::Version;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use simulator::{Chain, Provider, Script};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, watch};
use tokio_rustls::TlsAcceptor;

use crate::harness::{Client, GLANCE, Proxy, call, entry, right, soon};
use crate::upstream::{Asked, serve};

/// How many calls are held until all of them are there.
const TOGETHER: usize = 20;

/// An authority's certificate in a file, and a server that it vouches for. The file goes with it.
struct Authority {
    file: PathBuf,
    acceptor: TlsAcceptor,
}

impl Authority {
    fn new(name: &str, protocol: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
        let leaf = leaf.signed_by(&key, &authority).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .expect("a configuration");
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let file =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ca-{name}-{}.pem", std::process::id()));
        fs::write(&file, authority.pem()).expect("a file");
        Self { file, acceptor: Arc::new(config).into() }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        // It is in a folder for such things.
        let _ = fs::remove_file(&self.file);
    }
}

/// Over which connections, in which HTTP, clients' calls came.
type Ways = Arc<Mutex<BTreeSet<(usize, String)>>>;

/// Starts a TLS server that holds calls of `eth_call` until so many are there, and a proxy with one worker that
/// trusts its authority.
async fn behind_tls(name: &str, protocol: &str, together: usize) -> (Proxy, Ways) {
    let authority = Authority::new(name, protocol);
    let (ways, barrier) = (Ways::default(), Arc::new(Barrier::new(together)));
    let noted = Arc::clone(&ways);
    let before = move |asked: Asked| {
        let (noted, barrier) = (Arc::clone(&noted), Arc::clone(&barrier));
        async move {
            if asked.question["method"] == "eth_call" {
                let version = format!("{:?}", asked.version);
                noted.lock().expect("no panic").insert((asked.connection, version));
                barrier.wait().await;
            }
        }
        .boxed()
    };
    let address = serve(Some(authority.acceptor.clone()), Arc::new(before)).await;
    let endpoint = json!({"provider": "x", "role": "primary", "http_url": format!("https://{address}/")});
    let trusted = authority.file.display().to_string();
    let env = [("SSL_CERT_FILE", trusted.as_str()), ("HEALTH_CHECK_INTERVAL", "0"), ("WORKER_THREADS", "1")];
    let proxy = Proxy::before(&json!({"main": {"a": endpoint}}), &env).await;
    let client = Client::new(proxy.address);
    soon(async {
        while client.get("/ready").await.status != 200 {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    // The connection there is from now on.
    let warm = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
    assert_eq!(
        client.post(warm.to_string()).await.json()["result"],
        simulator::expected("eth_chainId", &json!([]))
    );
    (proxy, ways)
}

async fn ask_together(proxy: &Proxy, calls: usize) {
    let client = Client::new(proxy.address);
    let ask = async |id: u64| client.post(call(id).to_string()).await.json();
    let answers: Vec<Value> = join_all((0..calls as u64).map(ask)).await;
    let expected: Vec<Value> = (0..calls as u64).map(right).collect();
    assert_eq!(answers, expected);
}

/// Kills: HTTP/2 that is not offered, or a connection per call in spite of it: none of these calls is answered
/// before all of them have come.
#[tokio::test]
async fn many_calls_share_one_http2_connection() {
    let (proxy, ways) = behind_tls("h2", "h2", TOGETHER).await;
    ask_together(&proxy, TOGETHER).await;
    let ways = ways.lock().expect("no panic").clone();
    let versions: Vec<&str> = ways.iter().map(|(_, version)| version.as_str()).collect();
    assert_eq!(versions, [format!("{:?}", Version::HTTP_2)], "{ways:?}");
}

/// Kills: HTTP/2 spoken to who did not agree to it, and connections over TLS that are not kept.
#[tokio::test]
async fn http1_is_spoken_where_http2_is_not() {
    let (proxy, ways) = behind_tls("h1", "http/1.1", 1).await;
    for _ in 0..10 {
        ask_together(&proxy, 1).await;
    }
    let ways = ways.lock().expect("no panic").clone();
    let versions: Vec<&str> = ways.iter().map(|(_, version)| version.as_str()).collect();
    assert_eq!(versions, [format!("{:?}", Version::HTTP_11)], "{ways:?}");
}

/// Kills: a certificate that is not checked.
#[tokio::test]
async fn nobody_is_trusted_without_an_authority() {
    let authority = Authority::new("unknown", "h2");
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    let before = move |_: Asked| {
        *counted.lock().expect("no panic") += 1;
        async {}.boxed()
    };
    let address = serve(Some(authority.acceptor.clone()), Arc::new(before)).await;
    let other = Provider::start(Script::new(&Chain::new(1337))).await.expect("a provider starts");
    let strange = json!({"provider": "x", "role": "primary", "http_url": format!("https://{address}/")});
    let file = json!({"main": {"a": strange, "b": entry(&other, &json!({"role": "fallback"}))}});
    let proxy = Proxy::before(&file, &[("HEALTH_CHECK_INTERVAL", "1")]).await;
    Client::new(proxy.address).volley(0..50).await;
    assert!(other.count("eth_call") > 0);
    assert_eq!(*asked.lock().expect("no panic"), 0, "a stranger was asked");
}

/// A way to `address` that holds whoever comes while it is closed; returns its own address, how many came, and what opens
/// and closes it.
async fn barred(address: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>, watch::Sender<bool>) {
    let (listener, came) =
        (TcpListener::bind("127.0.0.1:0").await.expect("a port"), Arc::new(AtomicUsize::new(0)));
    let (open, opened) = watch::channel(true);
    let (own, count) = (listener.local_addr().expect("bound"), Arc::clone(&came));
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            count.fetch_add(1, Relaxed);
            let mut opened = opened.clone();
            tokio::spawn(async move {
                opened.wait_for(|opened| *opened).await.expect("the test goes on");
                let mut to = TcpStream::connect(address).await.expect("connects");
                // Either side may end it.
                let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
            });
        }
    });
    (own, came, open)
}

const WINDOW_SECONDS: u64 = 2;

fn window() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    since.as_secs() / WINDOW_SECONDS
}

async fn next_window() {
    let running = window();
    until(async || window() != running).await;
}

async fn until(happened: impl AsyncFn() -> bool) {
    soon(async {
        while !happened().await {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
}

/// Kills: a token spent before there is a connection: by the time it is sent its window may be over, and the provider sees
/// one more in the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_counts_in_the_window_in_which_it_is_sent() {
    let (authority, windows) = (Authority::new("late", "http/1.1"), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&windows);
    let before = move |asked: Asked| {
        if asked.question["method"] == "eth_call" {
            seen.lock().expect("no panic").push(window());
        }
        std::future::ready(()).boxed()
    };
    let (address, came, open) = barred(serve(Some(authority.acceptor.clone()), Arc::new(before)).await).await;
    let capacity = json!({"max_requests": 1, "window_seconds": WINDOW_SECONDS});
    let endpoint = json!({"provider": "x", "role": "primary", "http_url": format!("https://{address}/"), "capacity": capacity});
    let trusted = authority.file.display().to_string();
    let env = [
        ("SSL_CERT_FILE", trusted.as_str()),
        ("HEALTH_CHECK_INTERVAL", "0"),
        ("WORKER_THREADS", "1"),
        ("SATURATION_WAIT_MS", "20000"),
    ];
    let proxy = Proxy::before(&json!({"main": {"a": endpoint}}), &env).await;
    let client = Client::new(proxy.address);
    until(async || client.get("/ready").await.status == 200).await;
    // The first probes are through, and took their tokens; the worker has no connection yet.
    next_window().await;
    open.send_replace(false);
    let before = came.load(Relaxed);
    let turned = async {
        until(async || came.load(Relaxed) > before).await;
        next_window().await;
        open.send_replace(true);
    };
    let (answer, ()) = soon(async { tokio::join!(client.post(call(1).to_string()), turned) }).await;
    assert_eq!(answer.json(), right(1));
    assert_eq!(client.post(call(2).to_string()).await.json(), right(2));
    let windows = windows.lock().expect("no panic").clone();
    assert!(windows.len() == 2 && windows[0] != windows[1], "two in one window of one: {windows:?}");
}
