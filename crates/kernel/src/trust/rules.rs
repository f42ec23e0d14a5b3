//! Rules and queries of the tool repository: what was confirmed of them, and what has changed since the last start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_contract::{Code, Consent, ToolError, canonical};
use tgp_router::gates::{ForeignRules, PolicyGate, RuleTrust};

use super::{Trust, rules_hash, store};
use crate::Kernel;
use tgp_fs::append_log::write_private;
use tgp_fs::real_place;

/// The rules that the last start has seen, in the kernel's own state.
const SEEN_FILE: &str = "rules.json";
/// Files that a notice names.
const MAX_NAMED: usize = 5;

/// Asks the confirmations of a person about rules.
struct KnownRules {
    trust: Trust,
    project: PathBuf,
}

/// Says which rules of the tool repository of `project` may loosen.
pub(crate) fn confirmed_rules(trust: &Trust, project: &Path) -> Arc<dyn RuleTrust> {
    Arc::new(KnownRules { trust: trust.clone(), project: project.to_owned() })
}

impl RuleTrust for KnownRules {
    fn is_confirmed(&self, rules: &ForeignRules) -> bool {
        let known = match &self.trust {
            Trust::Nothing => return false,
            Trust::Everything => return true,
            Trust::Confirmed(known) => known,
        };
        let hash = rules_hash(&self.project, rules);
        let stored = known.store.as_ref().and_then(|store| store.rules(&self.project).ok().flatten());
        known.hashes.contains(&hash) || stored.is_some_and(|stored| stored.hash == hash)
    }

    fn record(&self) -> Option<PathBuf> {
        match &self.trust {
            Trust::Confirmed(known) => Some(known.store.as_ref()?.rules_record(&self.project)),
            Trust::Nothing | Trust::Everything => None,
        }
    }
}

/// One line about rules that are not the project's own and have changed since the last start.
///
/// # Errors
/// When the rules cannot be read.
pub(crate) async fn report_changes(policy: &PolicyGate, state: &Path) -> Result<Option<String>, ToolError> {
    let hash = |(name, text): (String, String)| (name, canonical::sha256_hex(text.as_bytes()));
    let now: BTreeMap<String, String> = policy.foreign().await?.into_iter().map(hash).collect();
    let file = state.join(SEEN_FILE);
    let before = std::fs::read(&file).unwrap_or_default();
    let before: BTreeMap<String, String> = serde_json::from_slice(&before).unwrap_or_default();
    if before == now {
        return Ok(None);
    }
    let removed = before.keys().filter(|name| !now.contains_key(*name)).map(|name| ("removed", name));
    let changes = now.iter().filter_map(|(name, hash)| match before.get(name) {
        None => Some(("added", name)),
        Some(old) if old != hash => Some(("changed", name)),
        Some(_) => None,
    });
    let all: Vec<String> =
        changes.chain(removed).map(|(what, name)| format!("{what} {}", name.escape_debug())).collect();
    let mut named = all.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > MAX_NAMED {
        named = format!("{named} and {} more", all.len() - MAX_NAMED);
    }
    let without_effect = policy.listing().await?.rules.iter().filter(|rule| !rule.has_effect).count();
    let waits = match without_effect {
        0 => String::new(),
        1 => "; an `allow` rule has no effect until `tgp policy trust` confirms it".to_owned(),
        some => format!("; {some} `allow` rules have no effect until `tgp policy trust` confirms them"),
    };
    // Where it cannot be kept the next start reports it again.
    let _ = serde_json::to_vec(&now).map(|bytes| write_private(&file, &bytes));
    Ok(Some(format!("the rules of the tool repository have changed since the last start: {named}{waits}")))
}

impl Kernel {
    /// Refuses consent that was given beforehand for a query whose text a remote or an agent may have changed.
    pub(crate) fn check_sources(
        &self,
        sources: &[tgp_aql::Source],
        consent: Consent,
    ) -> Result<(), ToolError> {
        if matches!(consent, Consent::Ask | Consent::Outer) {
            return Ok(());
        }
        let changed = sources
            .iter()
            .find(|source| self.is_in_tools(&source.path) && !self.is_confirmed(&source.path, &source.text));
        changed.map_or(Ok(()), |source| {
            let message = format!(
                "`{}` is in the tool repository and its text is not confirmed, so consent that was given beforehand \
                 does not cover it",
                source.path
            );
            Err(ToolError::new(Code::Approval, message)
                .detail("file", source.path.as_str())
                .help(format!("run `tgp trust {}`, or run the query without --yes", source.path)))
        })
    }

    /// Whether a path, relative to the project, leads into the tool repository.
    #[must_use]
    pub fn is_in_tools(&self, path: &str) -> bool {
        real_place(&self.project().join(path)).starts_with(real_place(self.root()))
    }

    fn is_confirmed(&self, path: &str, text: &str) -> bool {
        let known = match self.trust() {
            Trust::Nothing => return false,
            Trust::Everything => return true,
            Trust::Confirmed(known) => known,
        };
        let confirmed = known.fields(self.project()).unwrap_or_default();
        known.hashes.contains(&store::file_hash(self.project(), path, text))
            || store::is_file_confirmed(&confirmed, self.project(), path, text)
    }
}
