"""What the model is told of a command: what it printed, then how it ended.

Pure: it formats.
"""

from tools.base import Ended

_HINT = (
    "[if the command must have that, call again with sandbox_permissions and a justification; "
    "the user is asked]"
)


def output(ended: Ended) -> str:
    """What a command printed on its two streams."""
    errors = [f"[stderr]\n{ended.stderr}"] if ended.stderr else []
    printed = [ended.stdout] if ended.stdout else []
    return lines(*printed, *errors) or "(no output)"


def lines(*texts: str) -> str:
    """The texts, each beginning on a line of its own; nothing is added at the end."""
    joined = ""
    for text in texts:
        joined += text if not joined or joined.endswith("\n") else f"\n{text}"
    return joined


def markers(ended: Ended, milliseconds: int | None) -> list[str]:
    """How a command ended, where that is worth a word; the number is its limit, if it is known."""
    found = [f"[whole output: {path}]" for path in ended.whole]
    found += [f"[sandbox: {note}]" for note in ended.notes]
    if any("denied" in note for note in ended.notes):
        found.append(_HINT)
    if ended.timed_out:
        after = "" if milliseconds is None else f" after {milliseconds}ms"
        found.append(f"[timed out{after}]")
    if ended.signal is not None:
        found.append(f"[killed by signal: {ended.signal}]")
    elif ended.code:
        found.append(f"[exit code: {ended.code}]")
    return found
