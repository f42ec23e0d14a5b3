//! From the configuration to what the built-in rules have to know of this installation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_contract::{PathProbe, RelativePath, Root, ToolError};
use tgp_fs::GitProbe;
use tgp_policy::PolicySettings;
use tgp_router::Workspace;
use tgp_router::gates::{NamedRuleFiles, RuleFileCheck};

use crate::boot::{BootContext, BootOptions};
use crate::knowledge::chronicle_probe;
use crate::trust::{git_places, protected_places, unconfirmed_rule_files};

/// Finds the directories of git repositories in the project and around it by what is in them.
fn git_probe(project: &Path, host: PathBuf) -> PathProbe {
    let (in_project, in_host) = (GitProbe::new(project.to_owned()), GitProbe::new(host));
    PathProbe::new(move |root, path| match root {
        Root::Project => in_project.is_inside(path.as_str()),
        Root::Host => in_host.is_inside(path.as_str()),
        Root::Tools => false,
    })
}

/// The tool repository, where it is in the project.
pub(crate) fn tools_in_project(ground: &BootContext) -> Option<RelativePath> {
    let place = ground.root.strip_prefix(&ground.project).ok()?;
    RelativePath::new(place.to_str()?).ok()
}

pub(crate) fn policy_settings(
    ground: &BootContext,
    options: &BootOptions,
    workspace: &Workspace,
) -> PolicySettings {
    let own = ground.config.policy.files.iter().chain(&ground.config.guardian.invariants).cloned();
    let named = options.config_file.as_ref().and_then(|file| Some(file.to_str()?.to_owned()));
    PolicySettings {
        tool_roots: tools_in_project(ground).map(|path| (Root::Project, path)).into_iter().collect(),
        allowed_host_directories: workspace.opened.writable.clone(),
        read_only_host_directories: workspace.opened.readable.clone(),
        protected_files: protected_places(&ground.project, own.chain(named)),
        git_directories: git_places(&ground.project),
        git_probe: Some(git_probe(&ground.project, workspace.host_place())),
        free_reads: ground.config.db.free_reads,
        layout: ground.config.chronicle.layout,
        probe: Some(chronicle_probe(&ground.project)),
    }
}

/// Looks for rule files that nothing reads: near names, second files of one purpose, and those outside the project that
/// no person has confirmed.
pub(crate) fn rule_file_check(ground: &BootContext, options: &BootOptions) -> Arc<RuleFileCheck> {
    let BootContext { project, root, config, .. } = ground;
    let named = config.policy.files.iter().chain(&config.guardian.invariants).map(|file| project.join(file));
    let named = NamedRuleFiles {
        files: named.collect(),
        has_config: options.config_file.is_some(),
        invariants: config.guardian.invariants.clone(),
        unconfirmed: unconfirmed_rule_files(config, project),
    };
    Arc::new(RuleFileCheck::new(project.clone(), root.clone(), named))
}

/// One line for a person: what is wrong, and the next step.
pub(crate) fn notice_of(error: &ToolError) -> String {
    error.help_of().map_or_else(|| error.message.clone(), |help| format!("{}; {help}", error.message))
}
