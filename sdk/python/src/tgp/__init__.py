"""TGP, the kernel that an AI agent runs on: this is the client that starts it and talks to it.

>>> from tgp import TGP
>>> with TGP("/srv/shop") as kernel:
...     kernel.exec("tools/math/fib.ts", {"n": 10})
55
"""

from . import sql, vfs
from ._async import AsyncSessionRun, AsyncTGP
from ._binary import find_binary
from ._definitions import SYSTEM_PROMPT, TOOL_DEFINITIONS
from ._protocol import InitializeResult, KernelInfo, ToolInfo
from ._sync import TGP, SessionRun
from ._version import VERSION as __version__
from .approval import Approval, ApprovalRequest
from .errors import (
    BootTimeoutError,
    KernelClosedError,
    KernelExitedError,
    KernelNotFoundError,
    ProtocolError,
    SourceLocation,
    TGPError,
)
from .host_tools import HostModule, HostTool
from .sql import DbApiExecutor, SqlAlchemyExecutor, SqlExecutor, SqlResult, SqlTransaction, StatementExecutor
from .vfs import DirectoryVfs, FileChange, FileEntry, MemoryVfs, Vfs

__all__ = [
    "SYSTEM_PROMPT",
    "TGP",
    "TOOL_DEFINITIONS",
    "Approval",
    "ApprovalRequest",
    "AsyncSessionRun",
    "AsyncTGP",
    "BootTimeoutError",
    "DbApiExecutor",
    "DirectoryVfs",
    "FileChange",
    "FileEntry",
    "HostModule",
    "HostTool",
    "InitializeResult",
    "KernelClosedError",
    "KernelExitedError",
    "KernelInfo",
    "KernelNotFoundError",
    "MemoryVfs",
    "ProtocolError",
    "SessionRun",
    "SourceLocation",
    "SqlAlchemyExecutor",
    "SqlExecutor",
    "SqlResult",
    "SqlTransaction",
    "StatementExecutor",
    "TGPError",
    "ToolInfo",
    "Vfs",
    "__version__",
    "find_binary",
    "sql",
    "vfs",
]
