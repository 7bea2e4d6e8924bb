//! Over TLS, as a user who may do just what the documentation lists.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use store::Target;

use crate::replica::{HOUR, Replica, now, target, until};
use crate::server::{Server, free_port};

/// What `docs/operations-valkey.md` says that a user needs.
const USER: [&str; 27] = [
    "--user",
    "proxy",
    "on",
    ">right",
    "~headgate:v1:*",
    "&headgate:v1:*",
    "-@all",
    "+eval",
    "+evalsha",
    "+subscribe",
    "+publish",
    "+ping",
    "+hello",
    "+auth",
    "+client",
    "+cluster",
    "+info",
    "+select",
    "+quit",
    "+get",
    "+set",
    "+del",
    "+hget",
    "+hset",
    "+hmget",
    "+hgetall",
    "+pexpire",
];
const MORE: [&str; 3] = ["+exists", "+hdel", "+time"];

/// A folder with an authority, and a certificate that it vouches for.
struct Files(PathBuf);

impl Files {
    fn new() -> Files {
        let dir = std::env::temp_dir().join(format!("headgate-tls-{}-{}", std::process::id(), free_port()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
        let leaf = leaf.signed_by(&key, &authority).expect("a certificate");
        for (name, text) in [("ca", authority.pem()), ("cert", leaf.pem()), ("key", key.serialize_pem())] {
            std::fs::write(dir.join(name), text).expect("a file");
        }
        Files(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // It lies where such things are cleared away anyhow.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn served_from(files: &Files) -> (Server, u16) {
    let tls = free_port();
    let (port, cert, key, ca) = (tls.to_string(), files.path("cert"), files.path("key"), files.path("ca"));
    let tls_args = [
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
    ];
    (Server::start(&[&tls_args[..], &USER, &MORE].concat()), tls)
}

fn over_tls(port: u16, ca: Option<String>, password: &str) -> Target {
    Target {
        tls: true,
        ca_file: ca.map(PathBuf::from),
        username: Some("proxy".to_owned()),
        password: Some(password.to_owned()),
        ..target(port, "headgate")
    }
}

/// Kills: a command that the documentation forgot, a user that is not sent, an authority of one's own that is not asked.
#[tokio::test]
async fn over_tls_with_an_own_authority_and_a_user_of_few_rights() {
    let files = Files::new();
    let (_server, port) = served_from(&files);
    let replica = Replica::at(&over_tls(port, Some(files.path("ca")), "right"));
    until("connected", || replica.is_up()).await;
    let account = replica.account(&[60]);
    let before = now() / HOUR;
    let spent = replica.spend(&account, 1000).await;
    assert!(spent == 60 || now() / HOUR > before, "{spent}");
    let valkey = replica.valkey.as_ref().expect("it shares");
    assert!(valkey.claim_checks().await);
    let other = Replica::at(&over_tls(port, Some(files.path("ca")), "right"));
    until("connected", || other.is_up()).await;
    assert!(!other.valkey.as_ref().expect("it shares").claim_checks().await);
    let errors: u64 = store::Op::ALL.iter().map(|op| valkey.counts(*op).1).sum();
    assert_eq!(errors, 0, "a command was refused");
}

/// Kills: certificates that nobody looks at, unless that is asked for.
#[tokio::test]
async fn a_stranger_is_trusted_only_where_that_is_asked_for() {
    let (files, others) = (Files::new(), Files::new());
    let (_server, port) = served_from(&files);
    let strict = Replica::at(&over_tls(port, Some(others.path("ca")), "right"));
    let wrong = Replica::at(&over_tls(port, Some(files.path("ca")), "wrong"));
    let unchecked = Target { unchecked: true, ..over_tls(port, None, "right") };
    let lax = Replica::at(&unchecked);
    until("connected", || lax.is_up()).await;
    assert!(!strict.is_up() && !wrong.is_up());
}
