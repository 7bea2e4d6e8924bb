//! The endpoints file and the settings, validated.
//!
//! Decides whether a configuration is valid and what it says; never what is done with it. All findings
//! are reported at once, each with its path. [`parse_fleet`] is pure; [`load`] reads the files.

mod clients;
mod document;
mod env;
mod finding;
mod fleet;
mod interpolate;
mod json;
mod layers;
mod load;
mod method_costs;
mod options;
mod reference;
mod secret;
mod settings;

pub use self::clients::parse_clients;
pub use document::read_document;
pub use env::Env;
pub use finding::{Finding, Severity, print_findings};
pub use fleet::{
    Capacity, ChainConfig, EndpointConfig, FleetConfig, LearningConfig, LearningMode, RecoveryConfig, Role,
    parse_fleet,
};
pub use load::{Config, load, load_clients, load_method_costs, load_settings, read_file, reload_fleet};
pub use method_costs::MethodCosts;
pub use options::Options;
pub use reference::{FIELDS, Field, FieldKind, schema};
pub use secret::{Secret, SecretUrl};
pub use settings::{
    DegradedMode, FlagsProvider, Kind, LogFormat, LogLevel, Network, Origin, SETTINGS, Selection, Setting,
    Settings, StoreBackend,
};
