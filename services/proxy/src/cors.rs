//! The CORS headers of chain routes, as configured and sent with every answer.

use config::Settings;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS,
};
use http::{HeaderMap, HeaderValue};

/// What a browser's script may read beside the body.
const EXPOSED: &str = "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Request-Id";
/// The same under `EXPOSE_ROUTING`.
const EXPOSED_WITH_ROUTING: &str = "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, \
                                    X-Headgate-Attempts, X-Headgate-Endpoint, X-Request-Id";

pub(crate) struct Cors {
    headers: Option<HeaderValue>,
    methods: Option<HeaderValue>,
    origin: Option<HeaderValue>,
    exposed: HeaderValue,
}

impl Cors {
    /// A value that no header can carry is left out.
    pub(crate) fn new(settings: &Settings) -> Cors {
        let value = |text: &str| {
            HeaderValue::from_str(text).ok().filter(|value| !value.is_empty()).map(|_| kept(text))
        };
        Cors {
            headers: value(&settings.cors_headers),
            methods: value(&settings.cors_methods),
            origin: value(&settings.cors_origin),
            exposed: HeaderValue::from_static(if settings.expose_routing {
                EXPOSED_WITH_ROUTING
            } else {
                EXPOSED
            }),
        }
    }

    pub(crate) fn insert(&self, headers: &mut HeaderMap) {
        let mut set = |name, value: &Option<HeaderValue>| {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        };
        set(ACCESS_CONTROL_ALLOW_HEADERS, &self.headers);
        set(ACCESS_CONTROL_ALLOW_METHODS, &self.methods);
        set(ACCESS_CONTROL_ALLOW_ORIGIN, &self.origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
    }
}

/// As long as the process lives: copies of a static value count nowhere, others count themselves where all workers do.
fn kept(text: &str) -> HeaderValue {
    HeaderValue::from_static(Box::leak(text.into()))
}
