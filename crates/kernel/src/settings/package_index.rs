//! The index of Python packages that the user has chosen: by variables, or in the settings of pip. Settings in the project are
//! not read, because an agent writes them.

use std::path::{Path, PathBuf};

use tgp_fs::{read_plain, real_place};

use crate::boot::Environment;

/// Bytes of a file with settings.
const MAX_BYTES: u64 = 256 << 10;
/// Longest address, or list of addresses.
const MAX_ADDRESS: usize = 2000;

/// Variables and the settings that mean the same.
const NAMES: [(&str, &str); 2] = [("PIP_INDEX_URL", "index-url"), ("PIP_EXTRA_INDEX_URL", "extra-index-url")];

/// The user wants no index at all.
const NO_INDEX: (&str, &str) = ("PIP_NO_INDEX", "no-index");

/// Variables for pip in the jail. One without a value names an index that cannot be used: no other one takes its place, which
/// may have other packages under the same names.
pub(super) fn variables(of_caller: &Environment, project: &Path) -> Vec<(String, Option<String>)> {
    let home = of_caller("HOME").map(PathBuf::from);
    let settings = of_caller("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| home.as_ref().map(|home| home.join(".config")))
        .map(|folder| folder.join("pip/pip.conf"));
    let files: Vec<String> =
        [settings, home.map(|home| home.join(".pip/pip.conf")), Some("/etc/pip.conf".into())]
            .into_iter()
            .flatten()
            .filter(|file| file.is_absolute() && !real_place(file).starts_with(real_place(project)))
            // The user's settings may be a link to another place of the user.
            .filter_map(|file| read_plain(&real_place(&file), MAX_BYTES))
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect();
    let chosen = |(variable, key): &(&str, &str)| {
        let value = of_caller(variable).or_else(|| files.iter().find_map(|text| setting(text, key)))?;
        Some(((*variable).to_owned(), Some(value).filter(|value| is_usable(value))))
    };
    let mut found: Vec<(String, Option<String>)> = NAMES.iter().filter_map(chosen).collect();
    let is_set =
        |value: String| !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off");
    let without = of_caller(NO_INDEX.0).or_else(|| files.iter().find_map(|text| setting(text, NO_INDEX.1)));
    if without.is_some_and(is_set) {
        found.push((NO_INDEX.0.to_owned(), None));
    }
    found
}

/// What a file of settings says for all commands of pip, or for those that install.
fn setting(text: &str, key: &str) -> Option<String> {
    let (mut is_in, mut found, mut goes_on) = (false, None, false);
    for line in text.lines() {
        if let Some(section) = line.trim().strip_prefix('[') {
            is_in = matches!(section.trim_end_matches(']').trim(), "global" | "install" | "download");
            goes_on = false;
        } else if line.starts_with([' ', '\t']) && goes_on {
            // A list goes on.
            found = found.map(|value: String| format!("{value} {}", line.trim()));
        } else if let Some((name, value)) = line.split_once(['=', ':']) {
            goes_on = is_in && name.trim().replace('_', "-").eq_ignore_ascii_case(key);
            if goes_on {
                found = Some(value.trim().to_owned());
            }
        }
    }
    found.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Addresses of HTTPS without a login: the jail has no credentials.
fn is_usable(value: &str) -> bool {
    let is_address = |address: &str| address.starts_with("https://") && !address.contains('@');
    value.len() <= MAX_ADDRESS
        && !value.trim().is_empty()
        && !value.chars().any(char::is_control)
        && value.split_whitespace().all(is_address)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_index_of_the_user_is_used_and_none_of_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let project = folder.path().join("project");
        fs::create_dir_all(home.join(".config/pip")).unwrap();
        fs::create_dir_all(project.join("pip")).unwrap();
        let text = "[global]\ncert = x\nindex-url = https://one.example/simple\n[install]\nextra_index_url =\n    https://two.example\n  https://three.example\n[list]\nindex-url = https://no.example\n";
        fs::write(home.join(".config/pip/pip.conf"), text).unwrap();
        fs::write(project.join("pip/pip.conf"), "[global]\nindex-url = https://evil.example\n").unwrap();
        let with = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let environment: Environment = std::sync::Arc::new(move |name: &str| {
                pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            });
            variables(&environment, &project)
        };
        let home = home.to_str().unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let extra = pair("PIP_EXTRA_INDEX_URL", "https://two.example https://three.example");
        assert_eq!(
            with(&[("HOME", home)]),
            [pair("PIP_INDEX_URL", "https://one.example/simple"), extra.clone()]
        );
        let own = [("HOME", home), ("PIP_INDEX_URL", "https://own.example")];
        assert_eq!(with(&own), [pair("PIP_INDEX_URL", "https://own.example"), extra.clone()]);
        for bad in
            ["https://ada:secret@one.example", "http://one.example", "file:///x", "--no-index", "https://x\n"]
        {
            // Another index must not take its place: it may have other packages under the same names.
            let unusable = ("PIP_INDEX_URL".to_owned(), None);
            assert_eq!(with(&[("HOME", home), ("PIP_INDEX_URL", bad)]), [unusable, extra.clone()], "{bad}");
        }
        assert_eq!(with(&[("PIP_NO_INDEX", "1")]), [("PIP_NO_INDEX".to_owned(), None)]);
        assert!(with(&[("PIP_NO_INDEX", "false")]).is_empty());
        assert!(with(&[("XDG_CONFIG_HOME", project.to_str().unwrap())]).is_empty());
    }
}
