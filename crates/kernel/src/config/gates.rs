//! `audit`, `policy` and `tdd`: what is recorded, what is allowed, and how strictly code follows tests.

use tgp_contract::TddMode;

use super::fields::Fields;

/// When a record counts as kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditDurability {
    /// When it is in the queue of the writer, which writes several at a time.
    #[default]
    Batched,
    /// When it is on the disk.
    Call,
}

/// The section `audit`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditConfig {
    pub durability: AuditDurability,
    /// Names of arguments whose values are never recorded, in addition to those that are always left out.
    pub redact_names: Vec<String>,
    /// Environment variables whose values are never recorded.
    pub redact_environment: Vec<String>,
}

/// The section `policy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyConfig {
    /// Files of rules, relative to the project, in addition to those with the usual names. They have to exist.
    pub files: Vec<String>,
}

/// The section `tdd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TddConfig {
    pub mode: TddMode,
    /// Globs of test files and of files that need no test, instead of the built-in ones.
    pub tests: Option<Vec<String>>,
    pub exempt: Option<Vec<String>>,
    /// How the project's tests are run, instead of what its manifests say.
    pub command: Option<String>,
}

impl Default for TddConfig {
    fn default() -> Self {
        Self { mode: TddMode::Strict, tests: None, exempt: None, command: None }
    }
}

pub(super) fn read_audit(mut audit: Fields<'_>) -> AuditConfig {
    let durability = audit
        .choice("durability", &[("batched", AuditDurability::Batched), ("call", AuditDurability::Call)])
        .unwrap_or_default();
    let mut config = AuditConfig { durability, ..AuditConfig::default() };
    if let Some(mut redact) = audit.section("redact") {
        config.redact_names = redact.texts("names").unwrap_or_default();
        config.redact_environment = redact.texts("environment").unwrap_or_default();
        redact.done();
    }
    audit.done();
    config
}

pub(super) fn read_policy(mut policy: Fields<'_>) -> PolicyConfig {
    let files = policy.texts("files").unwrap_or_default();
    policy.done();
    PolicyConfig { files }
}

pub(super) fn read_tdd(mut tdd: Fields<'_>) -> TddConfig {
    let modes: Vec<(&str, TddMode)> = TddMode::ALL.iter().map(|mode| (mode.as_str(), *mode)).collect();
    let config = TddConfig {
        mode: tdd.choice("mode", &modes).unwrap_or(TddMode::Strict),
        tests: tdd.texts("tests"),
        exempt: tdd.texts("exempt"),
        command: tdd.text("command").filter(|command| !command.trim().is_empty()),
    };
    tdd.done();
    config
}
