//! What takes effect only after a person has confirmed it: sensitive fields of the configuration, and whatever loosens
//! in files that a remote or an agent may have changed.

mod fields;
mod loosening;
mod places;
mod repository;
mod rules;
mod store;
mod url;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::{Code, ToolError};

use crate::boot::{BootError, BootOptions, Environment};
use crate::config::{Config, Found, UserConfig};
use crate::records::{Chain, SystemUser};
use crate::{settings, user_state};
pub use fields::SensitiveField;
pub(crate) use fields::check_root;
pub(crate) use loosening::unconfirmed_rule_files;
pub(crate) use places::{git_places, protected_places};
pub(crate) use repository::find_repository;
pub(crate) use rules::{confirmed_rules, report_changes};
pub use store::{
    ConfirmedFields, ConfirmedRules, TrustStore, fields_decision, fields_hash, file_decision, rules_decision,
    rules_hash,
};
pub(crate) use url::{check_addresses, is_secret_setting};

/// The variable that holds hashes for machines where no person is asked, separated by commas.
const HASHES_VARIABLE: &str = "TGP_TRUST";

/// What a kernel believes without asking.
#[derive(Clone, Default)]
pub enum Trust {
    /// Nothing: sensitive fields are ignored, and the rules of the tool repository only tighten.
    #[default]
    Nothing,
    /// Everything: the embedding program vouches for the configuration file and for the tool repository.
    Everything,
    /// What a person has confirmed.
    Confirmed(Confirmations),
}

/// What a person has confirmed, and how they are asked for more.
#[derive(Clone)]
pub struct Confirmations {
    /// `None` where there is no place for it: then only `hashes` count.
    pub store: Option<TrustStore>,
    /// Hashes of what else counts as confirmed, as `tgp trust --print` gives them.
    pub hashes: Vec<String>,
    pub prompt: Option<Arc<dyn TrustPrompt>>,
}

/// Asks a person when a kernel starts.
#[async_trait]
pub trait TrustPrompt: Send + Sync {
    /// Shows the fields, and returns whether the person confirms them.
    async fn confirm(&self, unconfirmed: &[SensitiveField]) -> bool;
    /// Reports fields that were ignored.
    fn ignored(&self, warning: &str);
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Everything => "Everything",
            Self::Confirmed(_) => "Confirmed",
        })
    }
}

impl Confirmations {
    /// Those of this user, with the hashes of `TGP_TRUST`.
    #[must_use]
    pub fn of_user(environment: &Environment, prompt: Option<Arc<dyn TrustPrompt>>) -> Self {
        let hashes = environment(HASHES_VARIABLE).unwrap_or_default();
        let hashes = hashes.split(',').map(|hash| hash.trim().to_lowercase());
        Self {
            store: TrustStore::of_user(environment),
            hashes: hashes.filter(|hash| !hash.is_empty()).collect(),
            prompt,
        }
    }

    fn fields(&self, project: &Path) -> Result<ConfirmedFields, ToolError> {
        self.store.as_ref().map_or_else(|| Ok(ConfirmedFields::default()), |store| store.fields(project))
    }

    /// Fields that nothing confirms, and why a store could not be asked.
    fn unconfirmed(
        &self,
        project: &Path,
        fields: &[SensitiveField],
    ) -> (Vec<SensitiveField>, Option<ToolError>) {
        if self.hashes.contains(&fields_hash(project, fields)) {
            return (Vec::new(), None);
        }
        let (known, error) = match self.fields(project) {
            Ok(known) => (known, None),
            Err(error) => (ConfirmedFields::default(), Some(error)),
        };
        let is_covered = |field: &SensitiveField| {
            let store = self.store.as_ref().filter(|_| field.name == fields::REPOSITORY);
            store.is_some_and(|store| repository::is_covered(store, project))
        };
        let is_known = |field: &&SensitiveField| {
            let is_same = |hash: &String| *hash == store::field_hash(project, field);
            may_be_stored(field) && (known.fields.get(field.name).is_some_and(is_same) || is_covered(field))
        };
        (fields.iter().filter(|field| !is_known(field)).cloned().collect(), error)
    }
}

/// The sensitive fields of a project's configuration.
#[derive(Clone, Debug)]
pub struct TrustRequest {
    /// The project's canonical path.
    pub project: PathBuf,
    pub fields: Vec<SensitiveField>,
    /// Those among them that are not confirmed.
    pub unconfirmed: Vec<SensitiveField>,
}

/// Reads a project's configuration and nothing else, and says what in it needs a confirmation.
///
/// # Errors
/// When the configuration cannot be read, or the confirmations cannot be believed.
pub async fn trust_request(options: &BootOptions) -> Result<TrustRequest, BootError> {
    let Found { project, config, variables, failed, .. } = Found::read(options).await?;
    if let Some(error) = failed {
        return Err(error);
    }
    let fields = fields::of(&config, &project, home(options).as_deref(), &variables);
    let unconfirmed = match &options.trust {
        Trust::Nothing => fields.clone(),
        Trust::Everything => Vec::new(),
        Trust::Confirmed(known) => match known.unconfirmed(&project, &fields) {
            (_, Some(error)) => return Err(error.into()),
            (unconfirmed, None) => unconfirmed,
        },
    };
    Ok(TrustRequest { project, fields, unconfirmed })
}

/// Takes out of a configuration what needs a confirmation and has none, before anything of it takes effect; with the
/// warning that says so, unless it was given to the prompt.
///
/// # Errors
/// When there is no tool repository but one that needs a confirmation, or the file cannot be used without the variables that
/// it reads.
pub(crate) async fn admit(found: &mut Found, options: &BootOptions) -> Result<Option<String>, BootError> {
    let trust = &options.trust;
    let home = home(options);
    let fields_of =
        |found: &Found| fields::of(&found.config, &found.project, home.as_deref(), &found.variables);
    let fields = fields_of(found);
    let (mut refused, mut why) = match trust {
        Trust::Everything => return found.failed.take().map_or(Ok(None), Err),
        Trust::Nothing => (fields.clone(), None),
        Trust::Confirmed(known) => {
            let (mut unconfirmed, mut error) = known.unconfirmed(&found.project, &fields);
            // A person at a terminal is not asked by each command in a project of another user.
            let is_own = unconfirmed.iter().all(|field| field.name != fields::OWNER);
            if let (false, None, Some(prompt), Some(store)) =
                (unconfirmed.is_empty(), &error, &known.prompt, &known.store)
                && found.failed.is_none()
                && is_own
                && prompt.confirm(&unconfirmed).await
            {
                error = confirm(store, found, &fields, options).await.err();
                if error.is_none() {
                    unconfirmed.clear();
                }
            }
            (unconfirmed, error)
        }
    };
    let is_environment = |field: &SensitiveField| field.name == fields::ENVIRONMENT;
    if refused.iter().any(is_environment) {
        found.forget_environment(options).await?;
        let left = fields_of(found);
        // What it had by its variables is missing now, and that is worth a word; what it has instead is judged by itself.
        refused =
            fields.into_iter().filter(|field| left.iter().all(|other| other.name != field.name)).collect();
        match trust {
            Trust::Confirmed(known) => {
                let (unconfirmed, error) = known.unconfirmed(&found.project, &left);
                refused.extend(unconfirmed);
                why = why.or(error);
            }
            _ => refused.extend(left),
        }
    } else if let Some(error) = found.failed.take() {
        return Err(error);
    }
    if let Trust::Confirmed(Confirmations { store, .. }) = trust {
        let reaches_store = |field: &SensitiveField| {
            let places = places(field, &found.config, &found.project, home.as_deref());
            let is_store = |place: &PathBuf| store.as_ref().is_some_and(|store| store.is_below(place));
            places.iter().any(|place| is_store(place) || holds_settings(place, &options.environment))
        };
        refused.extend(fields_of(found).into_iter().filter(reaches_store));
    }
    refused.sort_by_key(|field| field.name);
    refused.dedup_by_key(|field| field.name);
    refused.iter().for_each(|field| field.withhold_from(&mut found.config));
    let is_root = |field: &SensitiveField| field.name == ROOT;
    if refused.iter().any(is_root) && fields_of(found).iter().any(is_root) {
        let message = format!("`{}` leads out of the project and is not confirmed", found.config.root_dir);
        return Err(ToolError::new(Code::Config, message)
            .detail("field", ROOT)
            .help("run `tgp trust`, or make it a directory of the project")
            .into());
    }
    // What that means is reported with the access to the project.
    refused.retain(|field| field.name != fields::OWNER);
    let warning = (!refused.is_empty() || why.is_some()).then(|| warning(&refused, why.as_ref()));
    Ok(match (warning, trust) {
        (Some(warning), Trust::Confirmed(Confirmations { prompt: Some(prompt), .. })) => {
            prompt.ignored(&warning);
            None
        }
        (warning, _) => warning,
    })
}

/// Records that a person has confirmed fields at a start, and keeps it.
async fn confirm(
    store: &TrustStore,
    found: &Found,
    fields: &[SensitiveField],
    options: &BootOptions,
) -> Result<(), ToolError> {
    let decision = fields_decision(&found.project, fields)?;
    // Without a question here, the project of another user is one that this user has confirmed before.
    let is_confirmed = true;
    let environment = &options.environment;
    let place = (found.project.as_path(), &found.config);
    let chain = match Chain::of_project(place, &found.secrets, is_confirmed, environment) {
        Some(chain) => chain,
        None => Chain::of_user(environment, &found.project)?,
    };
    let decision = chain.record(&SystemUser::of_process(environment), decision).await?;
    store.confirm_fields(&found.project, fields, decision)
}

/// Whether a process with write access below `place` could write what the user has set up for all projects.
fn holds_settings(place: &Path, environment: &Environment) -> bool {
    let Some(file) = UserConfig::place(environment) else { return false };
    let is_inside = file.parent().is_some_and(|directory| user_state::is_below(place, directory));
    is_inside || user_state::is_below(&file, place)
}

/// Whether a person has agreed to work in a project of another user. A project of this user needs no such agreement.
pub(crate) fn is_owner_confirmed(config: &Config) -> bool {
    !config.ignored.contains(&fields::OWNER)
}

/// Whether the record of this user can confirm a field. Root works in the project of another user only by `TGP_TRUST`.
fn may_be_stored(field: &SensitiveField) -> bool {
    field.name != fields::OWNER || !nix::unistd::geteuid().is_root()
}

/// The field that says where the tool repository is.
const ROOT: &str = "rootDir";

fn warning(refused: &[SensitiveField], why: Option<&ToolError>) -> String {
    let names: Vec<&str> = refused.iter().map(|field| field.name).collect();
    let ignored = format!(
        "not confirmed by a person, so ignored in the configuration: {}; `tgp trust` shows and confirms",
        names.join(", ")
    );
    match why {
        None => ignored,
        Some(error) if names.is_empty() => with_help(error),
        Some(error) => format!("{ignored} ({})", with_help(error)),
    }
}

fn with_help(error: &ToolError) -> String {
    error.help_of().map_or_else(|| error.message.clone(), |help| format!("{}; {help}", error.message))
}

fn home(options: &BootOptions) -> Option<PathBuf> {
    (options.environment)("HOME").map(PathBuf::from)
}

/// The places that a field opens to agents. None of them may hold the confirmations themselves.
fn places(field: &SensitiveField, config: &Config, project: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    match field.name {
        "fs" => {
            let named = config.fs.allowed_dirs.iter().chain(&config.fs.read_dirs);
            named.map(|place| project.join(place)).collect()
        }
        "jail.readable" => settings::readable_paths(&config.jail.readable, project, home),
        ROOT => vec![project.join(&config.root_dir)],
        _ => Vec::new(),
    }
}
