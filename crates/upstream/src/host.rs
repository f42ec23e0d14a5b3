//! The functions of the embedding program, as modules: `import { send } from 'host:mail'`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tgp_contract::{Code, HostFunction, HostTools, ToolError, canonical};
use tgp_text::nearest;

use crate::definition::{MAX_NAME, is_server_name};
use crate::module::{DeclaredFunction, MAX_DESCRIPTION, comment, declaration};
use crate::names::is_identifier;

/// How the specifier of such a module begins.
pub const HOST_SPECIFIER: &str = "host:";
/// More than any program offers; all of them are declared to every agent.
const MAX_FUNCTIONS: usize = 256;
/// All schemas together. Types are made of them.
const MAX_SCHEMA_BYTES: usize = 1 << 20;

/// What the embedding program offers, checked.
#[derive(Debug)]
pub struct HostModules {
    host: Arc<dyn HostTools>,
    /// By module and name.
    functions: BTreeMap<String, BTreeMap<String, HostFunction>>,
}

impl HostModules {
    /// # Errors
    /// `EVALIDATION` when a name cannot be written in TypeScript or is there twice, and when there are too many.
    pub fn new(host: Arc<dyn HostTools>) -> Result<Self, ToolError> {
        let all = host.functions();
        if all.len() > MAX_FUNCTIONS {
            let message = format!("a host offers at most {MAX_FUNCTIONS} functions, not {}", all.len());
            return Err(wrong(message));
        }
        let schemas =
            all.iter().flat_map(|function| [Some(&function.input_schema), function.output_schema.as_ref()]);
        if schemas.flatten().map(|schema| schema.to_string().len()).sum::<usize>() > MAX_SCHEMA_BYTES {
            return Err(wrong(format!(
                "the schemas of a host's functions are longer than {MAX_SCHEMA_BYTES} bytes"
            )));
        }
        let mut functions: BTreeMap<String, BTreeMap<String, HostFunction>> = BTreeMap::new();
        for function in all {
            if !is_server_name(&function.module) {
                let message = format!("invalid name `{}` of a host module", function.module.escape_debug());
                let help = format!(
                    "use 1 to {MAX_NAME} lower-case letters, digits and `-`, beginning with a letter, as in `{HOST_SPECIFIER}mail`"
                );
                return Err(wrong(message).help(help));
            }
            let name = &function.name;
            if !is_identifier(name) {
                let message = format!(
                    "invalid name `{}` of a function in `{HOST_SPECIFIER}{}`",
                    name.escape_debug(),
                    function.module
                );
                return Err(wrong(message).help("use letters, digits and `_`, and not a word of TypeScript"));
            }
            let module = functions.entry(function.module.clone()).or_default();
            if module.contains_key(name) {
                let message = format!("the host offers `{HOST_SPECIFIER}{}/{name}` twice", function.module);
                return Err(wrong(message));
            }
            module.insert(name.clone(), function);
        }
        Ok(Self { host, functions })
    }

    /// Every function.
    pub fn functions(&self) -> impl Iterator<Item = &HostFunction> {
        self.functions.values().flat_map(BTreeMap::values)
    }

    /// The specifiers of its modules.
    pub fn specifiers(&self) -> impl Iterator<Item = String> {
        self.functions.keys().map(|module| format!("{HOST_SPECIFIER}{module}"))
    }

    /// One function.
    ///
    /// # Errors
    /// `ENOTFOUND` with what there is.
    pub fn find(&self, module: &str, name: &str) -> Result<&HostFunction, ToolError> {
        let functions = self.module(module)?;
        functions.get(name).ok_or_else(|| {
            let known = functions.keys().map(String::as_str);
            missing(format!("the host has no function `{HOST_SPECIFIER}{module}/{name}`"), name, known)
        })
    }

    /// The code of a module: each function is a call to the kernel, which judges it.
    ///
    /// # Errors
    /// `ENOTFOUND` with what there is.
    pub fn code(&self, module: &str) -> Result<String, ToolError> {
        // No function has a name with this letter.
        let mut code = String::from("import { callHost as $call } from 'tgp:foreign';\n");
        for name in self.module(module)?.keys() {
            let (module, function) = (json!(module), json!(name));
            let _ = writeln!(
                code,
                "export function {name}(args = {{}}) {{ return $call({module}, {function}, args); }}"
            );
        }
        Ok(code)
    }

    /// The declarations of all modules, for the compiler and for readers.
    #[must_use]
    pub fn types(&self) -> String {
        let declared = |(module, functions): (&String, &BTreeMap<String, HostFunction>)| {
            let functions = functions.values().map(|function| {
                let said = comment(&function.description, MAX_DESCRIPTION);
                let mut remarks = Vec::new();
                if !said.is_empty() {
                    let is_sentence = said.ends_with(['.', '!', '?', '…']);
                    remarks.push(if is_sentence { said } else { format!("{said}.") });
                }
                remarks.push(format!("Effect: {}.", function.effect.as_str()));
                DeclaredFunction {
                    name: function.name.clone(),
                    remarks,
                    input: &function.input_schema,
                    output: function.output_schema.as_ref(),
                }
            });
            declaration(&format!("{HOST_SPECIFIER}{module}"), functions)
        };
        self.functions.iter().map(declared).collect()
    }

    /// SHA-256 of everything that the declarations are made from.
    #[must_use]
    pub fn stamp(&self) -> String {
        canonical::sha256_hex(self.types().as_bytes())
    }

    /// Calls a function of the host.
    ///
    /// # Errors
    /// What the host says.
    pub async fn call(
        &self,
        module: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, ToolError> {
        self.host.call(module, name, arguments).await
    }

    fn module(&self, module: &str) -> Result<&BTreeMap<String, HostFunction>, ToolError> {
        self.functions.get(module).ok_or_else(|| {
            let known = self.functions.keys().map(String::as_str);
            missing(format!("the host has no module `{HOST_SPECIFIER}{module}`"), module, known)
        })
    }
}

fn wrong(message: String) -> ToolError {
    ToolError::new(Code::Validation, message)
}

fn missing<'a>(message: String, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> ToolError {
    let help = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    };
    ToolError::new(Code::NotFound, message).help(help)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use serde_json::{Map, Value, json};
    use tgp_contract::{Effect, HostFunction, HostTools, ToolError};

    use super::HostModules;

    #[derive(Debug)]
    struct Offered(Vec<HostFunction>);

    #[async_trait]
    impl HostTools for Offered {
        fn functions(&self) -> Vec<HostFunction> {
            self.0.clone()
        }

        async fn call(&self, _: &str, name: &str, _: Map<String, Value>) -> Result<Value, ToolError> {
            Ok(json!(name))
        }
    }

    fn function(module: &str, name: &str, description: &str) -> HostFunction {
        HostFunction {
            module: module.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({ "type": "object", "properties": { "to": { "type": "string" } }, "required": ["to"] }),
            output_schema: None,
            effect: Effect::Network,
        }
    }

    fn modules(functions: Vec<HostFunction>) -> Result<HostModules, ToolError> {
        HostModules::new(Arc::new(Offered(functions)))
    }

    #[test]
    fn a_module_has_its_functions_as_code_and_types() {
        let offered = vec![function("mail", "send", "Sends.\n*/ evil"), function("mail", "list", "")];
        let modules = modules(offered).unwrap();
        assert_eq!(modules.specifiers().collect::<Vec<_>>(), ["host:mail"]);
        assert_eq!(
            modules.code("mail").unwrap(),
            "import { callHost as $call } from 'tgp:foreign';\n\
             export function list(args = {}) { return $call(\"mail\", \"list\", args); }\n\
             export function send(args = {}) { return $call(\"mail\", \"send\", args); }\n"
        );
        assert_eq!(
            modules.types(),
            "declare module 'host:mail' {\n  \
               /** Effect: network. */\n  \
               export function list(args: { to: string }): Promise<unknown>;\n  \
               /** Sends. * / evil. Effect: network. */\n  \
               export function send(args: { to: string }): Promise<unknown>;\n\
             }\n"
        );
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        let modules = modules(vec![function("mail", "send", "")]).unwrap();
        for (module, name, expected) in
            [("mail", "sned", "did you mean `send`?"), ("other", "send", "there are `mail`")]
        {
            let error = modules.find(module, name).unwrap_err();
            assert_eq!(error.help_of(), Some(expected), "{module}/{name}");
        }
    }

    #[test]
    fn names_that_cannot_be_written_are_refused() {
        for (module, name) in
            [("Mail", "send"), ("mail", "send it"), ("mail", "await"), ("../x", "send"), ("", "send")]
        {
            assert!(modules(vec![function(module, name, "")]).is_err(), "{module}/{name}");
        }
    }

    #[test]
    fn bug_a_host_module_with_an_invalid_name_was_called_a_server() {
        let error = modules(vec![function("Mail", "send", "")]).unwrap_err();
        assert_eq!(error.message, "invalid name `Mail` of a host module");
        assert!(error.help_of().is_some_and(|help| help.contains("lower-case letters")), "{error:?}");
    }

    #[test]
    fn functions_that_are_offered_twice_are_refused() {
        assert!(modules(vec![function("a", "b", ""), function("a", "b", "")]).is_err());
    }
}
