"""The wheel as `cargo xtask dist` lays it out: package and program, found in every kind of installation."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import MakeBinary

import tgp

PACKAGE = Path(tgp.__file__).parent
SCRIPT = "from tgp import TGP, find_binary, __version__\nwith TGP() as k: print(find_binary(), __version__, k.call('echo', {}))"


@pytest.fixture
def wheel(fake: MakeBinary, tmp_path: Path) -> Path:
    files = {
        f"tgp/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }
    information = "tgp_kernel-1.2.3.dist-info"
    files["tgp_kernel-1.2.3.data/scripts/tgp"] = Path(fake("serve")).read_bytes()
    files[f"{information}/METADATA"] = (
        b"Metadata-Version: 2.4\nName: tgp-kernel\nVersion: 1.2.3\nRequires-Python: >=3.10\n"
    )
    files[f"{information}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={_hash(content)},{len(content)}\n" for name, content in files.items())
    files[f"{information}/RECORD"] = f"{record}{information}/RECORD,,\n".encode()
    target = tmp_path / "tgp_kernel-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if name.endswith("/tgp") else 0o100644) << 16
            archive.writestr(entry, content)
    return target


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def run(python: Path, **variables: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TGP_BIN")}
    env = {**kept, "PATH": "/usr/bin:/bin", **variables}
    output = subprocess.run([python, "-c", SCRIPT], env=env, check=True, capture_output=True, text=True, cwd="/")
    return output.stdout.split()


def test_a_virtual_environment(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", wheel], check=True)
    assert run(python) == [str(folder / "bin" / "tgp"), "1.2.3", "{}"]


def test_a_target_directory(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "target"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--target", str(folder), str(wheel)]
    subprocess.run(install, check=True)
    assert run(Path(sys.executable), PYTHONPATH=str(folder)) == [str(folder / "bin" / "tgp"), "1.2.3", "{}"]
