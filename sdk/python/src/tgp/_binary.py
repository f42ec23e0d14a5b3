"""Finding the program ``tgp``."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from .errors import KernelNotFoundError

VARIABLE = "TGP_BIN"
_NAME = "tgp.exe" if sys.platform == "win32" else "tgp"


def find_binary(explicit: str | os.PathLike[str] | None = None) -> str:
    """The path of the program: ``explicit``, ``TGP_BIN``, the scripts of this environment, or ``PATH``.

    A path that a person has named must exist: another program is not taken in its place.
    """
    named = [("`binary`", explicit), (f"the variable {VARIABLE}", os.environ.get(VARIABLE))]
    for source, path in named:
        if path is None or not os.fspath(path):
            continue
        if not _is_program(Path(path)):
            raise KernelNotFoundError(
                "ECAPABILITY", f"{source} names `{os.fspath(path)}`, which is not an executable file"
            )
        return os.fspath(path)
    for directory in _script_directories():
        if _is_program(directory / _NAME):
            return str(directory / _NAME)
    found = shutil.which(_NAME)
    if found is not None:
        return found
    raise KernelNotFoundError(
        "ECAPABILITY",
        f"the program `tgp` was not found: neither {VARIABLE} nor this Python environment nor PATH has it",
        {"help": f"run `pip install tgp-kernel`, or set {VARIABLE} to the path of the program"},
    )


def _script_directories() -> Iterator[Path]:
    """Where the wheel's program is, by kind of installation."""
    package = Path(__file__).resolve().parent
    # `pip install --target` and `--prefix` install beside the package.
    yield package.parent / "bin"
    yield Path(sysconfig.get_path("scripts"))
    user = sysconfig.get_preferred_scheme("user")
    if user in sysconfig.get_scheme_names():
        yield Path(sysconfig.get_path("scripts", scheme=user))
    if len(package.parents) > 3:
        # <prefix>/lib/python3.x/site-packages/tgp
        yield package.parents[3] / "bin"


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
