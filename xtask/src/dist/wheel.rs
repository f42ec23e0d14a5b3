//! The wheel `tgp-kernel`: the client as the package `tgp`, and the program as a script of the distribution. maturin
//! makes the same file, but only from its own build of the program, which takes minutes.

use std::rc::Rc;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::archive::PackageFile;

/// The name in the file, where `-` separates fields.
const DISTRIBUTION: &str = "tgp_kernel";

const README: &str = "\
# tgp-kernel

TGP is a kernel for AI agents: an agent writes typed TypeScript tools; TGP checks them, runs each call in its own
locked process, keeps the tools in git and finds them again.

This distribution puts the program `tgp` on the path of the environment:

    pip install tgp-kernel
    tgp demo

It also has the client for programs, the package `tgp`. In a folder that `tgp init` has made a project:

    from tgp import TGP

    with TGP() as kernel:
        answer = kernel.call(\"exec_code\", {\"code\": \"return 6 * 7\"})
        print(answer[\"result\"])  # 42
";

/// The oldest Python that the client is for, as in `sdk/python/pyproject.toml`.
const REQUIRES_PYTHON: &str = ">=3.10";

/// What is in a wheel.
pub struct Contents<'a> {
    pub program: &'a Rc<[u8]>,
    /// The package `tgp`, by its paths in the archive.
    pub client: &'a [PackageFile],
    /// Licences and the SBOM.
    pub documents: &'a [PackageFile],
    /// What goes below the folder of the environment.
    pub shared: &'a [PackageFile],
}

pub fn file_name(version: &str, tags: &[String]) -> Result<String> {
    Ok(format!("{DISTRIBUTION}-{}-py3-none-{}.whl", python_version(version)?, tags.join(".")))
}

/// All files of the wheel, with the record of them as the last one.
pub fn files(version: &str, tags: &[String], contents: &Contents<'_>) -> Result<Vec<PackageFile>> {
    let Contents { program, client, documents, shared } = *contents;
    let version = python_version(version)?;
    let information = format!("{DISTRIBUTION}-{version}.dist-info");
    let mut metadata = format!(
        "Metadata-Version: 2.4\nName: tgp-kernel\nVersion: {version}\n\
         Summary: A kernel for AI agents: typed tools, gates, one audit record per call\n\
         License-Expression: MIT\n"
    );
    let mut wheel = "Wheel-Version: 1.0\nGenerator: tgp-xtask\nRoot-Is-Purelib: false\n".to_owned();
    for tag in tags {
        wheel.push_str(&format!("Tag: py3-none-{tag}\n"));
    }
    let data = format!("{DISTRIBUTION}-{version}.data");
    let mut files = vec![PackageFile::program(format!("{data}/scripts/tgp"), program)];
    files.extend_from_slice(client);
    files.extend(shared.iter().cloned().map(|file| file.below(&format!("{data}/data"))));
    for document in documents {
        // An SBOM and licences have folders of their own.
        let folder = if document.path.ends_with(".json") { "sboms" } else { "licenses" };
        if folder == "licenses" {
            metadata.push_str(&format!("License-File: {}\n", document.path));
        }
        files.push(document.clone().below(&format!("{information}/{folder}")));
    }
    metadata.push_str(&format!(
        "Requires-Python: {REQUIRES_PYTHON}\nDescription-Content-Type: text/markdown\n\n{README}"
    ));
    files.push(PackageFile::text(format!("{information}/METADATA"), metadata));
    files.push(PackageFile::text(format!("{information}/WHEEL"), wheel));
    let record = format!("{information}/RECORD");
    let lines = files.iter().map(|file| {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.data));
        format!("{},sha256={hash},{}\n", file.path, file.data.len())
    });
    let lines = lines.collect::<String>() + &format!("{record},,\n");
    files.push(PackageFile::text(record, lines));
    Ok(files)
}

/// `1.0.0-rc.1` is `1.0.0rc1` in Python.
fn python_version(version: &str) -> Result<String> {
    let Some((release, pre)) = version.split_once('-') else { return Ok(version.to_owned()) };
    let (name, number) = pre.split_once('.').unwrap_or((pre, "0"));
    let letters = match name {
        "alpha" => "a",
        "beta" => "b",
        "rc" => "rc",
        _ => bail!("invalid version `{version}` for a wheel: expected alpha, beta or rc after `-`"),
    };
    let number: u32 = number.parse().with_context(|| {
        format!("invalid version `{version}` for a wheel: expected a number after `{name}.`")
    })?;
    Ok(format!("{release}{letters}{number}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_oldest_python_is_that_of_the_client() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/python/pyproject.toml");
        let project: toml::Table = fs::read_to_string(project).unwrap().parse().unwrap();
        let requires = project.get("project").and_then(|project| project.get("requires-python"));
        assert_eq!(requires.and_then(|requires| requires.as_str()), Some(REQUIRES_PYTHON));
    }

    #[test]
    fn versions_are_written_as_python_writes_them() {
        assert_eq!(python_version("0.1.0").unwrap(), "0.1.0");
        assert_eq!(python_version("1.0.0-rc.2").unwrap(), "1.0.0rc2");
        assert_eq!(python_version("1.0.0-beta").unwrap(), "1.0.0b0");
        assert!(python_version("1.0.0-nightly.1").is_err());
        assert!(python_version("1.0.0-rc.x").is_err());
    }

    #[test]
    fn the_record_has_every_file_and_its_hash() {
        let program: Rc<[u8]> = Rc::from(*b"abc");
        let tags = ["manylinux_2_17_x86_64".to_owned(), "musllinux_1_1_x86_64".to_owned()];
        let documents = [PackageFile::text("LICENSE", "text"), PackageFile::text("tgp.cdx.json", "{}")];
        let client = [PackageFile::text("tgp/__init__.py", "")];
        let contents = Contents { program: &program, client: &client, documents: &documents, shared: &[] };
        let files = files("1.2.3", &tags, &contents).unwrap();
        let record = String::from_utf8(files.last().unwrap().data.to_vec()).unwrap();
        let lines: Vec<&str> = record.lines().collect();
        assert_eq!(
            lines.first(),
            Some(&"tgp_kernel-1.2.3.data/scripts/tgp,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3")
        );
        assert_eq!(lines.last(), Some(&"tgp_kernel-1.2.3.dist-info/RECORD,,"));
        assert_eq!(lines.len(), files.len());
        assert!(record.contains("\ntgp_kernel-1.2.3.dist-info/sboms/tgp.cdx.json,"));
        assert!(record.contains("\ntgp/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"));
        assert!(files.iter().all(|file| file.is_program == file.path.ends_with(".data/scripts/tgp")));
        let wheel = files.iter().find(|file| file.path.ends_with("/WHEEL")).unwrap();
        let wheel = String::from_utf8(wheel.data.to_vec()).unwrap();
        assert!(wheel.contains("\nRoot-Is-Purelib: false\n"));
        assert!(wheel.ends_with("Tag: py3-none-manylinux_2_17_x86_64\nTag: py3-none-musllinux_1_1_x86_64\n"));
        assert_eq!(
            file_name("1.2.3", &tags).unwrap(),
            "tgp_kernel-1.2.3-py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl"
        );
    }
}
