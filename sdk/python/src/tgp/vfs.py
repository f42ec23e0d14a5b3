"""File systems of the application: where the kernel keeps the files of the tool repository."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .errors import TGPError


class FileEntry(NamedTuple):
    """A file or a directory; ``path`` has ``/`` and is relative to the tool repository."""

    path: str
    directory: bool
    size: int = 0


class FileChange(NamedTuple):
    """New content of a file; ``None`` removes it."""

    path: str
    content: bytes | None


class Vfs(ABC):
    """The files of a tool repository. Methods may be called from several threads at the same time."""

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """The content of a file; ``None`` when there is no such file."""

    @abstractmethod
    def entry(self, path: str) -> FileEntry | None:
        """What is at ``path``; the empty path is the repository itself."""

    @abstractmethod
    def list(self, path: str) -> Sequence[FileEntry]:
        """Everything below a directory, recursively; empty when there is no such directory."""

    @abstractmethod
    def apply(self, changes: Sequence[FileChange]) -> None:
        """Applies all changes or none of them.

        A write creates missing directories. Removing what does not exist is not an error.
        """


def split_path(path: str) -> tuple[str, ...]:
    """The parts of a relative path; a path that leaves the repository is an error."""
    if not path:
        return ()
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
        raise TGPError("ESECURITY", f"invalid path `{path}`: expected a relative path without `..`")
    return parts


class MemoryVfs(Vfs):
    """Files in memory. They are gone with the process unless the application keeps ``files()``."""

    def __init__(self, files: Mapping[str, bytes | str] | None = None) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, bytes] = {}
        for path, content in (files or {}).items():
            split_path(path)
            self._files[path] = content.encode() if isinstance(content, str) else content

    def files(self) -> dict[str, bytes]:
        """A copy of all files."""
        with self._lock:
            return dict(self._files)

    def read(self, path: str) -> bytes | None:
        split_path(path)
        with self._lock:
            return self._files.get(path)

    def entry(self, path: str) -> FileEntry | None:
        split_path(path)
        with self._lock:
            if path in self._files:
                return FileEntry(path, False, len(self._files[path]))
            if not path or any(name.startswith(path + "/") for name in self._files):
                return FileEntry(path, True)
        return None

    def list(self, path: str) -> Sequence[FileEntry]:
        prefix = "/".join((*split_path(path), ""))
        entries: dict[str, FileEntry] = {}
        with self._lock:
            for name, content in self._files.items():
                if not name.startswith(prefix):
                    continue
                entries[name] = FileEntry(name, False, len(content))
                parts = name[len(prefix) :].split("/")
                for end in range(1, len(parts)):
                    directory = prefix + "/".join(parts[:end])
                    entries[directory] = FileEntry(directory, True)
        return [entries[name] for name in sorted(entries)]

    def apply(self, changes: Sequence[FileChange]) -> None:
        with self._lock:
            files = dict(self._files)
            for change in changes:
                if not split_path(change.path):
                    raise TGPError("EVALIDATION", "the repository itself cannot be written")
                if change.content is None:
                    files.pop(change.path, None)
                else:
                    files[change.path] = change.content
            for path in files:
                parents = ("/".join(path.split("/")[:end]) for end in range(1, path.count("/") + 1))
                if clash := next((parent for parent in parents if parent in files), None):
                    raise TGPError("ECONFLICT", f"`{path}` cannot be written: `{clash}` is a file")
            self._files = files


class DirectoryVfs(Vfs):
    """Files below a directory. Symbolic links in it are not followed.

    A batch of changes is written beside the files and then renamed. An error undoes it; only the end of the process between
    two renames can leave a part of a batch.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root).resolve()
        self._lock = threading.Lock()

    def read(self, path: str) -> bytes | None:
        target = self._locate(path)
        if target is None or not target.is_file():
            return None
        return target.read_bytes()

    def entry(self, path: str) -> FileEntry | None:
        target = self._locate(path)
        return None if target is None else _entry(path, target)

    def list(self, path: str) -> Sequence[FileEntry]:
        target = self._locate(path)
        if target is None or not target.is_dir():
            return []
        return sorted(self._walk(target))

    def apply(self, changes: Sequence[FileChange]) -> None:
        with self._lock, contextlib.ExitStack() as undo:
            self._root.mkdir(parents=True, exist_ok=True)
            staging = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix=".tgp-", dir=self._root)))
            with contextlib.ExitStack() as steps:
                for number, change in enumerate(changes):
                    self._apply_one(change, staging / str(number), steps)
                # Everything is in place: nothing is undone.
                steps.pop_all()

    def _apply_one(self, change: FileChange, staged: Path, steps: contextlib.ExitStack) -> None:
        parts = split_path(change.path)
        if not parts:
            raise TGPError("EVALIDATION", "the repository itself cannot be written")
        target = self._locate(change.path, create_parents=change.content is not None)
        existed = target is not None and target.exists()
        if target is None or (change.content is None and not existed):
            return
        if target.is_dir():
            raise TGPError("ECONFLICT", f"`{change.path}` is a directory")
        if change.content is not None:
            staged.write_bytes(change.content)
        if existed:
            backup = staged.with_suffix(".old")
            os.link(target, backup, follow_symlinks=False)
            steps.callback(os.replace, backup, target)
        elif change.content is not None:
            steps.callback(target.unlink, missing_ok=True)
        if change.content is None:
            target.unlink()
        else:
            os.replace(staged, target)

    def _locate(self, path: str, *, create_parents: bool = False) -> Path | None:
        """The place of a path. A symbolic link on the way is an error, since it may lead outside."""
        target = self._root
        parts = split_path(path)
        for number, part in enumerate(parts):
            target = target / part
            try:
                mode = os.lstat(target).st_mode
            except FileNotFoundError:
                if number + 1 == len(parts):
                    return target if create_parents else None
                if not create_parents:
                    return None
                target.mkdir()
                continue
            except NotADirectoryError:
                mode = 0
            if stat.S_ISLNK(mode):
                raise TGPError("ESECURITY", f"`{path}` leads through a symbolic link")
            if number + 1 < len(parts) and not stat.S_ISDIR(mode):
                if create_parents:
                    raise TGPError(
                        "ECONFLICT", f"`{path}` cannot be written: `{'/'.join(parts[: number + 1])}` is a file"
                    )
                return None
        return target

    def _walk(self, directory: Path) -> Iterator[FileEntry]:
        for name in os.listdir(directory):
            path = directory / name
            if directory == self._root and name.startswith(".tgp-"):
                continue
            entry = _entry(path.relative_to(self._root).as_posix(), path)
            if entry is not None:
                yield entry
                if entry.directory:
                    yield from self._walk(path)


def _entry(name: str, path: Path) -> FileEntry | None:
    try:
        information = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(information.st_mode):
        return FileEntry(name, True)
    if stat.S_ISREG(information.st_mode):
        return FileEntry(name, False, information.st_size)
    return None
