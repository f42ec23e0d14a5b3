//! Which files a caller may see.

use std::sync::Arc;

use crate::{Access, FileFilter, RelativePath, Root, chronicled, is_chronicle_tree_directory};

/// What a caller may see of the project and of the tool repository. A file that is not shown must be as if it were not
/// there: neither its name, nor its content, nor its size, nor that it exists may follow from an answer.
///
/// It has two parts, because one of them never changes: what follows from a path and the first part alone can be kept
/// from one question to the next, see [`Visibility::same_fixed`].
#[derive(Clone, Default)]
pub struct Visibility {
    fixed: Option<FileFilter>,
    varying: Option<FileFilter>,
}

impl std::fmt::Debug for Visibility {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let filters = (self.fixed.is_some(), self.varying.is_some());
        formatter.debug_tuple("Visibility").field(&filters).finish()
    }
}

impl PartialEq for Visibility {
    /// Whether both are made of the same filters; two filters that decide alike are still two.
    fn eq(&self, other: &Self) -> bool {
        same(self.fixed.as_ref(), other.fixed.as_ref()) && same(self.varying.as_ref(), other.varying.as_ref())
    }
}

fn same(one: Option<&FileFilter>, other: Option<&FileFilter>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

impl Visibility {
    /// Every file: for the kernel itself, which judges what it does not show.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// What both filters let through. `fixed` is the same for every call of a kernel, `varying` is made for one call.
    #[must_use]
    pub fn new(fixed: Option<FileFilter>, varying: Option<FileFilter>) -> Self {
        Self { fixed, varying }
    }

    /// Whether there is no filter at all.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.fixed.is_none() && self.varying.is_none()
    }

    /// Whether the part that never changes is that of the other.
    #[must_use]
    pub fn same_fixed(&self, other: &Self) -> bool {
        same(self.fixed.as_ref(), other.fixed.as_ref())
    }

    /// The part that never changes, alone.
    #[must_use]
    pub fn fixed_part(&self) -> Self {
        Self { fixed: self.fixed.clone(), varying: None }
    }

    /// The part that was made for one call, alone.
    #[must_use]
    pub fn varying_part(&self) -> Self {
        Self { fixed: None, varying: self.varying.clone() }
    }

    /// Whether a file may be seen. A chronicle may be seen where the file may be that it is about.
    #[must_use]
    pub fn shows(&self, root: Root, path: &RelativePath) -> bool {
        let shown = |path: &RelativePath| {
            let filters = [&self.fixed, &self.varying];
            filters.into_iter().flatten().all(|filter| filter(root, path, Access::Read))
        };
        let is_open = self.fixed.is_none() && self.varying.is_none();
        // Directories in the tree of chronicles reveal the files that they are about.
        (is_open || !is_chronicle_tree_directory(path))
            && shown(path)
            && chronicled(path).is_none_or(|file| shown(&file))
    }

    /// Whether a text names a file of the project that may be seen, or none at all.
    #[must_use]
    pub fn shows_named(&self, text: &str) -> bool {
        self.is_everything() || RelativePath::new(text).is_ok_and(|path| self.shows(Root::Project, &path))
    }
}
