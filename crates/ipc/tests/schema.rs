//! The schema of the protocol, from which the types of the clients are generated.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// `UPDATE_GOLDEN=1` writes it.
#[test]
fn the_schema_of_the_clients_is_that_of_the_kernel() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/protocol.schema.json");
    let schema = serde_json::to_string_pretty(&tgp_ipc::rpc::schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &schema).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == schema,
        "UPDATE_GOLDEN=1 cargo test -p tgp-ipc writes sdk/protocol.schema.json; then make the clients anew"
    );
}
