//! Fields of the configuration that loosen what holds without them, and rule files outside the project.
//!
//! Each field of the configuration is judged in one place: [`fields_that_loosen`] names them all, so a new one does not
//! compile before it has been decided whether it needs a confirmation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tgp_contract::TddMode;
use tgp_fs::real_place;
use tgp_jail::{ProcessLimits, Template};
use tgp_tdd::TddOptions;
use tgp_text::RulePurpose;

use super::fields::SensitiveField;
use crate::config::{
    AuditConfig, ChronicleConfig, Config, DatabaseConfig, GraphConfig, GuardianConfig, JailConfig, LlmConfig,
    PolicyConfig, SandboxConfig, TddConfig,
};

/// The names of the fields that lead to rule files outside the project.
const POLICY_FILES: &str = "policy.files";
const INVARIANTS: &str = "guardian.invariants";

/// The sensitive fields that loosen. A field that is bound to `_` executes, sends or opens something and is in
/// [`super::fields`], or it can only tighten or be shown.
pub(super) fn fields_that_loosen(config: &Config, project: &Path) -> Vec<SensitiveField> {
    let Config {
        // In `fields`, because they execute, send or open something.
        root_dir: _,
        main_tree: _,
        repository: _,
        git: _,
        fs: _,
        allowed_fetch_urls: _,
        secrets: _,
        // Packages run in the sandbox like the tool that imports them, and duplicates are a matter of order.
        allowed_imports: _,
        registry: _,
        // More records on the disk, and values that are not recorded: the calls themselves always are.
        audit: AuditConfig { durability: _, redact_names: _, redact_environment: _ },
        // Narrower events; the Guardian's own are not among them.
        chronicle: ChronicleConfig { scope: _, layout: _, durability: _, edits: _ },
        // Bounds of reads.
        graph: GraphConfig { history: _, max_rows: _, timeout: _, url: _ },
        // Not from the file.
        ignored: _,
        user: _,
        key_variables: _,
        policy: PolicyConfig { files: _ },
        guardian: GuardianConfig { invariants: _, halts_touched: _ },
        tdd: TddConfig { mode, tests, exempt, command: _ },
        db:
            DatabaseConfig {
                free_reads,
                url: _,
                read_only: _,
                statement_timeout: _,
                max_rows: _,
                max_bytes: _,
                pool: _,
            },
        sandbox: SandboxConfig { limits: _, ceiling: _, pool: _, seed: _, clock_ms: _ },
        jail,
        llm:
            LlmConfig {
                budgets,
                provider: _,
                model: _,
                base_url: _,
                key_variable: _,
                context_tokens: _,
                max_output_tokens: _,
                temperature: _,
                body: _,
                prices: _,
                patience: _,
                attempts: _,
            },
    } = config;
    let usual = TddOptions::default();
    let steps = LlmConfig::default().budgets.max_steps;
    let field = |name, allows, withhold, value: Option<Value>| {
        value.map(|value| SensitiveField::new(name, allows, withhold, value))
    };
    [
        field(
            "tdd.mode",
            "lets agents change code without a failing test",
            |config| config.tdd.mode = TddMode::Strict,
            (*mode != TddMode::Strict).then(|| json!(mode.as_str())),
        ),
        field(
            "tdd.tests",
            "lets agents write these files as tests, without a failing one",
            |config| config.tdd.tests = None,
            patterns(tests.as_deref(), &usual.test_patterns),
        ),
        field(
            "tdd.exempt",
            "lets agents write these files without a test",
            |config| config.tdd.exempt = None,
            patterns(exempt.as_deref(), &usual.exempt_patterns),
        ),
        field(
            "db.freeReads",
            "lets agents read the database without an approval",
            |config| config.db.free_reads = false,
            free_reads.then(|| json!(true)),
        ),
        field(
            "sandbox.limits",
            "gives every run more than a call could ask for",
            |config| config.sandbox.limits = config.sandbox.limits_at_most(&SandboxConfig::default().ceiling),
            config.sandbox.raises_limits().then(|| {
                let limits = &config.sandbox.limits;
                json!({
                    "memoryMb": limits.heap_bytes >> 20,
                    "cpuMs": limits.cpu.as_millis(),
                    "wallMs": limits.wall.as_millis(),
                })
            }),
        ),
        field("jail.limits", "gives commands more than a build has", withhold_caps, caps(jail)),
        field(
            "llm.budgets",
            "lets a session make more turns than usual",
            |config| config.llm.budgets.max_steps = LlmConfig::default().budgets.max_steps,
            (budgets.max_steps > steps).then(|| json!({ "steps": budgets.max_steps })),
        ),
        // Withheld where they are read: without them a rule would be missing, so no call has an effect.
        field(
            POLICY_FILES,
            "reads rules outside the project",
            |_| {},
            outside(config, project, RulePurpose::Policy),
        ),
        field(
            INVARIANTS,
            "reads invariants outside the project",
            |_| {},
            outside(config, project, RulePurpose::Invariants),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The patterns that are not among the built-in ones.
fn patterns(given: Option<&[String]>, usual: &[String]) -> Option<Value> {
    let more: Vec<&String> = given.unwrap_or_default().iter().filter(|one| !usual.contains(one)).collect();
    (!more.is_empty()).then(|| json!(more))
}

/// The caps of commands that are above those of a build, and of a session's files above the usual.
fn caps(jail: &JailConfig) -> Option<Value> {
    let JailConfig {
        memory_bytes,
        processes,
        file_bytes,
        layer_bytes,
        timeout,
        session_files,
        // Bounded by themselves: what is kept of the output, and how long is searched before a command.
        output_bytes: _,
        project_entries: _,
        // In `fields`.
        direct: _,
        readable: _,
    } = jail;
    let most: ProcessLimits = Template::Build.limits();
    let above = [
        ("memoryMb", memory_bytes.map(|bytes| bytes >> 20), most.memory_bytes >> 20),
        ("processes", *processes, most.processes),
        ("fileMb", file_bytes.map(|bytes| bytes >> 20), most.file_bytes >> 20),
        ("layerMb", layer_bytes.map(|bytes| bytes >> 20), most.layer_bytes >> 20),
        ("timeoutSeconds", timeout.as_ref().map(Duration::as_secs), Template::Build.deadline().as_secs()),
        ("sessionFiles", Some(*session_files), JailConfig::default().session_files),
    ];
    let above = above
        .into_iter()
        .filter_map(|(name, given, most)| Some((name, given.filter(|given| *given > most)?)));
    let above: serde_json::Map<String, Value> =
        above.map(|(name, given)| (name.to_owned(), json!(given))).collect();
    (!above.is_empty()).then_some(Value::Object(above))
}

fn withhold_caps(config: &mut Config) {
    let (jail, most) = (&mut config.jail, Template::Build.limits());
    let at_most = |slot: &mut Option<u64>, most: u64| *slot = slot.map(|given| given.min(most));
    at_most(&mut jail.memory_bytes, most.memory_bytes);
    at_most(&mut jail.processes, most.processes);
    at_most(&mut jail.file_bytes, most.file_bytes);
    at_most(&mut jail.layer_bytes, most.layer_bytes);
    jail.timeout = jail.timeout.map(|given| given.min(Template::Build.deadline()));
    jail.session_files = jail.session_files.min(JailConfig::default().session_files);
}

/// The files of a purpose that the configuration names or that have a usual name.
fn rule_files(config: &Config, purpose: RulePurpose) -> impl Iterator<Item = &str> {
    let named: Vec<&str> = match purpose {
        RulePurpose::Policy => config.policy.files.iter().map(String::as_str).collect(),
        RulePurpose::Invariants => config.guardian.invariants.as_deref().into_iter().collect(),
        RulePurpose::Config | RulePurpose::Personas => Vec::new(),
    };
    named.into_iter().chain(purpose.paths().iter().copied())
}

/// The rule files of a purpose that are outside the project, by their names or by a link, with where each of them is.
fn outside_files(config: &Config, project: &Path, purpose: RulePurpose) -> Vec<(PathBuf, PathBuf)> {
    rule_files(config, purpose)
        .map(|name| project.join(name))
        // Most projects have few of them, and where one leads takes a look at each directory on its way.
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| (real_place(&path), path))
        .filter(|(place, _)| !place.starts_with(project))
        .map(|(place, path)| (path, place))
        .collect()
}

fn outside(config: &Config, project: &Path, purpose: RulePurpose) -> Option<Value> {
    let places = outside_files(config, project, purpose);
    let shown = |(_, place): &(PathBuf, PathBuf)| place.to_string_lossy().into_owned();
    (!places.is_empty()).then(|| json!(places.iter().map(shown).collect::<Vec<String>>()))
}

/// The rule files outside the project that no person has confirmed. None of them is opened.
pub(crate) fn unconfirmed_rule_files(config: &Config, project: &Path) -> Vec<(PathBuf, RulePurpose)> {
    [(POLICY_FILES, RulePurpose::Policy), (INVARIANTS, RulePurpose::Invariants)]
        .into_iter()
        .filter(|(field, _)| config.ignored.contains(field))
        .flat_map(|(_, purpose)| {
            outside_files(config, project, purpose).into_iter().map(move |(path, _)| (path, purpose))
        })
        .collect()
}
