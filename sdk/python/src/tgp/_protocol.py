"""The messages of the protocol that the client names. `docs/protocol.md` explains them.

Written by hand until `sdk/protocol.schema.json` exists; then `scripts/generate_protocol.py` replaces this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    # Python 3.10 does not have it at run time, and does not need it.
    from typing_extensions import NotRequired

PROTOCOL_VERSION = 1

HostConsent = Literal["rules", "effects"]
HostDialect = Literal["sqlite", "postgresql", "mysql"]
HostEffect = Literal["read", "write", "execute", "network"]
HostPlaceholders = Literal["native", "format"]
HostLogLevel = Literal["error", "warn", "info", "debug"]


class ClientInfo(TypedDict):
    name: str
    version: str


class HostSql(TypedDict):
    dialect: HostDialect
    transactions: NotRequired[bool]
    readOnly: NotRequired[bool]
    savepoints: NotRequired[bool]
    placeholders: NotRequired[HostPlaceholders]


class HostTool(TypedDict):
    module: str
    name: str
    description: NotRequired[str]
    inputSchema: NotRequired[Any]
    outputSchema: NotRequired[Any]
    effect: NotRequired[HostEffect]


class HostParams(TypedDict):
    directory: NotRequired[str]
    configFile: NotRequired[str]
    consent: NotRequired[HostConsent]
    approves: NotRequired[bool]
    log: NotRequired[HostLogLevel]
    sql: NotRequired[HostSql]
    files: NotRequired[bool]
    tools: NotRequired[list[HostTool]]


class InitializeParams(TypedDict):
    protocolVersion: int
    client: ClientInfo
    token: NotRequired[str]
    session: NotRequired[str]
    host: NotRequired[HostParams]


class KernelInfo(TypedDict):
    version: str
    definitionsHash: str
    staticPrompt: str


class InitializeResult(TypedDict):
    protocolVersion: int
    kernel: KernelInfo
    session: str
    project: str
    notices: list[str]


class ToolInfo(TypedDict):
    name: str
    aliases: list[str]
    description: str
    inputSchema: dict[str, Any]
    effect: HostEffect
    dryRun: bool


class ToolsListResult(TypedDict):
    tools: list[ToolInfo]


class ToolsCallParams(TypedDict):
    tool: str
    arguments: NotRequired[dict[str, Any]]
    dryRun: NotRequired[bool]


class PromptGetResult(TypedDict):
    prompt: str


class SessionRunParams(TypedDict):
    task: str
    provider: NotRequired[str]
    model: NotRequired[str]
    maxSteps: NotRequired[int]


class SessionRunResult(TypedDict):
    summary: dict[str, Any]
