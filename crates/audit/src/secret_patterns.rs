//! What secrets look like in a text.
//!
//! Every shape is searched for on its own, and none can be broken off by a match of itself: what was read is part of
//! the match, but for the end of a line at most. So one pass over a text is linear in its length, whatever it contains.
//! A single alternation of all shapes would not be, because one shape's long failure would be repeated after every
//! short match of another.

use regex::{Regex, RegexBuilder};

/// A pattern and the replacement of its match.
pub(crate) type Shape = (&'static str, &'static str);

/// A value in quotes, which are kept, or up to the next blank. It comes as groups 2 to 5, after what leads to it.
macro_rules! value {
    () => {
        r#"(?:(')[^'\n]+(')|(")[^"\n]+(")|["']?[^\s"'&;)=][^\s"'&;)]*)"#
    };
}

/// The replacement of a [`value!`].
const VALUE: &str = "${1}${2}${4}[redacted]${3}${5}";

/// The same where something has to precede the value within its quotes.
pub(crate) const ASSIGNED: &str = "${1}${2}${4}${6}[redacted]${3}${5}";

/// The rest of a command, which continues after a backslash at the end of a line.
macro_rules! more {
    () => {
        r"(?:[^\n]|\\\n)*?"
    };
}

pub(crate) const SHAPES: &[Shape] = &[
    // A block without its end is cut off, and still a key.
    (
        r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:.*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|.*)",
        "[redacted]",
    ),
    (r"(?-u)\bgh[pousr]_[A-Za-z0-9]{16,}", "[redacted]"),
    (r"(?-u)\bgithub_pat_[A-Za-z0-9_]{16,}", "[redacted]"),
    (r"(?-u)\bglpat-[A-Za-z0-9_-]{16,}", "[redacted]"),
    (r"(?-u)\bsk-[A-Za-z0-9_-]{16,}", "[redacted]"),
    (r"(?-u)\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}", "[redacted]"),
    (r"(?-u)\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", "[redacted]"),
    (r"(?-u)\bAIza[A-Za-z0-9_-]{35}", "[redacted]"),
    (r"(?-u)\bxox[abeoprs]-[A-Za-z0-9-]{8,}", "[redacted]"),
    (r"(?-u)\bnpm_[A-Za-z0-9]{20,}", "[redacted]"),
    (r"(?-u)\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", "[redacted]"),
    (r"(?i-u)\bbearer[ \t]{1,8}[A-Za-z0-9._~+/=-]{6,}", "Bearer [redacted]"),
    (
        r#"(?i)\bauthorization["']?[ \t]{0,8}[:=][ \t]{0,8}["']?(?:[a-z-]{2,20}[ \t]{1,8})?[^\s"']+"#,
        "authorization: [redacted]",
    ),
    // The password in `scheme://user:password@host`, up to the last `@` before the path.
    (r#"://([^\s/:@"'<>]*):[^\s/"'<>]+@"#, "://${1}:[redacted]@"),
    // Options of any program. A value that begins with `--` is the next option, and so is a dash with one letter.
    (
        concat!(
            r"(?i)(--[a-z0-9-]*?(?:password|passwd|passphrase|pass|token|secret|api-?key|access-?key|secret-?key)",
            r"(?:=|[ \t]{1,8}))",
            r#"(?:(')[^'\n]+(')|(")[^"\n]+(")|(?:[^\s"'-]|-[^\s"'-][^\s"'])[^\s"']*)"#
        ),
        VALUE,
    ),
    (
        concat!(
            r"(\bcurl\b",
            more!(),
            r"[ \t\n](?:-[A-Za-z]{0,8}[uU]|--(?:proxy-)?user)[ \t=]{0,8})",
            r#"(?:('[^'\n:]*:)[^'\n]+(')|("[^"\n:]*:)[^"\n]+(")|([^\s"':]*:)[^\s"']+)"#
        ),
        ASSIGNED,
    ),
    // MySQL's clients want no blank after `-p`; with one it is a prompt, and the name of a database follows.
    (concat!(r"(\b(?:mysql|mariadb)", more!(), r"[ \t\n]-p=?)", value!()), VALUE),
    // For `psql` it is the port, unless the user took it for MySQL's.
    (concat!(r"(\bpsql\b", more!(), r#"[ \t\n]-p["']?)[^\s"'0-9][^\s"']*"#), "${1}[redacted]"),
    (concat!(r"(\b(?:sshpass|mongo[a-z]{0,10})\b", more!(), r"[ \t\n]-p[ \t]{0,8})", value!()), VALUE),
    (
        concat!(
            r"(\b(?:docker|podman|nerdctl|buildah|skopeo|helm|oras|crane|oc|az)[ \t]",
            more!(),
            r"\blogin\b",
            more!(),
            r"[ \t\n]-p[ \t=]{0,8})",
            value!()
        ),
        VALUE,
    ),
    // The variables of a command; their names end so.
    (concat!(r"((?:PASS|PASSWORD|PASSWD|TOKEN|SECRET|KEY|PWD)=)", value!()), VALUE),
    // Only as a whole word: a `bypass: on` is not a secret.
    (concat!(r#"(?i)((?:\b|_)pass["']?[ \t]{0,4}[:=][ \t]{0,4})"#, value!()), VALUE),
    // A quote inside is doubled or has a backslash.
    (
        concat!(
            r"(?i)(\bidentified\s{1,8}(?:with\s{1,8}\S{1,64}\s{1,8})?(?:by|as)\s{1,8}(?:password\s{1,8})?)",
            r#"(?:(')(?:[^'\\]|\\.|'')+(')|(")(?:[^"\\]|\\.|"")+(")|[^\s"';]+)"#
        ),
        VALUE,
    ),
];

/// How the shapes above begin that need neither a blank nor a colon nor an equals sign.
pub(crate) const TOKEN_BEGINNINGS: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_",
    "rk_",
    "AKIA",
    "ASIA",
    "AIza",
    "xox",
    "npm_",
    "eyJ",
];

/// Ends of the names of variables whose values are secrets. In lower case they are too common.
pub(crate) const VARIABLES: &[&str] = &["PASS", "PASSWORD", "PASSWD", "TOKEN", "SECRET", "KEY", "PWD"];

/// Argument names that are compared like [`NAMES`], but occur in other words too often to be searched for in texts.
pub(crate) const WHOLE_NAMES: &[&str] = &["pass"];

/// Argument names whose values are secrets, as they are compared: lower case, letters and digits only.
pub(crate) const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "cookie",
    "privatekey",
    "accesskey",
    "secretkey",
    "credential",
    "credentials",
    "sessionkey",
    "signingkey",
];

/// The pattern of assignments such as `PGPASSWORD=x`, `"api-key": "x"` or `PASSWORD 'x'` for the given names.
pub(crate) fn assignments(names: &[String]) -> String {
    // Between the letters of a name people write nothing, `-` or `_`; where, is not known here.
    let spelled = |name: &String| {
        let letters: Vec<String> =
            name.chars().map(|letter| regex::escape(letter.encode_utf8(&mut [0; 4]))).collect();
        letters.join("[-_]?")
    };
    let names: Vec<String> = names.iter().map(spelled).collect();
    let names = names.join("|");
    let (assigned, apart) = (r"[ \t]{0,4}[:=][ \t]{0,4}", r"[ \t]{1,4}");
    // Only in quotes there are blanks, and only if the quote has an end.
    let single = format!(r"((?:{assigned}|{apart})')[^'\n]+(')");
    let double = format!(r#"((?:{assigned}|{apart})")[^"\n]+(")"#);
    let bare = format!(r#"({assigned}["']?|{apart}["'])[^\s"'&;,)}}]+"#);
    format!(r#"(?i)((?:{names})["']?)(?:{single}|{double}|{bare})"#)
}

/// Enough for all shapes with the longest list of values; a pattern beyond it is refused and not half used.
const MAX_PATTERN_BYTES: usize = 64 << 20;

pub(crate) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build()
}
