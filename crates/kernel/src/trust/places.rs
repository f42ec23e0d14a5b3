//! Places of a project that only people change.

use std::path::{Path, PathBuf};

use tgp_contract::{RelativePath, Root};
use tgp_fs::{git_directories, links_and_place};
use tgp_text::RulePurpose;

/// Files that only people change, under every name by which each could be replaced: as it is named, the links on its way, and
/// where it leads. What is outside the project no tool reaches by a path of the project.
pub(crate) fn protected_places(
    project: &Path,
    named: impl Iterator<Item = String>,
) -> Vec<(Root, RelativePath)> {
    // Those with usual names are protected by them, and may be links to others.
    let usual = RulePurpose::ALL.into_iter().flat_map(RulePurpose::paths).map(|file| (*file).to_owned());
    let places = named.chain(usual).flat_map(|file| {
        let named = project.join(file);
        let mut places = links_and_place(&named);
        places.push(named);
        places
    });
    inside(project, places)
}

/// Where git keeps its own files, when that is in the project: also under another name than `.git`.
pub(crate) fn git_places(project: &Path) -> Vec<(Root, RelativePath)> {
    inside(project, git_directories(project).into_iter())
}

fn inside(project: &Path, places: impl Iterator<Item = PathBuf>) -> Vec<(Root, RelativePath)> {
    let below = |place: PathBuf| RelativePath::new(place.strip_prefix(project).ok()?.to_str()?).ok();
    let mut places: Vec<RelativePath> = places.filter_map(below).filter(|path| !path.is_root()).collect();
    places.sort();
    places.dedup();
    places.into_iter().map(|path| (Root::Project, path)).collect()
}
