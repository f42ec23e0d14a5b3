//! Whether colours are wanted: where the environment and the user's configuration say nothing against them.

use std::io::IsTerminal;
use std::sync::OnceLock;

use tgp::config::{Theme, UserConfig};

use crate::session;

/// The theme of the user, once it was read.
static THEME: OnceLock<Theme> = OnceLock::new();

/// Reads the theme of the user, where a terminal could show it. A configuration that cannot be used is reported by the
/// command itself.
pub fn apply() {
    if !std::io::stdout().is_terminal() && !std::io::stderr().is_terminal() {
        return;
    }
    if let Ok(user) = UserConfig::read(&session::environment()) {
        THEME.get_or_init(|| user.theme);
    }
}

/// Whether a terminal is written to in colours.
pub fn has_colours() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none()
        && set("TERM").is_none_or(|name| name != "dumb")
        && THEME.get().is_none_or(|theme| *theme != Theme::Plain)
}
