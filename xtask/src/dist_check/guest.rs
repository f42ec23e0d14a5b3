//! A directory tree of its own, in which a program sees nothing of this machine but its kernel: busybox, and the
//! programs that a check adds.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::setup;

/// Makes the tree the root of a new mount namespace and runs a command there. A plain chroot would not do: in it the
/// kernel refuses the namespaces that the sandbox wants.
const ENTER: &str = r#"
set -e
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
for device in null zero random urandom; do
    : > "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
pivot_root . old
cd /project
/bin/busybox umount -l /old
exec /bin/busybox env -i HOME=/root PATH=/root/.local/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 \
    /bin/busybox timeout 120 /bin/busybox sh -c "$2"
"#;

/// Parts of the Python library that no installation needs.
const SKIPPED: [&str; 8] =
    ["test", "tests", "idlelib", "turtledemo", "tkinter", "site-packages", "dist-packages", "__pycache__"];

/// The tree, which is removed with the value.
pub(super) struct Guest {
    root: PathBuf,
}

/// How long a command took.
pub(super) struct Measurement {
    pub(super) first_output: Duration,
    pub(super) all: Duration,
}

/// What a command printed.
pub(super) struct Printed {
    pub(super) text: String,
    pub(super) errors: String,
}

impl Guest {
    pub(super) fn new() -> Result<Self> {
        let busybox = setup::program(&["busybox"])
            .context("busybox is not installed; install Debian's package busybox-static")?;
        let root = std::env::temp_dir().join(format!("tgp-dist-check-{}", std::process::id()));
        if root.exists() {
            bail!("{} is there already; remove it", root.display());
        }
        let guest = Self { root };
        for folder in ["bin", "dev", "etc", "old", "proc", "project", "packages", "root", "tmp", "usr/bin"] {
            fs::create_dir_all(guest.root.join(folder))?;
        }
        fs::set_permissions(guest.root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
        fs::write(guest.root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
        fs::copy(&busybox, guest.root.join("bin/busybox"))
            .with_context(|| format!("cannot copy {}", busybox.display()))?;
        guest.add_libraries(&busybox)?;
        guest.run("/bin/busybox --install -s /bin && /bin/busybox ln -s /bin/env /usr/bin/env")?;
        Ok(guest)
    }

    /// Puts a file of this machine in the same place.
    fn add(&self, path: &Path) -> Result<()> {
        let target = self.path(path);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        Ok(())
    }

    fn path(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The shared libraries that a program or a library names, as `ldd` lists them.
    fn add_libraries(&self, path: &Path) -> Result<()> {
        let output = Command::new("ldd").arg(path).output().context("cannot start ldd")?;
        for library in libraries(&String::from_utf8_lossy(&output.stdout)) {
            if !self.path(&library).exists() {
                self.add(&library)?;
            }
        }
        Ok(())
    }

    /// The C library of this machine, which every system has that runs programs for it.
    pub(super) fn add_c_library(&self) -> Result<()> {
        let output = Command::new("ldd").arg("/bin/sh").output().context("cannot start ldd")?;
        let mut names = libraries(&String::from_utf8_lossy(&output.stdout));
        let folder = names.iter().find(|path| path.ends_with("libc.so.6")).and_then(|path| path.parent());
        let folder = folder.context("this machine has no C library libc.so.6")?.to_owned();
        names.extend(["libm.so.6", "libgcc_s.so.1"].map(|name| folder.join(name)));
        names.iter().filter(|path| !self.path(path).exists()).try_for_each(|path| self.add(path))
    }

    /// A program of the path with its libraries.
    pub(super) fn add_program(&self, name: &str) -> Result<()> {
        let path = setup::program(&[name]).with_context(|| format!("{name} is not installed"))?;
        let path = fs::canonicalize(path)?;
        self.add_libraries(&path)?;
        self.add(&path)?;
        self.link(&path, name)
    }

    fn link(&self, path: &Path, name: &str) -> Result<()> {
        let link = self.root.join("usr/bin").join(name);
        if !link.exists() {
            symlink(path, link)?;
        }
        Ok(())
    }

    /// npm and npx, which are JavaScript.
    pub(super) fn add_npm(&self) -> Result<()> {
        let npm = setup::program(&["npm"]).context("npm is not installed")?;
        let npm = fs::canonicalize(npm)?;
        let folder = npm.parent().and_then(Path::parent).context("npm is not in a folder of its own")?;
        self.add_tree(folder, &[])?;
        self.link(&folder.join("bin/npm-cli.js"), "npm")?;
        self.link(&folder.join("bin/npx-cli.js"), "npx")
    }

    /// Python with its library and pip, but none of the packages that are installed here.
    pub(super) fn add_python(&self) -> Result<()> {
        let output = Command::new("python3")
            .args(["-c", "import os, pip, sys, sysconfig\nprint(os.path.realpath(sys.executable))\nprint(sysconfig.get_path('stdlib'))\nprint(pip.__path__[0])"])
            .output()
            .context("cannot start python3")?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = output.lines().map(PathBuf::from);
        let (Some(program), Some(library), Some(pip)) = (lines.next(), lines.next(), lines.next()) else {
            bail!("python3 with pip is not installed");
        };
        self.add_libraries(&program)?;
        self.add(&program)?;
        self.link(&program, "python3")?;
        self.add_tree(&library, &SKIPPED)?;
        self.add_tree(&pip, &["__pycache__"])?;
        for entry in fs::read_dir(library.join("lib-dynload"))?.flatten() {
            self.add_libraries(&entry.path())?;
        }
        Ok(())
    }

    fn add_tree(&self, folder: &Path, skipped: &[&str]) -> Result<()> {
        fs::create_dir_all(self.path(folder))?;
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !skipped.contains(&name.as_ref()) {
                    self.add_tree(&path, skipped)?;
                }
            } else if path.is_file() {
                self.add(&path)?;
            }
        }
        Ok(())
    }

    /// Puts a package into the tree, and gives its path there.
    pub(super) fn add_package(&self, path: &Path) -> Result<String> {
        let name = path.file_name().unwrap_or_default();
        fs::copy(path, self.root.join("packages").join(name))
            .with_context(|| format!("cannot copy {}", path.display()))?;
        Ok(format!("/packages/{}", name.to_string_lossy()))
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--pid", "--fork", "sh", "-c", ENTER, "sh"])
            .arg(&self.root)
            .arg(script)
            .stdin(Stdio::null());
        command
    }

    /// Writes a file below the folder that commands start in.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.root.join("project").join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Runs a command in the tree, and fails with what it printed when it fails.
    pub(super) fn run(&self, script: &str) -> Result<()> {
        self.output(script).map(drop)
    }

    /// Runs a command in the tree and gives what it printed to both streams.
    pub(super) fn output(&self, script: &str) -> Result<Printed> {
        let output = self.command(script).output().context("cannot start unshare")?;
        let printed = Printed {
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        if !output.status.success() {
            bail!("`{script}` failed: {}\n{}", printed.text.trim(), printed.errors.trim());
        }
        Ok(printed)
    }

    /// Runs a command in the tree and measures when its first output comes.
    pub(super) fn measure(&self, script: &str) -> Result<Measurement> {
        let started = Instant::now();
        let mut child = self
            .command(&format!("exec 2>&1\n{script}"))
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start unshare")?;
        let mut output = child.stdout.take().context("its output was not captured")?;
        let mut text = vec![0; 1];
        output.read_exact(&mut text).with_context(|| format!("`{script}` printed nothing"))?;
        let first_output = started.elapsed();
        output.read_to_end(&mut text)?;
        let status = child.wait()?;
        if !status.success() {
            bail!("`{script}` failed ({status}):\n{}", String::from_utf8_lossy(&text).trim());
        }
        Ok(Measurement { first_output, all: started.elapsed() })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Its mounts ended with the namespaces of its commands.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The paths in the output of `ldd`: `name => /path (0x…)` and `/path (0x…)`.
fn libraries(output: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let path = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
        let path = path.split(' ').next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    output.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_ldd() {
        let output = "\tlinux-vdso.so.1 (0x1)\n\tlibm.so.6 => /lib/libm.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        assert_eq!(libraries(output), [PathBuf::from("/lib/libm.so.6"), PathBuf::from("/lib64/ld.so.2")]);
        assert!(libraries("\tnot a dynamic executable\n").is_empty());
    }
}
