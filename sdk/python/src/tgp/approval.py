"""Approvals: the question of the kernel and the answer of the application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._protocol import HostEffect


@dataclass(frozen=True)
class ApprovalRequest:
    """A call that needs an approval, with everything that decides its effect."""

    tool: str
    arguments: Any
    effect: HostEffect
    targets: tuple[Mapping[str, Any], ...]
    """What the call reads and changes."""
    reasons: tuple[str, ...]
    """Why the approval is needed."""
    runs_later: bool
    """The call changes files that run later without the kernel."""
    preview: Any
    """The result of a dry run, such as a difference; ``None`` without one."""
    hash: str
    """SHA-256 of what decides the effect. The answer is valid for exactly this."""


@dataclass(frozen=True)
class Approval:
    """An answer. ``reason`` of a refusal is shown to the agent, ``by`` is for the record."""

    approved: bool
    by: str | None = None
    reason: str | None = None


ApprovalAnswer = bool | Approval
Approve = Callable[[ApprovalRequest], ApprovalAnswer | Awaitable[ApprovalAnswer]]
"""A function that answers; it may be a coroutine function."""


def read_request(params: Mapping[str, Any]) -> ApprovalRequest:
    return ApprovalRequest(
        tool=params["tool"],
        arguments=params["arguments"],
        effect=params["effect"],
        targets=tuple(params["targets"]),
        reasons=tuple(params["reasons"]),
        runs_later=params["runsLater"],
        preview=params.get("preview"),
        hash=params["hash"],
    )


def write_answer(answer: object) -> dict[str, Any]:
    """The wire form. Only ``True`` itself and ``Approval(True)`` approve: a truthy value may be an accident."""
    if isinstance(answer, bool):
        return {"approved": answer}
    if not isinstance(answer, Approval):
        raise TypeError(f"`approve` returned {type(answer).__name__}, expected bool or Approval")
    wire: dict[str, Any] = {"approved": answer.approved}
    if answer.by is not None:
        wire["by"] = answer.by
    if answer.reason is not None:
        wire["reason"] = answer.reason
    return wire
