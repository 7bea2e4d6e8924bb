//! What answers mean and what methods cost: the tables that an operator's files extend. They are part of the fleet's
//! snapshot, so a request sees one state of everything.

use config::{Finding, MethodCosts, Settings};
use detect::Rules;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Detection rules and compute units.
pub struct Tables {
    pub rules: Rules,
    pub costs: MethodCosts,
    /// Tells the ids of these rules from those of others.
    pub generation: u32,
}

impl Tables {
    pub fn new(rules: Rules, costs: MethodCosts) -> Tables {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Tables { rules, costs, generation: NEXT.fetch_add(1, Relaxed) }
    }

    /// Reads both tables again.
    pub fn load(settings: &Settings) -> Result<Tables, Vec<Finding>> {
        let (costs, findings) = config::load_method_costs(settings);
        if findings.iter().any(Finding::is_error) {
            return Err(findings);
        }
        Ok(Tables::new(rules(settings).map_err(|finding| vec![finding])?, costs))
    }

    /// The files that [`Tables::load`] reads.
    pub fn files(settings: &Settings) -> impl Iterator<Item = &Path> {
        [&settings.rules_file, &settings.method_costs_file]
            .into_iter()
            .flatten()
            .map(std::path::PathBuf::as_path)
    }
}

/// Our own detection rules, after those of `RULES_FILE`.
pub fn rules(settings: &Settings) -> Result<Rules, Finding> {
    let Some(file) = &settings.rules_file else { return Ok(Rules::builtin()) };
    let name = file.display().to_string();
    let text = config::read_document(file)
        .map_err(|error| Finding::error("RULES_FILE", format!("{name}: {error}")))?;
    Rules::with_user(&text, &name).map_err(|error| Finding::error("RULES_FILE", error.to_string()))
}
