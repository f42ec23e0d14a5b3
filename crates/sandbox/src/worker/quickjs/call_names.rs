//! Names for what the engine leaves nameless.

pub(super) fn name_expression(_name: &str, message: &str, _stack: &str) -> String {
    message.to_owned()
}
