//! Compiles the prelude of workers to bytecode, with the engine that will run it.

#[allow(unsafe_code, reason = "the engine has a C interface")]
#[path = "src/worker/bytecode.rs"]
mod bytecode;
#[path = "src/worker/quickjs/prelude/sources.rs"]
mod sources;

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;

use bytecode::{PARSER_STACK_BYTES, Source};

fn main() -> Result<(), Box<dyn Error>> {
    // On a thread whose stack is certain to hold what the parser may take.
    let thread = std::thread::Builder::new()
        .stack_size(2 * PARSER_STACK_BYTES)
        .spawn(|| compile().map_err(|error| error.to_string()))?;
    thread.join().map_err(|_| "the compilation of the prelude panicked")??;
    Ok(())
}

fn compile() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/worker/bytecode.rs");
    println!("cargo::rerun-if-changed=src/worker/quickjs/prelude");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let scripts = sources::scripts();
    let mut parts = format!("const PARTS: [(&str, &[u8]); {}] = [\n", scripts.len());
    for (name, code) in &scripts {
        let source = Source { name: sources::PRELUDE_NAME, code, is_module: false, keep_debug_info: true };
        let bytecode =
            bytecode::bytecode(source, PARSER_STACK_BYTES).map_err(|text| format!("{name}: {text}"))?;
        let file = format!("prelude_{name}.bytecode");
        std::fs::write(out.join(&file), bytecode)?;
        writeln!(
            parts,
            "    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), {:?}))),",
            format!("/{file}")
        )?;
    }
    parts.push_str("];\n");
    std::fs::write(out.join("prelude.rs"), parts)?;
    Ok(())
}
