"""Where the process starts: the first answer, then the program.

It must not know what the agent does, and until `initialize` is answered it loads nothing that is
not needed for the answer.

Rule 1: before any other import, the search path is made ours. Editors start us inside workspaces
that hold a `tools` or a `json` of their own, with PYTHONPATH pointing to them.
Rule 2: the editor's two descriptors are taken away from everybody else: what is printed by mistake
goes to stderr, and no child can read or write the protocol's bytes.
Rule 3: names of files, arguments and the environment are UTF-8, whatever the locale says: editors,
models and our own files speak nothing else.
Rule 4: the end is quick and silent. A fault that ends the program is one line on stderr.
"""

import os
import sys

_HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def _our_path(path: list[str]) -> list[str]:
    """The search path with our own folder first and without the working directory."""
    try:
        strange = (_HOME, os.getcwd())
    except OSError:  # the working directory was deleted
        strange = (_HOME,)
    absolute = (entry for entry in path if os.path.isabs(entry))
    return [_HOME, *(entry for entry in absolute if os.path.realpath(entry) not in strange)]


sys.path[:] = _our_path(sys.path)

# The module `signal` on top of this one takes longer to load than everything here.
import _signal  # noqa: E402 (the path comes first)  # pyright: ignore[reportMissingImports] (without a stub)

from bridge.core.hello import (  # noqa: E402 (the path comes first)
    BadHandshake,
    initialize,
    line,
    read,
)

try:
    import fcntl
except ImportError:  # native Windows
    fcntl = None

_REINSTALL = "install it anew, in an environment of its own: uv tool install responses-acp"
_ENDINGS = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals that are like the end of input, as far as the system has them; app.py takes over."""
_LONGEST_HELLO = 64 * 1024
"""A first line that is longer is no `initialize` of any client: the program reads on."""


def main() -> int:
    """The console script: the agent, or one of the other commands."""
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:  # settled when Python starts
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 (ourselves)
    match sys.argv[1:]:
        case []:
            return _agent(None)
        case ["--config", file]:
            return _agent(file)
        case ["--record", record]:
            return _agent(None, record)
        case ["--config", file, "--record", record]:
            return _agent(file, record)
        case arguments:
            _open_standard_files()
            if fcntl is None:
                from bridge.windows import SENTENCE  # noqa: PLC0415 (native Windows only)

                sys.stderr.write(f"{SENTENCE}\n")
                return 1
            sys.excepthook = _die  # what cannot be loaded
            from bridge.cli import main as command  # noqa: PLC0415 (not needed by the agent)

            sys.excepthook = sys.__excepthook__
            return command(arguments)


def _open_standard_files() -> None:
    """Put files that hold nothing in the place of those that whoever started us closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (for good; pathlib loads late)


def _agent(config: str | None, record: str | None = None) -> int:
    sys.excepthook = _die
    for name in _ENDINGS:
        if hasattr(_signal, name):
            _signal.signal(getattr(_signal, name), _end)  # pyright: ignore[reportUnknownMemberType] (without a stub)
    try:
        code = _serve(config, record)
    except (KeyboardInterrupt, BrokenPipeError):
        code = 0  # a signal at the very end, an editor that is gone: like the end of input
    os._exit(code)  # waits for no thread


def _end(_kind: int, _frame: object) -> None:
    """End while nothing has begun. An exception would be lost in whatever is being loaded."""
    os._exit(0)


def _serve(config: str | None, record: str | None) -> int:
    if fcntl is None:
        from bridge.windows import serve as refuse  # noqa: PLC0415 (native Windows only)

        return refuse(0, 1)
    try:
        stdin, stdout = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    except OSError:
        os.write(
            2, b"responses-acp: fatal: standard input and output lead to the editor; open them\n"
        )
        return 1
    _leave_to_others()
    for fd in (stdin, stdout):  # whatever the editor left it at
        os.set_blocking(fd, True)
    # What is answered here would be missing in a recording.
    received, hello = _greet(stdin, stdout) if record is None else (b"", None)
    if not received and hello is None and record is None:
        return 0
    from bridge.lean import serve  # noqa: PLC0415 (the program behind the first answer)

    asked = {} if record is None else {"record": record}
    return serve(config, stdin, stdout, received, hello, **asked)  # pyright: ignore[reportArgumentType] (JSON)


def _leave_to_others() -> None:
    """Descriptor 0 reads nothing from now on, descriptor 1 writes to stderr."""
    nothing = os.open(os.devnull, os.O_RDWR)  # becomes stderr if that was closed
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    if nothing > 2:
        os.close(nothing)
    sys.stdout = sys.stderr


def _greet(stdin: int, stdout: int) -> "tuple[bytes, dict[str, object] | None]":
    """Answer a first line that is a plain `initialize`: the bytes not dealt with, its params."""
    received = _first_line(stdin)
    first, end, rest = received.partition(b"\n")
    asked = read(first) if end else None
    if asked is None:
        return received, None
    call, params = asked
    try:
        answer = line(call, initialize(params))
    except BadHandshake:
        return received, None
    while answer:
        answer = answer[os.write(stdout, answer) :]
    return rest, params


def _first_line(stdin: int) -> bytes:
    """Everything up to the first line's end, and what came with it."""
    received = b""
    while b"\n" not in received and len(received) < _LONGEST_HELLO:
        data = os.read(stdin, _LONGEST_HELLO)
        if not data:
            break
        received += data
    return received


def _die(_kind: type[BaseException], error: BaseException, _trace: object) -> None:
    """Say in one line what ended the program, and end it."""
    error = _cause(error)
    what = type(error).__name__
    if isinstance(error, ImportError | OSError):  # the text of others may hold anything
        what = f"{what}: {error}"
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" ({frame.tb_frame.f_code.co_filename}:{frame.tb_lineno})"
    # Another distribution may have put a `tools` of its own over ours.
    remedy = _REINSTALL if isinstance(error, ImportError) else "reinstall it, or report this line"
    text = f"responses-acp: fatal: {what}{where}; {remedy}\n"
    os.write(2, text.encode("utf-8", "replace"))
    os._exit(1)


def _cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] (of anything)
    return error  # pyright: ignore[reportUnknownVariableType] (of anything)


if __name__ == "__main__":
    sys.exit(main())
