"""Finding the program ``tgp``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from .errors import KernelNotFoundError

VARIABLE = "TGP_BIN"
_VERSION_SECONDS = 5.0
"""How long a program may take to print its version."""
_SHOWN_CHARACTERS = 100
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
                "ECAPABILITY",
                f"{source} names `{os.fspath(path)}`, which is not an executable file",
                {"help": f"set {source} to the file of `tgp`, or leave it out to use the installed one"},
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


def check_is_tgp(binary: str, env: Mapping[str, str] | None, source: str) -> None:
    """Raises ``KernelNotFoundError`` if a program that did not boot is not ``tgp``, by what it prints as its version."""
    try:
        run = subprocess.run(
            [binary, "--version"],
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_VERSION_SECONDS,
            check=False,
        )
        printed = run.stdout.decode("utf-8", "replace").strip()
    except (OSError, subprocess.TimeoutExpired):
        printed = ""
    if re.match(r"tgp \d", printed):
        return
    line = printed.split("\n", 1)[0][:_SHOWN_CHARACTERS]
    shown = f"prints `{line}` as its version" if line else "prints no version"
    raise KernelNotFoundError(
        "ECAPABILITY",
        f"`{binary}` is not the program `tgp`: it {shown}",
        {"help": f"set {source} to the file of `tgp`, or leave it out to use the installed one"},
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
