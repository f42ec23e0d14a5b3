//! Where paths lead, whatever links are on their way.

use std::path::{Component, Path, PathBuf};

/// Links on the way of one path.
const MAX_LINKS: usize = 40;

/// Where a path leads, whatever links are on its way, also when its end does not exist yet: a link may lead to nothing. A
/// path with too many links leads to `/`, which is in no project.
#[must_use]
pub fn real_place(path: &Path) -> PathBuf {
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

/// The links on the way of a path, and where it leads: replacing one of them replaces the file.
#[must_use]
pub fn links_and_place(path: &Path) -> Vec<PathBuf> {
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
