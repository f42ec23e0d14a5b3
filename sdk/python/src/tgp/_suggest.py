"""Names that are close to a misspelled one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def suggestion(name: str, known: Sequence[str]) -> str:
    """``did you mean ...?``, or all names that there are."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"expected one of {', '.join(known)}"
