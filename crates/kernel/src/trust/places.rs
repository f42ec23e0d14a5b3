//! Where paths lead, whatever links are on their way.

use std::path::{Component, Path, PathBuf};

use tgp_contract::{RelativePath, Root};

/// Links on the way of one path.
const MAX_LINKS: usize = 40;

/// Where a path leads, whatever links are on its way, also when its end does not exist yet: a link may lead to nothing. A
/// path with too many links leads to `/`, which is in no project.
pub(crate) fn real_place(path: &Path) -> PathBuf {
    let mut place = PathBuf::from("/");
    let mut open: Vec<PathBuf> = vec![path.to_owned()];
    let mut links = 0;
    while let Some(rest) = open.pop() {
        let mut parts = rest.components();
        let Some(part) = parts.next() else { continue };
        open.push(parts.as_path().to_owned());
        match part {
            Component::RootDir | Component::Prefix(_) => place = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => drop(place.pop()),
            Component::Normal(name) => {
                let next = place.join(name);
                match next.read_link() {
                    Ok(_) if links == MAX_LINKS => return PathBuf::from("/"),
                    Ok(target) => {
                        links += 1;
                        open.push(target);
                    }
                    Err(_) => place = next,
                }
            }
        }
    }
    place
}

/// The links on the way of a path, and where it leads: whoever replaces one of them replaces the file.
fn links_and_place(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = path
        .ancestors()
        .filter(|place| place.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()))
        .map(|place| place.parent().map_or_else(|| place.to_owned(), |parent| parent_of_link(parent, place)))
        .collect();
    found.push(real_place(path));
    found
}

fn parent_of_link(parent: &Path, link: &Path) -> PathBuf {
    link.file_name().map_or_else(|| link.to_owned(), |name| real_place(parent).join(name))
}

/// Files of the project that are protected by their names, and that may be links to others.
const USUAL_FILES: [&str; 5] =
    ["tgp.policy.yaml", "tgp.policy.yml", "tgp.config.ts", "tgp.config.js", "tgp.config.json"];

/// Files that only people change, under every name by which each could be replaced: as it is named, the links on its way, and
/// where it leads. What is outside the project no tool reaches by a path of the project.
pub(crate) fn protected_places(
    project: &Path,
    named: impl Iterator<Item = String>,
) -> Vec<(Root, RelativePath)> {
    let below = |place: PathBuf| RelativePath::new(place.strip_prefix(project).ok()?.to_str()?).ok();
    let places = named.chain(USUAL_FILES.map(str::to_owned)).flat_map(|file| {
        let named = project.join(file);
        let mut places = links_and_place(&named);
        places.push(named);
        places
    });
    let mut places: Vec<RelativePath> = places.filter_map(below).filter(|path| !path.is_root()).collect();
    places.sort();
    places.dedup();
    places.into_iter().map(|path| (Root::Project, path)).collect()
}
