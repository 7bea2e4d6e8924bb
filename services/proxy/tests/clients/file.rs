//! Clients files, and requests with a key.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use crate::harness::{Client, Reply};

/// A clients file of a test. Dropped, it is gone.
pub(crate) struct ClientsFile(PathBuf);

impl ClientsFile {
    pub(crate) fn new(content: &Value) -> ClientsFile {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("clients-{}-{number}.json", std::process::id());
        let file = ClientsFile(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        file.write(&content.to_string());
        file
    }

    pub(crate) fn path(&self) -> String {
        self.0.display().to_string()
    }

    /// Puts other text in its place.
    pub(crate) fn write(&self, text: &str) {
        let beside = self.0.with_extension("new");
        fs::write(&beside, text).expect("a file");
        fs::rename(&beside, &self.0).expect("a file");
    }
}

impl Drop for ClientsFile {
    fn drop(&mut self) {
        // Left behind, it harms nobody.
        let _ = fs::remove_file(&self.0);
    }
}

/// `sha256:…` of a key, as somebody else computes it.
pub(crate) fn hashed(key: &str) -> String {
    let shell = format!("printf %s '{key}' | sha256sum");
    let output = Command::new("/bin/sh").args(["-c", &shell]).output().expect("sha256sum");
    let text = String::from_utf8(output.stdout).expect("text");
    format!("sha256:{}", text.split_whitespace().next().expect("a hash"))
}

/// An entry with this key.
pub(crate) fn client(id: &str, key: &str, fields: Value) -> Value {
    let mut entry = json!({"id": id, "keys": [hashed(key)]});
    if let Value::Object(fields) = fields {
        fields.into_iter().for_each(|(name, value)| entry[name] = value);
    }
    entry
}

/// Posts with headers of its own.
pub(crate) async fn post(client: &Client, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.send(request.body(Bytes::from(body.to_string())).expect("a request")).await.expect("an answer")
}

/// Posts with a key.
pub(crate) async fn post_as(client: &Client, key: &str, body: &Value) -> Reply {
    post(client, "/main", &[("x-api-key", key)], body).await
}
