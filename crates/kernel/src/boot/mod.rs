//! From a directory to a running kernel. `cargo xtask tidy` counts the lines of this folder: what runs before the first
//! gate is armed has to stay small enough to be read in one sitting.

mod boot_context;
mod error;
mod gates;
mod options;

use std::sync::Arc;

use tgp_builtins::{kernel_tools, process_tools, project_tools};
use tgp_router::{Router, Workspace, gates::TokenAuthority};
use tgp_upstream::HostModules;

use crate::kernel::{Kernel, KernelInner};
use crate::knowledge::Knowledge;
use crate::tool_store::OpenedTools;
use crate::{approvals, config, records, scaffold, sessions, settings, trust};
pub(crate) use boot_context::BootContext;
pub use error::BootError;
pub use options::{BootOptions, Environment, SecretsListener};

impl Kernel {
    /// Reads the configuration, starts the sandbox, opens the tool repository and brings it up to date, verifies the
    /// audit, loads the rules, and arms the gates.
    ///
    /// # Errors
    /// See [`BootError`].
    pub async fn boot(options: BootOptions) -> Result<Self, BootError> {
        let mut ground = BootContext::find(&options).await?;
        let upstream = settings::upstreams(&ground.config, &ground.project, &options.environment);
        let host = options.host_tools.clone().map(HostModules::new).transpose()?.map(Arc::new);
        let others = settings::OtherPrograms { upstream, host };
        let forge = ground.forge(&others, &options).await?;
        let BootContext { project, root, config, access, .. } = &ground;
        let state_directory = access.state().clone();
        let opened = OpenedTools::open(&ground, &options, &forge, others.host.as_deref()).await?;
        let audit = gates::audit(&ground).await?;
        let database = match &options.database {
            Some(database) => settings::OpenedDatabase::of_host(database),
            None => settings::database(config, project, root, access).await?,
        };
        let settings::OpenedDatabase { database, name: database_name, notice: database_notice } = database;
        let tokens = Arc::new(TokenAuthority::new(state_directory.path().to_owned()));
        let workspace = Workspace::open(
            project,
            root,
            config.directories(),
            &config::kept_files(options.config_file.as_deref()),
        )?
        .with_tools(opened.kept.clone())
        .with_database(Arc::clone(&database))
        .with_session_files(config.jail.session_files)
        .with_before_images(sessions::before_images(&state_directory, project, &tokens));
        let state = gates::state(&ground, &options)?;
        state.begin(&workspace)?;
        let fetch = settings::fetch_client(config, project, &options.environment);
        let mut tools =
            kernel_tools(&forge, &fetch, &opened.library, &others.upstream, others.host.as_ref())?;
        tools.extend(project_tools()?);
        tools.extend(process_tools(settings::process_options(&ground, &options, &workspace), &state)?);
        tools.extend(sessions::session_tools(&state_directory, &tokens)?);
        tools.push(records::audit_tail_tool(&state_directory, &audit)?);
        let check = settings::rule_file_check(&ground, &options);
        let knowledge = Knowledge::open(config, project, root, access, &check)?;
        tools.extend(knowledge.tools()?);
        let tools = opened.usable(tools);
        let OpenedTools { library, mut opening, .. } = opened;
        let parts = gates::GateParts {
            forge: &forge,
            tools: tools.clone(),
            state: &state,
            audit: &audit,
            tokens,
            check,
        };
        let mut armed = gates::arm(&ground, &options, &workspace, parts).await?;
        let rules = trust::report_changes(&armed.policy, state_directory.path()).await?;
        let unread = armed.policy.check_files().err().map(|error| settings::notice_of(&error));
        let notices = [access.notice(), database_notice, ground.notice.clone(), rules, unread];
        opening.notices.extend(notices.into_iter().flatten());
        if access.is_own() {
            scaffold::refresh(root);
            scaffold::refresh_foreign(root, &others.upstream, others.host.as_deref());
        }
        let approver = approvals::keeping(&options, project);
        let recorder = knowledge.recorder(gates::recorder(&audit, &armed.policy, options.recorder));
        armed.gates.push(knowledge.gate());
        let router = Router::new(tools, armed.gates, approver, recorder, workspace)?;
        let BootContext { project, root, config, access, .. } = ground;
        tracing::debug!(target: "kernel", project = %project.display(), database = database_name, "started");
        Ok(Self::new(KernelInner {
            config,
            project,
            root,
            access,
            router: Arc::new(router),
            forge,
            library,
            opening,
            database,
            database_name,
            audit,
            state,
            policy: armed.policy,
            tokens: armed.tokens,
            environment: options.environment,
            trust: options.trust,
            knowledge,
            upstream: others.upstream,
            host_modules: others.host,
        }))
    }
}
