//! Files without surprises: the base of everything that reads or writes a disk.
//!
//! Three file systems are behind the one trait of `tgp-contract`: a confined directory on disk ([`DiskFs`]), a tree in
//! memory, and an overlay that holds changes back until they are committed. All three plan a batch with the same code, so
//! a conflict is the same error wherever it happens.
//!
//! Beside them: directories that are opened name by name without following a link ([`Directory`]), which files are ignored
//! ([`IgnoreRules`]), which are git's ([`git_directories`]) and which the kernel's own ([`is_in_kernel_directory`]), how to
//! see that a file has changed ([`Stamp`]), locks between processes ([`take_lock`]), and files of lines that only grow
//! ([`AppendLog`]).
#![forbid(unsafe_code)]

pub mod append_log;
mod batch;
mod committed;
mod directory;
mod disk;
mod git_directory;
mod git_settings;
mod ignore;
mod kernel_directory;
mod limits;
mod lock;
mod memory;
mod os;
mod overlay;
mod owner;
mod places;
mod plain;
pub mod private_record;
mod rename;
mod repository;
mod search_path;
mod stamp;
mod tree;

pub use append_log::AppendLog;
pub use directory::{Directory, DirectoryEntries, Replace};
pub use disk::{DiskFs, DiskOptions, HardLinks, OpenError, SECOND_NAME};
pub use git_directory::{GitProbe, git_directories, main_work_tree, repository_owner};
pub use ignore::{
    IgnoreRules, MAX_RULE_BYTES, OutsideRules, RULE_FILES, committed_file, ignored, outside_rules,
};
pub use kernel_directory::{
    DATABASE_ENDINGS, DATABASE_FILE, KERNEL_DIRECTORY, STATE_DIRECTORY, is_default_database,
    is_in_kernel_directory, is_kernel_private,
};
pub use limits::FileLimits;
pub use lock::{LockKind, LockWait, jittered, take_lock};
pub use memory::MemoryFs;
pub use os::sync_file_system;
pub use overlay::OverlayFs;
pub use owner::{explain_permission, user_name};
pub use places::{links_and_place, real_place};
pub use plain::{first_special_file, open_plain, read_plain, replace_plain};
pub use repository::{CheckedRepository, RepositoryAccess, check_own_repository, outside_places};
pub use search_path::{search_path, search_variable};
pub use stamp::{Stamp, since_epoch};
pub use tree::link_tree;
