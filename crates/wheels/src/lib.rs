//! Requirements, wheels and environments of Python, without running Python.
//!
//! Everything that is read here is written by strangers: manifests by agents, wheels and their metadata by an index, an
//! existing environment by whatever ran before. So every text, list, file and directory has a limit, nothing is executed,
//! and no link is followed.
//!
//! - [`Requirement`], [`RequirementsFile`] and [`PyProject`]: what a project depends on, read and edited.
//! - [`Wheel`]: a package of an index, checked as a whole before anything of it is used.
//! - [`Environment`]: a directory such as `.venv`, read as data.
//! - [`Installation`]: what has to change in an environment for some wheels to be installed in it. It is a list of
//!   changes: the caller judges it and carries it out.
//!
//! pip resolves; this crate does not.
#![forbid(unsafe_code)]

mod archive;
mod builder;
mod entry_points;
mod environment;
mod error;
mod installation;
mod layout;
mod marker;
mod metadata;
mod name;
mod pyproject;
mod record;
mod removal;
mod requirement;
mod requirements_file;
mod wheel;

pub use environment::{Environment, InstalledDistribution};
pub use error::{EnvironmentError, InstallError, ManifestError, RequirementError, WheelError};
pub use installation::{EnvironmentChange, InstallOptions, Installation, Interpreter};
pub use name::Name;
pub use pep440_rs::{Version, VersionSpecifiers};
pub use pyproject::{DependencyList, PyProject};
pub use requirement::Requirement;
pub use requirements_file::RequirementsFile;
pub use wheel::Wheel;
