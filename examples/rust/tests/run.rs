//! The example prints what its tool returns, also when its project exists already.

use std::process::Command;

#[test]
fn the_tool_uses_the_function_and_the_database() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for _ in 0..2 {
        let output = Command::new(env!("CARGO_BIN_EXE_tgp-example-rust"))
            .arg(folder.path().join("shop"))
            .env("TGP_HOME", folder.path().join("home"))
            .output()
            .expect("the example starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "50\n", "{errors}");
    }
}
