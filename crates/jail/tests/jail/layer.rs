//! The layer: what a process does to its project is reported exactly, and the project itself stays as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tgp_jail::{Before, Exit, JailError, LayerChangeKind, Template};

use crate::workshop::{MANY, Workshop, describe, for_everybody, picture, run, told};

fn workshop() -> Workshop {
    let shop = Workshop::new();
    shop.file("readme", "hello\n");
    shop.file("tool.sh", "#!/bin/sh\nexit 0\n");
    shop.file("src/main.rs", "fn main() {}\n");
    shop.file("src/deep/a", "a");
    shop.file("src/deep/b", "b");
    std::os::unix::fs::symlink("readme", shop.project().join("link")).unwrap();
    shop
}

/// A script, and what it changes.
const CASES: &[(&str, &[&str])] = &[
    ("true", &[]),
    ("cat readme src/main.rs link > /dev/null", &[]),
    ("echo new > made", &["write made = new\\n (was Nothing)"]),
    ("echo new > readme", &["write readme = new\\n (was File)"]),
    ("echo more >> readme", &["write readme = hello\\nmore\\n (was File)"]),
    ("echo more >> link", &["write readme = hello\\nmore\\n (was File)"]),
    (": > src/deep/a", &["write src/deep/a =  (was File)"]),
    // Copied up, and the same as before.
    ("touch readme; chmod 600 readme; : >> readme", &[]),
    ("cp readme x && cat x > readme && rm x", &[]),
    ("echo hello > new && mv new readme", &[]),
    ("chmod +x readme", &["write readme* = hello\\n (was File)"]),
    ("mv readme other", &["write other = hello\\n (was Nothing)", "remove readme"]),
    ("rm src/deep/a", &["remove src/deep/a"]),
    ("rm -r src/deep", &["rmdir src/deep", "remove src/deep/a", "remove src/deep/b"]),
    (
        "rm -r src",
        &["rmdir src", "rmdir src/deep", "remove src/deep/a", "remove src/deep/b", "remove src/main.rs"],
    ),
    // Created again: what is the same again is not a change, and what is gone in a directory further down is
    // reported.
    ("cp -r src x && rm -r src && mv x src", &[]),
    (
        "rm -r src && mkdir src",
        &["rmdir src/deep", "remove src/deep/a", "remove src/deep/b", "remove src/main.rs"],
    ),
    (
        "rm -r src && mkdir -p src/deep && printf a > src/deep/a && echo c > src/deep/c",
        &["remove src/deep/b", "write src/deep/c = c\\n (was Nothing)", "remove src/main.rs"],
    ),
    (
        "mv src code",
        &[
            "mkdir code",
            "mkdir code/deep",
            "write code/deep/a = a (was Nothing)",
            "write code/deep/b = b (was Nothing)",
            "write code/main.rs = fn main() {}\\n (was Nothing)",
            "rmdir src",
            "rmdir src/deep",
            "remove src/deep/a",
            "remove src/deep/b",
            "remove src/main.rs",
        ],
    ),
    // One kind of thing in the place of another.
    ("rm readme && mkdir readme", &["remove readme", "mkdir readme"]),
    (
        "rm -r src/deep && echo x > src/deep",
        &[
            "rmdir src/deep",
            "write src/deep = x\\n (was Directory)",
            "remove src/deep/a",
            "remove src/deep/b",
        ],
    ),
    ("rm link && echo x > link", &["write link = x\\n (was Link)"]),
    ("rm readme && ln -s tool.sh readme", &["link readme -> tool.sh"]),
    ("ln -s readme other", &["link other -> readme"]),
    ("ln -sfn /etc/passwd link", &["link link -> /etc/passwd"]),
    ("ln -sfn readme link", &[]),
    ("ln readme hard", &["write hard = hello\\n (was Nothing)"]),
    (
        "ln readme hard && echo x >> hard",
        &["write hard = hello\\nx\\n (was Nothing)", "write readme = hello\\nx\\n (was File)"],
    ),
    ("mkfifo pipe", &["special pipe"]),
    ("mkdir -p a/b && rmdir a/b a", &[]),
    ("mkdir -p a/b", &["mkdir a", "mkdir a/b"]),
    ("mkdir a && echo x > a/x && chmod 0 a/x a", &["mkdir a", "write a/x = x\\n (was Nothing)"]),
    ("truncate -s 5M big", &["write big = 5242880 bytes (was Nothing)"]),
    ("head -c 3000000 /dev/urandom > big", &["write big = 3000000 bytes (was Nothing)"]),
    (
        "touch -- 'grüße ☃' \"$(printf 'two\\nlines')\" '-rf' ' '",
        &[
            "write   =  (was Nothing)",
            "write -rf =  (was Nothing)",
            "write grüße ☃ =  (was Nothing)",
            "write two\nlines =  (was Nothing)",
        ],
    ),
    ("echo x > /tmp/here && echo x > ~/there && echo x > /dev/shm/there && echo x > /var/tmp/there", &[]),
];

#[test]
fn every_change_is_told_and_nothing_is_applied() {
    for_everybody("layer::every_change_is_told_and_nothing_is_applied", || {
        let shop = workshop();
        let before = picture(&shop.project()).unwrap();
        for (script, expected) in CASES {
            assert_eq!(shop.changes(script), *expected, "`{script}`");
            assert_eq!(picture(&shop.project()).unwrap(), before, "`{script}`");
            assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 0, "`{script}` has left something");
        }
    });
}

#[test]
fn many_files_are_told_and_too_many_refused() {
    for_everybody("layer::many_files_are_told_and_too_many_refused", || {
        let shop = workshop();
        let finished =
            shop.run("mkdir d && cd d && i=0; while [ $i -lt 1000 ]; do echo $i > f$i; i=$((i+1)); done");
        assert_eq!(finished.exit, Exit::Code(0), "{}", told(&finished));
        let changes = finished.layer.changes(1001).unwrap();
        assert_eq!(changes.len(), 1001);
        assert!(changes.is_sorted_by(|left, right| left.path < right.path));
        assert!(changes.iter().skip(1).all(|change| {
            let LayerChangeKind::Write { content, .. } = &change.kind else { return false };
            let number = change.path.to_str().unwrap().strip_prefix("d/f").unwrap();
            change.before == Before::Nothing && fs::read_to_string(content).unwrap() == format!("{number}\n")
        }));
        let error = finished.layer.changes(1000).unwrap_err();
        assert!(matches!(error, JailError::TooManyChanges { limit: 1000 }), "{error}");
        // Removing one directory of the project is as many changes as there is in it.
        fs::create_dir(shop.project().join("full")).unwrap();
        for number in 0..50 {
            shop.file(&format!("full/{number}"), "");
        }
        let finished = shop.run("rm -r full");
        assert_eq!(finished.layer.changes(51).unwrap().len(), 51);
        assert!(matches!(finished.layer.changes(50), Err(JailError::TooManyChanges { limit: 50 })));
    });
}

/// A path that no call can name any more must neither hang nor overflow anything, and must be removed all the same.
#[test]
fn a_bottomless_directory_is_refused_and_removed() {
    for_everybody("layer::a_bottomless_directory_is_refused_and_removed", || {
        let shop = workshop();
        let finished = shop.run(
            "name=$(printf '%0200d' 0); i=0; while [ $i -lt 60 ]; do mkdir $name && cd -P $name || exit 1; i=$((i+1)); done",
        );
        assert_eq!(finished.exit, Exit::LayerFull, "{}", told(&finished));
        assert!(matches!(finished.layer.changes(MANY), Err(JailError::Layer { .. })));
        drop(finished);
        assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 0);
    });
}

#[test]
fn directories_with_odd_modes_are_read_and_removed() {
    for_everybody("layer::directories_with_odd_modes_are_read_and_removed", || {
        let shop = workshop();
        let finished = shop.run("mkdir -p a/b/c && echo x > a/b/c/d && chmod 0 a/b/c/d a/b/c a/b a");
        assert_eq!(finished.exit, Exit::Code(0), "{}", told(&finished));
        assert_eq!(describe(&finished).len(), 4);
        // Dropped without having been read, too.
        drop(shop.run("mkdir -p a/b/c && echo x > a/b/c/d && chmod 0 a/b/c/d a/b/c a/b a"));
        drop(finished);
        assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 0);
    });
}

/// What a killed kernel leaves is swept up by the next start; what a living one uses is not.
#[test]
fn leftovers_are_swept_up() {
    for_everybody("layer::leftovers_are_swept_up", || {
        let shop = workshop();
        let leftover = shop.scratch().join("layer-999999-0");
        fs::create_dir_all(leftover.join("upper/a/b")).unwrap();
        fs::create_dir_all(leftover.join("work/work")).unwrap();
        fs::set_permissions(leftover.join("work/work"), PermissionsExt::from_mode(0o000)).unwrap();
        fs::set_permissions(leftover.join("upper/a"), PermissionsExt::from_mode(0o000)).unwrap();
        fs::write(leftover.with_extension("lock"), "").unwrap();
        fs::write(shop.scratch().join("unrelated"), "").unwrap();
        let first = shop.run("echo x > x");
        assert!(!leftover.exists() && !leftover.with_extension("lock").exists());
        let second = shop.run("true");
        assert_eq!(describe(&first), ["write x = x\\n (was Nothing)"]);
        assert_eq!(describe(&second), [""; 0]);
        drop((first, second));
        let left: Vec<_> =
            fs::read_dir(shop.scratch()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["unrelated"]);
    });
}

#[test]
fn hidden_read_only_and_direct_paths_are_what_they_say() {
    for_everybody("layer::hidden_read_only_and_direct_paths_are_what_they_say", || {
        let shop = workshop();
        shop.file(".env", "treasure");
        shop.file("secrets/key", "treasure");
        shop.file(".git/config", "[core]\n");
        shop.file("target/debug/old", "old");
        std::os::unix::fs::symlink("secrets/key", shop.project().join("shortcut")).unwrap();
        let order = |script: &str| {
            let mut order = shop.order(script);
            order.hidden = vec![".env".into(), "secrets".into(), "not/there".into()];
            order.read_only = vec![".git".into(), "neither".into()];
            order.direct = vec!["target".into(), "dist".into()];
            order
        };
        let check = |script: &str, succeeds: bool, changes: &[&str]| {
            let finished = run(&order(script));
            let text = told(&finished);
            assert_eq!(finished.exit == Exit::Code(0), succeeds, "`{script}` {text}");
            assert!(!text.contains("treasure"), "`{script}` {text}");
            assert_eq!(describe(&finished), changes, "`{script}`");
        };
        check("cat .env; test -z \"$(cat .env)\"", true, &[]);
        check("cat secrets/key", false, &[]);
        check("cat shortcut", false, &[]);
        check("test -z \"$(ls -A secrets)\"", true, &[]);
        // What is written to a hidden file is refused, not lost.
        check("echo x > .env", false, &[]);
        check("echo x >> .env", false, &[]);
        check("echo x > /.hidden", false, &[]);
        check("rm -f .env", false, &[]);
        check("mv .env other", false, &[]);
        check("rm -rf secrets", false, &[]);
        check("echo x > secrets/new", false, &[]);
        check("chmod 777 secrets", false, &[]);
        check("ln .env other", false, &[]);
        check("cp .env other", true, &["write other =  (was Nothing)"]);
        check("cat .git/config", true, &[]);
        check("echo x >> .git/config", false, &[]);
        check("echo x > .git/new", false, &[]);
        check("rm -rf .git", false, &[]);
        check("mv .git other", false, &[]);
        check("chmod 777 .git/config", false, &[]);
        check("echo new > target/debug/new && rm target/debug/old", true, &[]);
        assert_eq!(fs::read_to_string(shop.project().join("target/debug/new")).unwrap(), "new\n");
        assert!(!shop.project().join("target/debug/old").exists());
        // A hard link would carry a file out of the layer, or into it.
        check("ln target/debug/new here", false, &[]);
        check("ln readme target/readme", false, &[]);
        // What does not exist is an ordinary part of the layer.
        check("mkdir dist && echo x > dist/x", true, &["mkdir dist", "write dist/x = x\\n (was Nothing)"]);
        assert_eq!(fs::read_to_string(shop.project().join("secrets/key")).unwrap(), "treasure");
        assert_eq!(fs::read_to_string(shop.project().join(".env")).unwrap(), "treasure");
    });
}

#[test]
fn readable_paths_are_there_and_the_rest_is_not() {
    for_everybody("layer::readable_paths_are_there_and_the_rest_is_not", || {
        let shop = workshop();
        let outside = shop.outside();
        fs::create_dir(outside.join("bin")).unwrap();
        fs::write(outside.join("bin/hello"), "#!/bin/sh\necho from outside\n").unwrap();
        fs::set_permissions(outside.join("bin/hello"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(outside.join("secret"), "treasure").unwrap();
        let mut order =
            shop.order("hello; cat ../outside/secret; ls -A ../outside; echo x > ../outside/bin/new");
        order.readable = vec![outside.join("bin"), outside.join("missing")];
        order.environment = vec![("PATH".into(), format!("{}:/usr/bin:/bin", outside.join("bin").display()))];
        let finished = run(&order);
        assert_eq!(finished.stdout.to_text(), "from outside\nbin\n", "{}", told(&finished));
        assert_eq!(fs::read_dir(outside.join("bin")).unwrap().count(), 1);
        // The root holds what was put there and nothing else.
        let finished =
            shop.run("echo $(ls -A /) $(ls -A /var); ls -A /root /home /run /mnt /boot /etc/shadow");
        let text = finished.stdout.to_text();
        assert!(text.ends_with(" usr var tmp\n"), "{text}");
        for absent in ["boot", "home", "mnt", "root", "run", "shadow", "srv"] {
            assert!(!text.split_whitespace().any(|name| name == absent), "{text}");
        }
    });
}

#[test]
fn the_environment_and_the_start_are_as_ordered() {
    for_everybody("layer::the_environment_and_the_start_are_as_ordered", || {
        let shop = workshop();
        let mut order = shop.order("env | sort; pwd; cat; umask; echo ~");
        order.directory = "src/deep".into();
        order.stdin = b"from stdin\n".to_vec();
        order.environment = vec![("COLOUR".into(), "blue".into()), ("LANG".into(), "C".into())];
        let text = run(&order).stdout.to_text();
        let project = shop.project().canonicalize().unwrap();
        let project = project.to_str().unwrap();
        assert_eq!(
            text,
            format!(
                "COLOUR=blue\nHOME=/tmp/home\nLANG=C\n\
                 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nPWD={project}/src/deep\n\
                 TMPDIR=/tmp\n{project}/src/deep\nfrom stdin\n0022\n/tmp/home\n"
            )
        );
        assert_eq!(shop.run("cat; echo end").stdout.to_text(), "end\n");
    });
}

#[test]
fn a_cache_outlives_the_command_and_is_written_only_where_the_order_says_so() {
    for_everybody("layer::a_cache_outlives_the_command_and_is_written_only_where_the_order_says_so", || {
        let shop = workshop();
        let cache = shop.scratch().with_file_name("cache");
        fs::create_dir(&cache).unwrap();
        let check = |access: Option<tgp_jail::CacheAccess>, script: &str, succeeds: bool| {
            let mut order = shop.order(script);
            order.cache = access.map(|access| tgp_jail::CacheMount { source: cache.clone(), access });
            let finished = run(&order);
            assert_eq!(finished.exit == Exit::Code(0), succeeds, "`{script}` {}", told(&finished));
            assert_eq!(describe(&finished), [""; 0], "`{script}`");
        };
        let (read, write) = (Some(tgp_jail::CacheAccess::Read), Some(tgp_jail::CacheAccess::Write));
        check(write, "mkdir /tmp/cache/a && echo kept > /tmp/cache/a/b", true);
        check(read, "test \"$(cat /tmp/cache/a/b)\" = kept", true);
        check(read, "echo forged > /tmp/cache/a/b", false);
        check(read, "rm -rf /tmp/cache/a", false);
        check(read, "chmod 777 /tmp/cache/a", false);
        check(None, "test -e /tmp/cache", false);
        check(None, "mkdir /tmp/cache && echo lost > /tmp/cache/a", true);
        assert_eq!(fs::read_to_string(cache.join("a/b")).unwrap(), "kept\n");
        check(write, "echo more >> /tmp/cache/a/b", true);
        assert_eq!(fs::read_to_string(cache.join("a/b")).unwrap(), "kept\nmore\n");
        assert!(tgp_jail::exceeds(&cache, 4) && !tgp_jail::exceeds(&cache, 1 << 20));
        tgp_jail::remove_tree(&cache).unwrap();
        assert!(!cache.exists());
    });
}

#[test]
fn an_order_that_cannot_be_is_refused() {
    for_everybody("layer::an_order_that_cannot_be_is_refused", || {
        let shop = workshop();
        std::os::unix::fs::symlink(shop.outside(), shop.project().join("way-out")).unwrap();
        let refused = |change: &dyn Fn(&mut tgp_jail::CommandSpec)| {
            let mut order = shop.order("echo started > /dev/null");
            change(&mut order);
            let error = tgp_jail::start(&order).map(|_| ()).expect_err("it was started");
            assert!(!error.to_string().is_empty());
            error
        };
        let is_order = |error| assert!(matches!(error, JailError::Order { .. }), "{error}");
        is_order(refused(&|order| order.scratch = shop.project().join("src")));
        is_order(refused(&|order| order.project = shop.scratch().parent().unwrap().to_owned()));
        is_order(refused(&|order| order.project = "/".into()));
        is_order(refused(&|order| order.project = "/usr".into()));
        is_order(refused(&|order| order.project = "/proc/self".into()));
        is_order(refused(&|order| order.directory = "../outside".into()));
        is_order(refused(&|order| order.directory = "readme".into()));
        is_order(refused(&|order| order.direct = vec!["way-out".into()]));
        is_order(refused(&|order| order.direct = vec!["".into()]));
        is_order(refused(&|order| order.direct = vec!["/etc".into()]));
        is_order(refused(&|order| order.hidden = vec!["../outside".into()]));
        is_order(refused(&|order| order.hidden = vec!["".into()]));
        is_order(refused(&|order| order.readable = vec!["/".into()]));
        is_order(refused(&|order| order.readable = vec!["/proc".into()]));
        is_order(refused(&|order| order.readable = vec![shop.scratch().parent().unwrap().to_owned()]));
        for source in [shop.project(), shop.project().join("src"), shop.scratch(), "/usr".into(), "/".into()]
        {
            let mount = tgp_jail::CacheMount { source, access: tgp_jail::CacheAccess::Read };
            is_order(refused(&|order| order.cache = Some(mount.clone())));
        }
        is_order(refused(&|order| order.stdin = vec![0; tgp_jail::MAX_STDIN_BYTES + 1]));
        let error = refused(&|order| order.project = "/no/such/project".into());
        assert!(matches!(&error, JailError::Path { path, .. } if path == Path::new("/no/such/project")));
        let error = refused(&|order| order.program = "no-such-program".into());
        assert!(
            matches!(&error, JailError::Program { program, .. } if program == "no-such-program"),
            "{error}"
        );
        assert_eq!(fs::read_dir(shop.scratch()).unwrap().count(), 0);
    });
}

#[test]
fn templates_have_names() {
    for template in Template::ALL {
        assert_eq!(Template::named(template.name()), Some(template));
        assert!(template.limits().memory_bytes > 0 && !template.deadline().is_zero());
    }
    assert_eq!(Template::named("root"), None);
}

/// A process that still had a directory of the tree swapped it for a link while the tree was removed, and files outside were
/// removed with it.
#[test]
fn bug_a_removal_followed_a_link_that_took_the_place_of_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    for name in ["a", "b", "sub/c"] {
        fs::write(outside.join(name), "precious").unwrap();
    }
    for round in 0..40 {
        let tree = folder.path().join(format!("tree-{round}"));
        let held = tree.join("held");
        for number in 0..40 {
            fs::create_dir_all(held.join(format!("d{number}/e"))).unwrap();
            fs::write(held.join(format!("d{number}/e/f")), "x").unwrap();
            std::os::unix::fs::symlink(&outside, held.join(format!("l{number}"))).unwrap();
        }
        let inside = fs::File::open(&held).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    for number in 0..40 {
                        let (directory, link) = (format!("d{number}"), format!("l{number}"));
                        let flags = nix::fcntl::RenameFlags::RENAME_EXCHANGE;
                        let _ =
                            nix::fcntl::renameat2(&inside, directory.as_str(), &inside, link.as_str(), flags);
                    }
                }
            });
            let removed = tgp_jail::remove_tree(&tree);
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            removed.unwrap();
        });
        assert!(!tree.exists());
        for name in ["a", "b", "sub/c"] {
            assert_eq!(
                fs::read_to_string(outside.join(name)).unwrap(),
                "precious",
                "{name} in round {round}"
            );
        }
    }
}

#[test]
fn what_has_the_name_of_the_place_of_a_removal_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    for make in [
        |place: &Path| fs::write(place, "x").unwrap(),
        |place: &Path| std::os::unix::fs::symlink("/", place).unwrap(),
        |place: &Path| {
            fs::create_dir_all(place.join("18446744073709551615/1")).unwrap();
            fs::create_dir_all(place.join("1/1")).unwrap();
            fs::write(place.join("2"), "x").unwrap();
        },
    ] {
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        make(&tree.join("removed"));
        tgp_jail::remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }
    // The tree itself is never a link.
    std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
    tgp_jail::remove_tree(&folder.path().join("link")).unwrap_err();
    assert!(folder.path().exists());
}
