"""What the generators of this folder share."""

from __future__ import annotations

import sys
from pathlib import Path


def write_or_check(target: Path, text: str) -> int:
    """Writes a generated file. With `--check` it only compares. Returns the exit code: 1 when the file is out of date."""
    if "--check" not in sys.argv[1:]:
        target.write_text(text)
        return 0
    if target.exists() and target.read_text() == text:
        return 0
    print(f"{target} is out of date: run {Path(sys.argv[0]).name}", file=sys.stderr)
    return 1
