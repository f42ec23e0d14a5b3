//! Texts that are known before the code runs, in any language.

use std::borrow::Cow;

/// Parts of a text that is put together, and steps to what an expression means; a specifier has a few.
pub(super) const MAX_PARTS: usize = 32;

/// Returns the text of an expression; none where it is not known. `read` returns the text of one part, or an empty one and
/// adds the parts that it is made of to the list, the first one last.
pub(super) fn constant<'t, E>(
    expression: E,
    read: impl Fn(E, &mut Vec<E>) -> Option<Cow<'t, str>>,
) -> Option<String> {
    let (mut known, mut rest) = (String::new(), vec![expression]);
    for _ in 0..MAX_PARTS {
        let Some(part) = rest.pop() else { break };
        known.push_str(&read(part, &mut rest)?);
    }
    rest.is_empty().then_some(known)
}
