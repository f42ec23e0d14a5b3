"""Fixtures: a scripted kernel, and the real one that `TGP_BIN` names."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FAKE = Path(__file__).with_name("fake_kernel.py")

MakeBinary = Callable[[str], str]


@pytest.fixture
def fake(tmp_path: Path) -> MakeBinary:
    """The path of a program that behaves as a kernel with this behaviour."""

    def make(behaviour: str) -> str:
        path = tmp_path / f"tgp-{behaviour}"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" {behaviour} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


@pytest.fixture(scope="session")
def binary() -> str:
    """The real program; tests that need it are skipped without `TGP_BIN`."""
    path = os.environ.get("TGP_BIN")
    if not path:
        pytest.skip("TGP_BIN is not set")
    return path


@pytest.fixture
def project(binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which a tool can be written without a test, and whose kernel never touches the real home."""
    home = tmp_path / "home"
    monkeypatch.setenv("TGP_HOME", str(home))
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run([binary, "-C", str(folder), "init", "--json"], check=True, stdout=subprocess.DEVNULL)
    (folder / "tgp.config.ts").write_text("export default { tdd: { mode: 'explore' } };\n")
    subprocess.run([binary, "-C", str(folder), "trust", "--yes"], check=True, stdout=subprocess.DEVNULL)
    return folder
