//! Where Valkey is and how it is spoken to: from settings to a client's configuration. Connects to nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fred::prelude::{Builder, Config, ReconnectPolicy, ServerConfig};
use fred::types::RespVersion;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// A connection attempt, and each of its steps, takes no longer.
const CONNECT: Duration = Duration::from_secs(1);

/// The settings of the connection. `Debug` would show secrets, and is not there.
pub struct Target {
    /// `redis://` or `valkey://`, with `s` for TLS, with `-sentinel` or `-cluster`. Rules over host and port.
    pub url: Option<String>,
    pub host: String,
    pub port: u16,
    pub username: Option<String>,
    pub password: Option<String>,
    pub tls: bool,
    /// The server's certificate is not checked.
    pub unchecked: bool,
    /// Certificate authorities, PEM; the system's if there is none.
    pub ca_file: Option<PathBuf>,
    /// What every key begins with.
    pub prefix: String,
    /// The longest that a command takes that somebody may wait for.
    pub timeout: Duration,
    /// Proxies to reckon with if the store is lost before it told their number.
    pub replicas_assumed: u32,
    /// What checkers found is read as a whole this often, in case something was not heard.
    pub poll: Duration,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {why}")]
pub struct BadSetting {
    /// The setting's variable.
    pub setting: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl Target {
    /// The client's configuration. Connections that broke are not mended by the client: it is thrown away.
    pub(crate) fn builder(&self) -> Result<Builder, BadSetting> {
        let mut config = self.config()?;
        config.version = RespVersion::RESP3;
        config.fail_fast = true;
        if self.tls || config.tls.is_some() {
            config.tls = Some(self.tls_config()?.into());
        }
        let mut builder = Builder::from_config(config);
        builder.set_policy(ReconnectPolicy::new_constant(1, 50)).with_connection_config(|connection| {
            connection.connection_timeout = CONNECT;
            connection.internal_command_timeout = CONNECT;
            connection.max_command_attempts = 1;
            connection.max_command_buffer_len = 10_000;
        });
        Ok(builder)
    }

    /// Where it is, for the log: no user, no password.
    pub(crate) fn place(&self) -> String {
        let url = self.url.as_ref().and_then(|url| url::Url::parse(url).ok());
        match url {
            Some(url) => {
                let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
                format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
            }
            None => format!("{}:{}", self.host, self.port),
        }
    }

    fn config(&self) -> Result<Config, BadSetting> {
        let mut config = match &self.url {
            Some(url) => {
                let refuse = |why: fred::error::Error| BadSetting {
                    setting: "VALKEY_URL",
                    why: why.details().to_owned(),
                };
                Config::from_url(&url.replacen("valkey", "redis", 1)).map_err(refuse)?
            }
            None => Config {
                server: ServerConfig::new_centralized(self.host.as_str(), self.port),
                ..Config::default()
            },
        };
        config.username = config.username.or_else(|| self.username.clone());
        config.password = config.password.or_else(|| self.password.clone());
        Ok(config)
    }

    fn tls_config(&self) -> Result<ClientConfig, BadSetting> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|err| BadSetting { setting: "VALKEY_USE_TLS", why: err.to_string() })?;
        if self.unchecked {
            let verifier = Arc::new(Unchecked(provider));
            let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
            return Ok(builder.with_no_client_auth());
        }
        Ok(builder.with_root_certificates(self.roots()?).with_no_client_auth())
    }

    fn roots(&self) -> Result<RootCertStore, BadSetting> {
        let mut roots = RootCertStore::empty();
        let Some(file) = &self.ca_file else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        let refuse =
            |why: String| BadSetting { setting: "VALKEY_CA_FILE", why: format!("{}: {why}", file.display()) };
        let read = CertificateDer::pem_file_iter(file).map_err(|err| refuse(err.to_string()))?;
        for certificate in read {
            let certificate = certificate.map_err(|err| refuse(err.to_string()))?;
            roots.add(certificate).map_err(|err| refuse(err.to_string()))?;
        }
        if roots.is_empty() { Err(refuse("no certificate in it".to_owned())) } else { Ok(roots) }
    }
}

/// `VALKEY_SKIP_TLS_CHECK`: encrypted, but to whom is not known.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: Option<&str>) -> Target {
        Target {
            url: url.map(str::to_owned),
            host: "h".to_owned(),
            port: 6379,
            username: Some("user".to_owned()),
            password: Some("pass".to_owned()),
            tls: false,
            unchecked: false,
            ca_file: None,
            prefix: "headgate".to_owned(),
            timeout: Duration::from_millis(50),
            replicas_assumed: 4,
            poll: Duration::from_secs(10),
        }
    }

    #[test]
    fn a_url_rules_over_host_and_port_and_the_rest_fills_in() {
        let config = target(Some("valkey://v:7000")).config().unwrap();
        assert_eq!(config.server, ServerConfig::new_centralized("v", 7000));
        assert_eq!(config.password.as_deref(), Some("pass"));
        let own = target(Some("redis://me:secret@v:7000")).config().unwrap();
        assert_eq!((own.username.as_deref(), own.password.as_deref()), (Some("me"), Some("secret")));
        assert!(target(Some("valkeys-cluster://v:7000")).config().unwrap().server.is_clustered());
        let sentinel = target(Some("valkey-sentinel://v:26379?sentinelServiceName=main"));
        assert!(sentinel.config().unwrap().server.is_sentinel());
        assert_eq!(target(None).config().unwrap().server, ServerConfig::new_centralized("h", 6379));
    }

    #[test]
    fn an_error_names_the_setting_and_no_secret() {
        let mut bad = target(None);
        (bad.tls, bad.ca_file) = (true, Some("/nonexistent/ca.pem".into()));
        let why = bad.builder().err().map(|err| err.to_string()).unwrap_or_default();
        assert!(why.starts_with("VALKEY_CA_FILE: /nonexistent/ca.pem"), "{why}");
        assert_eq!(target(Some("redis://me:secret@v:7000")).place(), "redis://v:7000");
    }
}
