"""What is changed about a request that a server refused, before it is sent once more.

Rule 1: each remedy is tried once for one response, apart from the retries of the transport.
Rule 2: what helped is remembered: by a record, or for the session where it costs one request to
find out again.
"""

from dataclasses import replace
from types import TracebackType

from bridge import log
from bridge.compaction import Compaction
from bridge.core.records import Forgotten, LeftOut, Unreadable
from bridge.errors import ModelError, TooLong
from bridge.responses import faults
from bridge.session import Session

_TOO_LONG = (
    "The message is too long for the model, even without the rest of the conversation, and was "
    "taken out of it: send a shorter one, or choose a model with a larger window"
)


class Remedies:
    """What was tried for one response; owned by the turn that asks for it.

    A context: when it ends without an error, what was left out has helped and is recorded.
    """

    def __init__(self, session: Session, compaction: Compaction) -> None:
        self.sent: frozenset[str] = frozenset()
        """The parameters of the last request."""
        self.left_out: int | None = None
        """From where on the next request leaves out what the server may not take."""
        self._session = session
        self._compaction = compaction
        self._tried: set[str] = set()

    def __enter__(self) -> "Remedies":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        if kind is None and self.left_out is not None:
            self._session.record(LeftOut(self.left_out))

    async def apply(self, error: ModelError) -> bool:
        """Whether the request is worth another try, now that something is changed; BridgeError."""
        fault = error.fault
        if fault.status == 413 and self._leave_out():  # a picture, most likely
            return True
        if isinstance(error, TooLong):
            return await self._shorten(error)
        if fault.parameter in self.sent:
            self._session.refuse(str(fault.parameter), self._session.model)
            return True
        if fault.code == faults.UNREADABLE:
            return self._once("reasoning") and self._forget_reasoning()
        return faults.is_about_input(fault) and self._leave_out()

    def _leave_out(self) -> bool:
        """Leave out what the server may not take, if the request had any of it."""
        if self.left_out is not None:
            return False
        self.left_out = self._session.history.suspect(self._session.dialect)
        return self.left_out is not None

    async def _shorten(self, error: TooLong) -> bool:
        session = self._session
        if self._once("length") and session.history.is_worked_on:
            await self._compaction.run()
            self.left_out = None  # it counted the entries of the history before
            return True
        session.record(Forgotten(session.next_prompt() - 1))
        raise TooLong(replace(error.fault, message=_TOO_LONG)) from None

    def _forget_reasoning(self) -> bool:
        log.say("the server cannot read the reasoning it encrypted; going on without")
        self._session.record(Unreadable())
        return True

    def _once(self, remedy: str) -> bool:
        if remedy in self._tried:
            return False
        self._tried.add(remedy)
        return True
