"""The version of this client; the kernel in the same wheel has the same one."""

from __future__ import annotations

import importlib.metadata

DISTRIBUTION = "tgp-kernel"


def _read() -> str:
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"


VERSION = _read()
