//! A `.git` that leads out of a project: by every way that git and libgit2 follow.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tgp_contract::Code;
use tgp_fs::{RepositoryAccess, main_work_tree, outside_places, repository_owner};

/// A project and a repository of the same user beside it.
struct Places {
    _folder: TempDir,
    project: PathBuf,
    private: PathBuf,
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}

fn repository(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    git(directory, &["init", "--quiet", "--initial-branch=main"]);
    git(directory, &["commit", "--quiet", "--allow-empty", "--message", "First"]);
}

/// Both have a repository.
fn places() -> Places {
    let folder = TempDir::new().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let (project, private) = (home.join("project"), home.join("private"));
    repository(&project);
    repository(&private);
    Places { _folder: folder, project, private }
}

impl Places {
    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let file = self.project.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    /// Puts a link to something of the private repository in the place of something of the project's.
    fn link(&self, name: &str) {
        let link = self.project.join(".git").join(name);
        if link.is_dir() {
            fs::remove_dir_all(&link).unwrap();
        } else if link.exists() {
            fs::remove_file(&link).unwrap();
        }
        symlink(self.private.join(".git").join(name), link).unwrap();
    }

    fn private_git(&self) -> String {
        self.private.join(".git").display().to_string()
    }

    fn remove_git(&self) {
        fs::remove_dir_all(self.project.join(".git")).unwrap();
    }

    fn refusal(&self) -> Option<Code> {
        RepositoryAccess::default().open(&self.project).err().map(|error| error.code)
    }

    fn confirmed(&self) -> RepositoryAccess {
        RepositoryAccess::confirmed(outside_places(&self.project).unwrap())
    }
}

/// Leads the project's `.git` out of it.
type Lead = fn(&Places);

/// The ways that a person can confirm.
const LEADS: [(&str, Lead); 17] = [
    ("a file", |places| {
        places.remove_git();
        places.put(".git", format!("gitdir: {}\n", places.private_git()));
    }),
    ("a file with a relative path", |places| {
        places.remove_git();
        places.put(".git", "gitdir: ../private/.git");
    }),
    ("a file that is a link", |places| {
        places.remove_git();
        places.put("pointer", format!("gitdir: {}\n", places.private_git()));
        symlink("pointer", places.project.join(".git")).unwrap();
    }),
    ("a link", |places| {
        places.remove_git();
        symlink(places.private.join(".git"), places.project.join(".git")).unwrap();
    }),
    ("a link through the project", |places| {
        places.remove_git();
        symlink("..", places.project.join("up")).unwrap();
        symlink("up/private/.git", places.project.join(".git")).unwrap();
    }),
    ("commondir", |places| places.put(".git/commondir", places.private_git())),
    ("commondir, a link", |places| {
        places.put("shared", format!("{}\n", places.private_git()));
        symlink("../shared", places.project.join(".git/commondir")).unwrap();
    }),
    ("alternates", |places| {
        places.put(".git/objects/info/alternates", format!("{}/objects\n", places.private_git()));
    }),
    ("alternates, relative", |places| {
        places.put(".git/objects/info/alternates", "# borrowed\n\n../../../private/.git/objects\n");
    }),
    ("alternates, with the line ends of Windows", |places| {
        places.put(".git/objects/info/alternates", "#\r\n./../../../private/.git/objects\r\n");
    }),
    ("a chain of alternates", |places| {
        places.put("store/info/alternates", format!("{}/objects\n", places.private_git()));
        places.put(".git/objects/info/alternates", "../../store\n");
    }),
    ("an included configuration", |places| {
        places.put(".git/config", "[core]\n\tbare = false\n[INCLUDE]path=../../private/.git/config # x\n");
    }),
    ("a configuration that an included one includes", |places| {
        places.put(".git/more", "[includeIf \"onbranch:]\"]\n path = \"../../private/.git/\\\nconfig\"\n");
        places.put(".git/config", "[include] path = more\n");
    }),
    ("an included file of the home", |places| {
        places.put(".git/config", "[include]\n path = ~/.git-credentials\n");
    }),
    ("ignore rules", |places| {
        places.put(".git/config", format!("[core]\n excludesFile = {}/config\n", places.private_git()));
    }),
    ("objects that are a link", |places| places.link("objects")),
    ("references that are a link", |places| places.link("refs")),
];

#[test]
fn bug_a_git_that_led_out_of_the_project_was_opened_without_a_question() {
    for (title, lead) in LEADS {
        let places = places();
        lead(&places);
        let error = RepositoryAccess::default().open(&places.project).err();
        let error = error.unwrap_or_else(|| panic!("{title}: opened"));
        assert_eq!(error.code, Code::Config, "{title}: {error:?}");
        assert!(error.help_of().unwrap().contains("tgp trust"), "{title}: {error:?}");
        let named = outside_places(&places.project).unwrap();
        assert!(!named.is_empty(), "{title}");
        let private = |place: &PathBuf| place.starts_with(&places.private) || place.starts_with("~");
        assert!(named.iter().all(private), "{title}: {named:?}");
        // With the consent of a person it is a repository like any other; another person's consent is for another place.
        let opened = places.confirmed().open(&places.project);
        assert!(opened.is_ok_and(|opened| opened.is_some()), "{title}");
        let other = RepositoryAccess::confirmed([places.private.join(".git/other")].into());
        assert!(other.open(&places.project).is_err(), "{title}");
    }
}

/// What git itself never makes, and what cannot be read as one thing.
const REFUSED: [(&str, Code, Lead); 12] = [
    ("a branch that is a link", Code::Security, |places| places.link("refs/heads/main")),
    ("a log that is a link", Code::Security, |places| places.link("logs/HEAD")),
    ("a directory of references that is a link", Code::Security, |places| places.link("refs/heads")),
    ("borrowed objects in a link", Code::Security, |places| {
        symlink(places.private.join(".git/objects"), places.project.join(".git/objects/ab")).unwrap();
    }),
    ("packs in a link", Code::Security, |places| places.link("objects/pack")),
    ("ignore rules in a link", Code::Security, |places| {
        fs::create_dir_all(places.private.join(".git/info")).unwrap();
        fs::write(places.private.join(".git/info/exclude"), "x\n").unwrap();
        places.put(".git/info/exclude", "");
        places.link("info/exclude");
    }),
    ("a link in objects that are borrowed inside of the project", Code::Security, |places| {
        fs::create_dir_all(places.project.join("store")).unwrap();
        symlink(places.private.join(".git/objects"), places.project.join("store/ab")).unwrap();
        places.put(".git/objects/info/alternates", "../../store\n");
    }),
    ("a pipe", Code::Security, |places| {
        let pipe = places.project.join(".git/refs/heads/waits");
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }),
    ("alternates in quotes", Code::Git, |places| {
        places.put(".git/objects/info/alternates", format!("\"{}/objects\"\n", places.private_git()));
    }),
    ("alternates relative to nothing", Code::Git, |places| {
        places.put(".git/objects/info/alternates", "private/.git/objects\n");
    }),
    ("a `.git` that names nothing", Code::Git, |places| {
        places.remove_git();
        places.put(".git", "gitdir");
    }),
    ("a configuration that cannot be read", Code::Git, |places| {
        places.put(".git/config", "[include\n path = x\n");
    }),
];

#[test]
fn bug_links_among_the_files_of_git_were_followed() {
    for (title, code, lead) in REFUSED {
        let places = places();
        lead(&places);
        assert_eq!(places.refusal(), Some(code), "{title}");
        // No confirmation is for that.
        let access = RepositoryAccess::confirmed(outside_places(&places.project).unwrap_or_default());
        assert!(access.open(&places.project).is_err(), "{title}");
    }
}

#[test]
fn a_repository_inside_of_the_project_needs_no_question() {
    let places = places();
    let ordinary = RepositoryAccess::default().open(&places.project).unwrap().unwrap().0;
    assert_eq!(ordinary.top(), places.project);
    // Links and other directories of its own, programs that nothing here starts, and other repositories inside of it.
    fs::rename(places.project.join(".git"), places.project.join("meta")).unwrap();
    places.put(".git", "gitdir: meta\n");
    symlink("/bin", places.project.join("meta/hooks-elsewhere")).unwrap();
    assert_eq!(places.refusal(), Some(Code::Config));
    fs::remove_file(places.project.join("meta/hooks-elsewhere")).unwrap();
    let _ = fs::remove_dir_all(places.project.join("meta/hooks"));
    symlink("/bin", places.project.join("meta/hooks")).unwrap();
    fs::create_dir_all(places.project.join("meta/modules")).unwrap();
    symlink(places.private.join(".git"), places.project.join("meta/modules/other")).unwrap();
    symlink("refs/heads/main", places.project.join("meta/OTHER_HEAD")).unwrap();
    assert_eq!(places.refusal(), None);
    assert!(outside_places(&places.project).unwrap().is_empty());
    // The repository above a project is the one that git itself uses.
    let below = places.project.join("packages/a");
    fs::create_dir_all(below.join(".git")).unwrap();
    let found = RepositoryAccess::default().open(&below).unwrap().unwrap().0;
    assert_eq!((found.top(), found.prefix()), (places.project.as_path(), Path::new("packages/a")));
    // Without any, and without one that is whole.
    let alone = TempDir::new().unwrap();
    assert!(RepositoryAccess::default().open(alone.path()).unwrap().is_none());
}

#[test]
fn work_trees_and_submodules_are_confirmed_in_both_directions() {
    let places = places();
    let tree = places.project.parent().unwrap().join("tree");
    git(&places.project, &["worktree", "add", "--quiet", tree.to_str().unwrap()]);
    assert_eq!(repository_owner(&tree), Some(places.project.clone()));
    let used = outside_places(&tree).unwrap();
    let git_directory = places.project.join(".git");
    assert!(used.len() == 2 && used.iter().all(|place| place.starts_with(&git_directory)), "{used:?}");
    assert!(RepositoryAccess::default().open(&tree).is_err());
    let opened = RepositoryAccess::confirmed(used).open(&tree).unwrap().unwrap();
    assert_eq!(opened.0.shared(), git_directory);
    // A directory with a copy of the file is not the work tree, and neither is one that was moved by hand.
    let copy = places.project.parent().unwrap().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(tree.join(".git"), copy.join(".git")).unwrap();
    assert_eq!(repository_owner(&copy), None);
    let moved = places.project.parent().unwrap().join("moved");
    fs::rename(&tree, &moved).unwrap();
    assert_eq!(repository_owner(&moved), None);
    git(&places.project, &["worktree", "repair", moved.to_str().unwrap()]);
    assert_eq!(repository_owner(&moved), Some(places.project.clone()));
    assert_eq!(repository_owner(&places.project), None);

    git(&places.project, &["submodule", "--quiet", "add", places.private.to_str().unwrap(), "parts/sub"]);
    let module = places.project.join("parts/sub");
    assert_eq!(repository_owner(&module), Some(places.project.clone()));
    assert_eq!(main_work_tree(&module), None);
    let used = outside_places(&module).unwrap();
    assert_eq!(used, [git_directory.join("modules/parts/sub")].into());
    assert!(RepositoryAccess::default().open(&module).is_err());
    assert!(RepositoryAccess::confirmed(used).open(&module).unwrap().is_some());
    let elsewhere = places.project.join("parts/elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::copy(module.join(".git"), elsewhere.join(".git")).unwrap();
    assert_eq!(repository_owner(&elsewhere), None, "the module names another directory");
}

#[test]
fn a_git_that_is_exchanged_is_refused_at_the_next_use() {
    let places = places();
    let access = RepositoryAccess::default();
    let (checked, _) = access.open(&places.project).unwrap().unwrap();
    assert!(access.is_current(&places.project, &checked));
    places.link("logs/HEAD");
    assert!(!access.is_current(&places.project, &checked), "a link among its files");
    fs::remove_file(places.project.join(".git/logs/HEAD")).unwrap();
    assert!(access.is_current(&places.project, &checked));
    fs::rename(places.project.join(".git"), places.project.join("old")).unwrap();
    symlink(places.private.join(".git"), places.project.join(".git")).unwrap();
    assert!(!access.is_current(&places.project, &checked));
    assert!(access.open(&places.project).is_err());
}
