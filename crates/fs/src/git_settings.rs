//! The few settings of a git configuration that name files, without what those files hold.

/// The assignments of one configuration file, in their order. Nothing is included and no variable is expanded.
pub(crate) struct GitSettings {
    /// Section and name in lower case, and the value. A subsection is not kept.
    assignments: Vec<(String, String, String)>,
}

impl GitSettings {
    /// Reads a file as git does.
    ///
    /// # Errors
    /// With the number of the first line that cannot be read.
    pub(crate) fn parse(text: &str) -> Result<Self, usize> {
        let mut assignments = Vec::new();
        let mut section = String::new();
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').enumerate();
        while let Some((number, line)) = lines.next() {
            let mut rest = line.trim();
            if let Some(header) = rest.strip_prefix('[') {
                let end = header_end(header).ok_or(number + 1)?;
                let (name, after) = header.split_at(end);
                let name = name.split(|sign: char| sign == '"' || sign.is_whitespace()).next();
                section = name.unwrap_or_default().split('.').next().unwrap_or_default().to_ascii_lowercase();
                rest = after.get(1..).unwrap_or_default().trim_start();
            }
            if rest.is_empty() || rest.starts_with(['#', ';']) {
                continue;
            }
            let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
            let mut raw = value.trim_end_matches('\r').to_owned();
            // A backslash before the end of a line joins it with the next one.
            let value = loop {
                match unquote(&raw) {
                    Value::Whole(value) => break value,
                    Value::Continues => {
                        raw.pop();
                        raw.push_str(lines.next().ok_or(number + 1)?.1.trim_end_matches('\r'));
                    }
                    Value::Broken => return Err(number + 1),
                }
            };
            assignments.push((section.clone(), name.trim().to_ascii_lowercase(), value));
        }
        Ok(Self { assignments })
    }

    /// Returns the last value of a setting, which is the one that counts.
    pub(crate) fn value<'s>(&'s self, section: &'s str, name: &'s str) -> Option<&'s str> {
        self.values(section, name).next_back()
    }

    /// Returns all values of a setting, those of subsections too.
    pub(crate) fn values<'s>(
        &'s self,
        section: &'s str,
        name: &'s str,
    ) -> impl DoubleEndedIterator<Item = &'s str> {
        let is_meant = move |at: &&'s (String, String, String)| at.0 == section && at.1 == name;
        self.assignments.iter().filter(is_meant).map(|(_, _, value)| value.as_str())
    }
}

/// Where the header of a section ends: at the first bracket that is not in quotes.
fn header_end(header: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, sign) in header.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ']' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

enum Value {
    Whole(String),
    Continues,
    Broken,
}

fn unquote(raw: &str) -> Value {
    let mut value = String::new();
    // How much of it stays when blanks at the end are cut off.
    let mut kept = 0;
    let mut is_quoted = false;
    let mut signs = raw.trim().chars();
    while let Some(sign) = signs.next() {
        match sign {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => match signs.next() {
                None => return Value::Continues,
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some(sign @ ('"' | '\\')) => value.push(sign),
                Some(_) => return Value::Broken,
            },
            _ => value.push(sign),
        }
        if is_quoted || !sign.is_whitespace() {
            kept = value.len();
        }
    }
    if is_quoted {
        return Value::Broken;
    }
    value.truncate(kept);
    Value::Whole(value)
}
