//! Files that run later, outside of any jail: at a commit, a push, a build, when an editor opens the folder, when packages
//! are installed, or as the next agent's instructions.
//!
//! The approval of a command or a write covers what it does now. What these files hold takes effect at another time,
//! with the rights of the person or of a pipeline, so a change of one is shown to a person by itself
//! (`default/runs-later`), unless a rule names the file.

use std::borrow::Cow;

use serde_json::Value;
use tgp_contract::RelativePath;
use tgp_text::fold_name;

/// A manifest that is larger is not parsed: any change of it counts.
const MAX_MANIFEST_BYTES: usize = 1 << 20;

/// Directories of which every file counts.
const DIRECTORIES: &[&str] = &[
    // Pipelines.
    ".github",
    ".gitlab",
    ".gitea",
    ".forgejo",
    ".circleci",
    ".buildkite",
    ".woodpecker",
    ".teamcity",
    ".semaphore",
    ".tekton",
    ".builds",
    // Hooks.
    ".husky",
    ".githooks",
    ".lefthook",
    // Editors and their containers.
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".devcontainer",
    ".vim",
    ".nvim",
    ".idx",
    // Build tools: runners, wrappers, linkers, plugins.
    ".cargo",
    ".mvn",
    ".yarn",
    ".mise",
    "buildsrc",
    // Other agents: instructions, hooks, servers.
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".windsurf",
    ".clinerules",
    ".roo",
    ".kiro",
    ".continue",
    ".opencode",
    ".junie",
    ".amazonq",
    ".augment",
    ".trae",
    ".goose",
    ".crush",
];

/// Files by their names, at any depth.
const NAMES: &[&str] = &[
    // Pipelines.
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    ".travis.yml",
    ".drone.yml",
    ".drone.yaml",
    ".build.yml",
    ".build.yaml",
    ".readthedocs.yaml",
    ".readthedocs.yml",
    ".gitpod.yml",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".cirrus.yml",
    ".appveyor.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    "azure-pipelines.yaml",
    "bitbucket-pipelines.yml",
    "buildspec.yml",
    "buildspec.yaml",
    "cloudbuild.yaml",
    "cloudbuild.yml",
    "jenkinsfile",
    // Git: filters, other repositories, and what makes a directory a repository with its own configuration.
    ".gitattributes",
    ".gitmodules",
    ".gitconfig",
    "head",
    "config",
    "config.worktree",
    "commondir",
    // Hooks of git, which `core.hooksPath` finds in any directory.
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    // Hooks by other programs.
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".pre-commit-hooks.yaml",
    ".overcommit.yml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "lefthook-local.yml",
    "lefthook-local.yaml",
    "lefthook-local.toml",
    "lefthook-local.json",
    "prek.toml",
    "lefthook.toml",
    "lefthook.json",
    ".lintstagedrc",
    ".lintstagedrc.json",
    ".lintstagedrc.yaml",
    ".lintstagedrc.yml",
    ".simple-git-hooks.json",
    ".simple-git-hooks.js",
    ".simple-git-hooks.cjs",
    // Editors and debuggers.
    ".devcontainer.json",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
    ".lvimrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".pdbrc",
    ".gdbinit",
    ".lldbinit",
    // Shells and environments that are entered with a directory.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".autoenv.zsh",
    ".rprofile",
    ".irbrc",
    ".pryrc",
    ".mise.toml",
    "mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    "devenv.nix",
    "devbox.json",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".tool-versions",
    "flake.nix",
    "shell.nix",
    "default.nix",
    // Task lists and build scripts.
    "makefile",
    "gnumakefile",
    "justfile",
    ".justfile",
    "taskfile.yml",
    "taskfile.yaml",
    "taskfile.dist.yml",
    "taskfile.dist.yaml",
    "rakefile.rb",
    "gemfile",
    "cmakelists.txt",
    "pom.xml",
    "build.xml",
    "build.sbt",
    "mix.exs",
    "conanfile.py",
    "sconstruct",
    "sconscript",
    "setup.hs",
    "package.swift",
    ".bazelrc",
    "module.bazel",
    "build.bazel",
    "workspace.bazel",
    "gradle-wrapper.properties",
    "meson.build",
    "wscript",
    "rakefile",
    "procfile",
    "vagrantfile",
    "build.rs",
    "setup.py",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    "gradlew",
    "gradlew.bat",
    "mvnw",
    "mvnw.cmd",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    // Package managers: code and commands that an installation runs.
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    "pnpm-workspace.yaml",
    "package.json5",
    "package.yaml",
    "binding.gyp",
    "bunfig.toml",
    "deno.jsonc",
    // The next agent's instructions and servers.
    "agents.md",
    "claude.md",
    "gemini.md",
    "claude.local.md",
    "agents.override.md",
    "agents.local.md",
    "qwen.md",
    "crush.md",
    "copilot-instructions.md",
    ".goosehints",
    ".rules",
    "opencode.json",
    "opencode.jsonc",
    "crush.json",
    ".crush.json",
    ".cursorrules",
    ".windsurfrules",
    ".mcp.json",
    ".aider.conf.yml",
];

/// Files by how their names begin or end.
const BEGINNINGS: &[&str] = &["lint-staged.config.", ".lintstagedrc.", ".huskyrc", "gulpfile.", "gruntfile."];
const ENDINGS: &[&str] = &[".code-workspace", ".sublime-project", ".gemspec", ".pth"];

/// Fields of manifests that say what is executed; the others may change freely. A path names a field of a field.
const PACKAGE_JSON: &[&str] = &[
    "scripts",
    "bin",
    "directories",
    "gypfile",
    "husky",
    "lint-staged",
    "simple-git-hooks",
    "pre-commit",
    "pre-push",
    "gitHooks",
    "ghooks",
    "config",
    "packageManager",
    "pnpm",
    "trustedDependencies",
    "nodemonConfig",
    "wireit",
    "nx",
];
const COMPOSER_JSON: &[&str] = &["scripts", "bin", "config"];
const DENO_JSON: &[&str] = &["tasks"];
const CARGO_TOML: &[&str] = &["package.build", "project.build"];
const PYPROJECT_TOML: &[&str] = &[
    "build-system",
    "project.scripts",
    "project.gui-scripts",
    "project.entry-points",
    "tool.cibuildwheel",
    "tool.pixi",
    "tool.rye",
    "tool.tox",
    "tool.hatch",
    "tool.pdm",
    "tool.poe",
    "tool.poetry.build",
    "tool.poetry.scripts",
    "tool.setuptools",
    "tool.taskipy",
];

/// How a manifest is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Toml,
}

/// What of a file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelevantPart {
    Whole,
    Fields(Format, &'static [&'static str]),
}

/// What counts of a file, and the number of the part of its path by which it is known. Names are compared as the most
/// forgiving file system would.
fn counted(path: &RelativePath) -> Option<(usize, RelevantPart)> {
    let parts: Vec<_> = path.parts().map(fold_name).collect();
    if let Some(at) = parts.iter().position(|part| DIRECTORIES.contains(&part.as_ref())) {
        return Some((at, RelevantPart::Whole));
    }
    let at = parts.len().checked_sub(1)?;
    let name = parts.get(at)?.as_ref();
    let counted = match name {
        "package.json" => RelevantPart::Fields(Format::Json, PACKAGE_JSON),
        "composer.json" => RelevantPart::Fields(Format::Json, COMPOSER_JSON),
        "deno.json" => RelevantPart::Fields(Format::Json, DENO_JSON),
        "cargo.toml" => RelevantPart::Fields(Format::Toml, CARGO_TOML),
        "pyproject.toml" => RelevantPart::Fields(Format::Toml, PYPROJECT_TOML),
        _ if NAMES.contains(&name)
            || is_hook(&parts)
            || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            || ENDINGS.iter().any(|ending| name.ends_with(ending)) =>
        {
            RelevantPart::Whole
        }
        _ => return None,
    };
    Some((at, counted))
}

/// Whether a file is in a directory for hooks and has the name of a program: without an ending.
fn is_hook(parts: &[Cow<'_, str>]) -> bool {
    matches!(parts, [.., directory, name] if directory == "hooks" && !name.contains('.'))
}

/// Whether a file can run later at all, by its name.
#[must_use]
pub fn may_run_later(path: &RelativePath) -> bool {
    counted(path).is_some()
}

/// Whether every change of the file counts, so that its contents need not be read.
#[must_use]
pub fn always_runs_later(path: &RelativePath) -> bool {
    matches!(counted(path), Some((_, RelevantPart::Whole)))
}

/// Whether a change from one content to the other is a change of what runs later; `None` means no file. A manifest that
/// cannot be read as what it is counts in any case.
#[must_use]
pub fn runs_later(path: &RelativePath, before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    match counted(path) {
        None => false,
        Some((_, RelevantPart::Whole)) => true,
        Some((_, RelevantPart::Fields(format, names))) => {
            let (Some(before), Some(after)) = (manifest(format, before), manifest(format, after)) else {
                return true;
            };
            names.iter().any(|name| field(&before, name) != field(&after, name))
        }
    }
}

/// Whether a glob of a rule names the file: a part of the glob without any wildcard is, letter by letter, the part of the
/// path by which the file is known. A file that no table lists is known by its own name.
pub(crate) fn names(glob: &str, path: &RelativePath) -> bool {
    let last = path.parts().count().saturating_sub(1);
    let at = counted(path).map_or(last, |(at, _)| at);
    path.parts().nth(at).is_some_and(|known| glob.split('/').any(|part| part == known))
}

/// The fields of a manifest; an empty object for a file that is not there.
fn manifest(format: Format, content: Option<&[u8]>) -> Option<Value> {
    let Some(content) = content else { return Some(Value::Object(serde_json::Map::new())) };
    if content.len() > MAX_MANIFEST_BYTES {
        return None;
    }
    let value: Value = match format {
        Format::Json => serde_json::from_slice(content).ok()?,
        Format::Toml => toml::from_str(std::str::from_utf8(content).ok()?).ok()?,
    };
    value.is_object().then_some(value)
}

fn field<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}
