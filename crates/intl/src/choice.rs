//! Options that take one of a few words.

/// Declares an enum whose variants are the allowed texts of an option.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        #[allow(dead_code, reason = "not every option has a default or is shown by resolvedOptions")]
        impl $name {
            /// The value of `option`, or the default where it is not set.
            pub(crate) fn read(
                option: &str,
                text: Option<&str>,
                default: Self,
            ) -> Result<Self, $crate::IntlError> {
                Ok(Self::read_optional(option, text)?.unwrap_or(default))
            }

            pub(crate) fn read_optional(
                option: &str,
                text: Option<&str>,
            ) -> Result<Option<Self>, $crate::IntlError> {
                match text {
                    None => Ok(None),
                    $(Some($text) => Ok(Some(Self::$variant)),)+
                    Some(other) => Err($crate::choice::unknown(option, other, &[$($text),+])),
                }
            }

            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

pub(crate) use choice;

/// How much of a wrong value an error repeats.
const SHOWN_CHARS: usize = 40;

pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

pub(crate) fn unknown(option: &str, text: &str, allowed: &[&str]) -> crate::IntlError {
    crate::IntlError::range(format!(
        "invalid value `{}` of option `{option}`: expected {}",
        shown(text),
        allowed.join(", ")
    ))
}
