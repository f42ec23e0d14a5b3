//! What is said when an import cannot be resolved.

use tgp_contract::{Code, RelativePath, ToolError};

use crate::ModuleRequest;

/// Why a specifier is refused or finds nothing.
pub(super) enum Refusal<'r> {
    /// The package is not on the list.
    NotAllowed(&'r [String]),
    /// A module of Node that no sandbox has.
    NodeBuiltin,
    /// A path or URL that no module may name.
    Outside,
    /// It resolves to a file outside every `node_modules`.
    Escapes,
    /// A configuration asks for something else than `@tgp/core`.
    OnlyCore,
    /// A tool asks for `@tgp/core`.
    CoreInTool,
    /// A tool asks for `@tgp/test`.
    TestInTool,
    /// A module that is not a test asks for one.
    TestFile(&'r RelativePath),
    /// Nothing stands behind `mcp:` and `host:` here.
    NoForeign,
    /// The module of another program cannot be had.
    Foreign(ToolError),
    /// Nothing is there.
    NotFound { tried: Vec<String>, nearest: Vec<String>, help: String },
    /// A package does not have this file or does not export it.
    Package { reason: String, help: String },
    /// It is there and cannot be a module.
    NoModule { reason: String },
}

/// The finished error for a request.
pub(super) fn refused(request: &ModuleRequest, refusal: Refusal<'_>) -> ToolError {
    let specifier = &request.specifier;
    let (code, why, help) = match refusal {
        Refusal::NotAllowed(allowed) => (
            Code::Security,
            format!("the package is not on the allow-list ({})", listed(allowed)),
            "use an allowed package or `@tgp/std`, or add the package to `allowedImports` in the configuration"
                .to_owned(),
        ),
        Refusal::NodeBuiltin => (
            Code::Security,
            "it is a module of Node, and a tool has no file system, network or process of its own".to_owned(),
            "use what `tgp` offers (`tgp.read_file`, `tgp.fetch`, …), or a package written for browsers".to_owned(),
        ),
        Refusal::Outside => (
            Code::Security,
            "it names something outside the tool root".to_owned(),
            "import tools as `./name.ts`, `../folder/name.ts` or `/lib/folder/name.ts`".to_owned(),
        ),
        Refusal::Escapes => (
            Code::Security,
            "it leads to a file outside `node_modules`".to_owned(),
            "install the package instead of linking it to another folder".to_owned(),
        ),
        Refusal::OnlyCore => (
            Code::Security,
            "a configuration may import only `@tgp/core`".to_owned(),
            "write the values into the configuration, or read them from `process.env.NAME`".to_owned(),
        ),
        Refusal::CoreInTool => (
            Code::Security,
            "`@tgp/core` is for `tgp.config.ts`".to_owned(),
            "tools use the global `tgp` and `@tgp/std`".to_owned(),
        ),
        Refusal::TestInTool => (
            Code::Security,
            "`@tgp/test` is for test files".to_owned(),
            "write the tests into a file of their own beside the tool, such as `fib.test.ts` for `fib.ts`".to_owned(),
        ),
        Refusal::TestFile(path) => (
            Code::Compile,
            format!("`{path}` holds tests, and only tests may import it"),
            "move what both need into a module of its own, such as `shared.ts`".to_owned(),
        ),
        Refusal::NoForeign => (
            Code::Permission,
            "functions of other programs are not there for this code".to_owned(),
            "import them in a tool; configurations and rules have none".to_owned(),
        ),
        Refusal::Foreign(error) => {
            let help = error.help_of().map_or_else(|| "`tgp.d.ts` declares what every tool has".to_owned(), str::to_owned);
            (error.code, error.message, help)
        }
        Refusal::NotFound { tried, nearest, help } => {
            let mut why = "there is no such module".to_owned();
            if !tried.is_empty() {
                why.push_str(&format!("; tried {}", listed(&tried)));
            }
            let help = if nearest.is_empty() { help } else { format!("did you mean {}?", listed(&nearest)) };
            (Code::NotFound, why, help)
        }
        Refusal::Package { reason, help } => (Code::NotFound, reason, help),
        Refusal::NoModule { reason } => (
            Code::Compile,
            reason,
            "only TypeScript, JavaScript and JSON files are modules; read other files with `tgp.read_file`".to_owned(),
        ),
    };
    ToolError::new(code, format!("{}: cannot import `{specifier}`: {why}", request.place))
        .place(&request.place)
        .help(help)
        .detail("specifier", specifier.as_str())
}

/// Names in backticks with commas.
pub(super) fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "it is empty".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
