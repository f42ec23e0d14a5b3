//! Scratch.
#[test]
fn scratch() {
    let Some(dir) = std::env::var_os("CHECK_DIR") else { return };
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        println!("== {}", path.display());
        for f in super::findings(&std::fs::read_to_string(&path).unwrap()) {
            println!("{} {:?} {}:{} {}", f.rule, f.severity, f.place.line, f.place.column, f.message);
        }
    }
}
