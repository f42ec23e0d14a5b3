//! What this process may do in a project: decided once, when a kernel boots, from who owns the project and whether it can
//! be written. Where the state lies, who may write the tool repository and which calls are refused follow from it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use nix::unistd::{AccessFlags, access, geteuid};
use tgp_contract::{Code, Effect, Gate, GateRequest, Stage, ToolError, Verdict, canonical};
use tgp_fs::append_log::{at, private_directory};
use tgp_fs::user_name;

use crate::boot::Environment;
use crate::state_directory::StateDirectory;
use crate::user_state;

/// The state of projects that this user does not own or cannot write, below the user's state directory.
const PROJECTS: &str = "projects";

/// The tool that keeps packages in the state of the project until they are judged.
const STAGES_PACKAGES: &str = "package_install";

/// The user that a project belongs to, where that is not the user of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignOwner {
    uid: u32,
    /// What belongs to that user: the project, or its tool repository.
    place: PathBuf,
}

impl ForeignOwner {
    /// The other user that owns the project or its tool repository.
    pub(crate) fn find(project: &Path, root: &Path) -> Option<Self> {
        let own = geteuid().as_raw();
        let owner = |place: &Path| Some((place.symlink_metadata().ok()?.uid(), place.to_owned()));
        let places = [owner(project), owner(root)].into_iter().flatten();
        places.map(|(uid, place)| Self { uid, place }).find(|owner| owner.uid != own)
    }

    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// The name, or the number of a user without one.
    pub(crate) fn name(&self) -> String {
        user_name(self.uid)
    }

    /// How the owner runs a command, as typed by this user.
    fn command(&self) -> String {
        match self.name() {
            name if name.starts_with("uid ") => format!("sudo -u '#{}' tgp …", self.uid),
            name => format!("sudo -u {name} tgp …"),
        }
    }

    fn belongs(&self) -> String {
        format!(
            "`{}` belongs to {}, and this command runs as {}",
            self.place.display(),
            self.name(),
            user_name(geteuid().as_raw())
        )
    }

    /// Refuses a command with effects.
    fn unconfirmed(&self) -> ToolError {
        let help = if geteuid().is_root() {
            format!(
                "run `{}`; in a container, set TGP_TRUST to the hash that `tgp trust --print` shows",
                self.command()
            )
        } else {
            format!("run `{}`, or `tgp trust` to work in the project of another user", self.command())
        };
        ToolError::new(Code::Config, format!("{}: only commands without effects run", self.belongs()))
            .detail("owner", self.name())
            .detail("path", self.place.display().to_string())
            .help(help)
    }

    /// Refuses to write the kernel's own files of the project.
    fn kernel_files(&self) -> ToolError {
        let message = format!("{}: the kernel's files of the project are not written", self.belongs());
        ToolError::new(Code::Permission, message)
            .detail("owner", self.name())
            .detail("path", self.place.display().to_string())
            .help(format!("run `{}`", self.command()))
    }

    /// Refuses to make a project in the directory of another user.
    ///
    /// # Errors
    /// `ECONFIG`.
    pub(crate) fn check_new_project(project: &Path) -> Result<(), ToolError> {
        let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        let Some(owner) = Self::find(&project, &project) else { return Ok(()) };
        Err(ToolError::new(Code::Config, format!("{}: no project is made there", owner.belongs()))
            .detail("owner", owner.name())
            .help(format!("run `{}`", owner.command())))
    }
}

#[derive(Debug)]
enum AccessKind {
    /// The user's own project.
    Own,
    /// The user's own project, in a place that cannot be written.
    ReadOnly(ToolError),
    /// The project of another user.
    Foreign { owner: ForeignOwner, is_confirmed: bool },
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct ProjectAccess {
    kind: AccessKind,
    state: StateDirectory,
    /// What commands read that report on the past of the project.
    records: StateDirectory,
}

impl ProjectAccess {
    /// Decides it. `is_confirmed` says that a person has agreed to work in a project of another user.
    ///
    /// # Errors
    /// When the state would have to lie with the user, and has no place there.
    pub(crate) fn decide(
        project: &Path,
        root: &Path,
        is_confirmed: bool,
        environment: &Environment,
    ) -> Result<Self, ToolError> {
        let inside = StateDirectory::in_repository(root);
        let kind = match ForeignOwner::find(project, root) {
            Some(owner) => AccessKind::Foreign { owner, is_confirmed },
            None => match unwritable(project, root, inside.path()) {
                Some(error) => AccessKind::ReadOnly(error),
                None => {
                    return Ok(Self { kind: AccessKind::Own, state: inside.clone(), records: inside });
                }
            },
        };
        let state = StateDirectory::outside(user_place(project, environment)?);
        let records = match &kind {
            AccessKind::Foreign { is_confirmed: true, .. } => state.clone(),
            _ => inside.unchanged(),
        };
        Ok(Self { kind, state, records })
    }

    /// Where this process keeps what it records.
    pub(crate) fn state(&self) -> &StateDirectory {
        &self.state
    }

    /// What has happened in the project, to be read.
    pub(crate) fn records(&self) -> &StateDirectory {
        &self.records
    }

    /// Whether a reader of what has happened in the project sees what this process records.
    pub(crate) fn is_recorded_here(&self) -> bool {
        self.state.path() == self.records.path()
    }

    /// Whether the state lies in the project.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.kind, AccessKind::Own)
    }

    /// Refuses to write the tool repository and the kernel's state in the project.
    ///
    /// # Errors
    /// `ECONFIG` or `EPERMISSION`, with the path and its owner.
    pub(crate) fn check_kernel_files(&self) -> Result<(), ToolError> {
        match &self.kind {
            AccessKind::Own => Ok(()),
            AccessKind::ReadOnly(error) => Err(error.clone()),
            AccessKind::Foreign { owner, is_confirmed: false } => Err(owner.unconfirmed()),
            AccessKind::Foreign { owner, is_confirmed: true } => Err(owner.kernel_files()),
        }
    }

    /// Refuses what has effects in a project of another user that no person has confirmed.
    ///
    /// # Errors
    /// `ECONFIG` with the owner.
    pub(crate) fn check_effects(&self) -> Result<(), ToolError> {
        match &self.kind {
            AccessKind::Foreign { owner, is_confirmed: false } => Err(owner.unconfirmed()),
            _ => Ok(()),
        }
    }

    /// The gate that refuses calls in a project of another user: all with effects, or those that put the kernel's files there.
    pub(crate) fn gate(&self) -> Option<Arc<dyn Gate>> {
        let AccessKind::Foreign { owner, is_confirmed } = &self.kind else { return None };
        Some(Arc::new(if *is_confirmed {
            OwnerGate { error: owner.kernel_files(), only: Some(STAGES_PACKAGES) }
        } else {
            OwnerGate { error: owner.unconfirmed(), only: None }
        }))
    }

    /// What a person should know of a project of another user.
    pub(crate) fn notice(&self) -> Option<String> {
        let AccessKind::Foreign { owner, is_confirmed } = &self.kind else { return None };
        let may = if *is_confirmed { "its tools are not written" } else { "it is only read" };
        Some(format!(
            "the project belongs to {}: {may}, and what this command records is in `{}`",
            owner.name(),
            self.state.path().display()
        ))
    }
}

/// Why the kernel cannot write its state in the project.
fn unwritable(project: &Path, root: &Path, state: &Path) -> Option<ToolError> {
    let place = [state, root, project].into_iter().find(|place| place.exists())?;
    // A state that was made before does not help where nothing beside it can be made.
    let places = [Some(place), root.is_dir().then_some(root)];
    let refused = places.into_iter().flatten().find_map(|place| {
        let error = access(place, AccessFlags::W_OK).err()?;
        Some((place, std::io::Error::from(error)))
    });
    refused.map(|(place, error)| {
        ToolError::new(Code::Permission, format!("the kernel cannot write in `{}`: {error}", place.display()))
            .detail("path", place.display().to_string())
            .help("tools can be found, read and run; make the directory writable, or use a copy, to write tools")
    })
}

/// The place for the state of a project in the user's state directory.
fn user_place(project: &Path, environment: &Environment) -> Result<PathBuf, ToolError> {
    let Some(home) = user_state::directory(environment) else {
        let message = format!(
            "`{}` cannot hold what this command records, and this user has no state directory",
            project.display()
        );
        return Err(ToolError::new(Code::Config, message).help("set TGP_HOME to a directory of this user"));
    };
    user_state::check_outside(&home, project, "records")?;
    check_own(&home)?;
    let name = canonical::sha256_hex(project.as_os_str().as_encoded_bytes());
    let place = home.join(PROJECTS).join(name.get(..16).unwrap_or(&name));
    private_directory().recursive(true).create(&place).map_err(at(&place))?;
    Ok(place)
}

/// Refuses a state directory of another user: `sudo` can keep the home of who called it.
pub(crate) fn check_own(home: &Path) -> Result<(), ToolError> {
    let own = geteuid().as_raw();
    let nearest: Option<(&Path, Metadata)> =
        home.ancestors().find_map(|place| Some((place, place.metadata().ok()?)));
    match nearest {
        Some((place, found)) if found.uid() != own && found.uid() != 0 => {
            let message = format!(
                "the state directory `{}` belongs to {}, and this command runs as {}",
                place.display(),
                user_name(found.uid()),
                user_name(own)
            );
            Err(ToolError::new(Code::Config, message)
                .detail("path", place.display().to_string())
                .help("set TGP_HOME to a directory of this user, or run `sudo -H`"))
        }
        _ => Ok(()),
    }
}

/// Refuses calls with effects; with a name in `only`, those of one tool.
struct OwnerGate {
    error: ToolError,
    only: Option<&'static str>,
}

#[async_trait]
impl Gate for OwnerGate {
    fn stage(&self) -> Stage {
        Stage::Policy
    }

    fn name(&self) -> &str {
        "owner"
    }

    async fn judge(&self, request: GateRequest<'_>) -> Verdict {
        let rule = "builtin/owner".to_owned();
        let is_meant = self.only.is_none_or(|only| request.definition.name.as_str() == only);
        match request.definition.effect {
            Effect::Write | Effect::Execute | Effect::Network if is_meant => {
                Verdict::Deny { rule, error: self.error.clone() }
            }
            _ => Verdict::Allow { rule },
        }
    }
}
