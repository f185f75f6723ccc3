"""The MCP servers of a session, with a client that the test plays: waiting, joining, failing."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest

from bridge.core.remote import RemoteTool
from bridge.core.remote_content import Output
from bridge.remote_tool import Asked, Forgotten, ServerFault
from bridge.servers import Connect, Events, Servers
from bridge.wanted import Address, Program, Unreachable, Wanted
from tests.workspace import Nobody, context
from tools.base import AnyTool, Bound, Context, Filled, Prepared, Result

pytestmark = pytest.mark.anyio

FIND = RemoteTool("find", "Finds.", {}, read_only=True)
DROP = RemoteTool("drop", "Drops.", {})
FORM = {"type": "object", "properties": {"a": {"type": "string"}}}


@dataclass(eq=False)
class Played:
    """One server, as the test plays it."""

    tools: list[RemoteTool] = field(default_factory=lambda: [FIND, DROP])
    connects: bool = True
    may_list: anyio.Event = field(default_factory=anyio.Event)
    said: str = "done"
    structured: object = None
    events: Events | None = None
    on_call: Callable[[Asked], Any] | None = None
    calls: list[tuple[str, Mapping[str, object]]] = field(
        default_factory=list[tuple[str, Mapping[str, object]]]
    )
    open: bool = False
    left: bool = False
    connections: int = 0
    lists: int = 0
    changes: bool = False
    """It tells of other tools whenever it is asked for them."""
    breaks: anyio.Event = field(default_factory=anyio.Event)

    def line(self) -> "PlayedLine":
        return PlayedLine(self)

    @property
    def heard(self) -> Events:
        assert self.events is not None
        return self.events


@dataclass(eq=False)
class PlayedLine:
    played: Played

    async def tools(self) -> tuple[RemoteTool, ...]:
        await self.played.may_list.wait()
        self.played.lists += 1
        if self.played.changes:
            self.played.heard.changed()
        return tuple(self.played.tools)

    async def call(self, name: str, arguments: Mapping[str, object], asked: Asked) -> Output:
        self.played.calls.append((name, arguments))
        if self.played.on_call is not None:
            await self.played.on_call(asked)
        return Output(({"type": "text", "text": self.played.said},), self.played.structured)


@dataclass(eq=False)
class Stage:
    """Some servers at play; owner of what was told."""

    servers: Servers
    played: dict[str, Played]
    told: list[str] = field(default_factory=list[str])

    def tool(self, name: str) -> AnyTool:
        return self.servers.tools[name]

    @property
    def offered(self) -> list[object]:
        return [offer["name"] for offer in self.servers.offered]


def wanted(name: str, **settings: Any) -> Wanted:
    return replace(Wanted(name, Address(name, {}), "editor", wait=0), **settings)


@asynccontextmanager
async def broken_off(one: Played) -> AsyncGenerator[None]:
    """Ends what is done inside with a fault, once the server breaks off."""

    async def watch() -> None:
        await one.breaks.wait()
        one.breaks = anyio.Event()
        raise ServerFault("it is gone")

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            yield
            tasks.cancel_scope.cancel()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


@asynccontextmanager
async def stage(*servers: Wanted, at_once: bool = True, **played: Played) -> AsyncGenerator[Stage]:
    """These servers, started; afterwards they are closed, and all must end."""
    made = {server.name: played.get(server.name, ready()) for server in servers}

    @asynccontextmanager
    async def connect(reach: Program | Address, events: Events) -> AsyncGenerator[PlayedLine]:
        one = made[reach.url if isinstance(reach, Address) else reach.argv[0]]
        one.events = events
        if not one.connects:
            raise ServerFault("there is nobody: hidden-value")
        one.open = True
        one.connections += 1
        try:
            async with broken_off(one):
                yield one.line()
            one.left = True
        finally:
            one.open = False

    async def load() -> Connect:
        return connect

    def tell(name: str, reason: str) -> None:
        shown.told.append(f"{name}: {reason}")

    shown = Stage(Servers(servers, tell, can_ask=True), made)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await shown.servers.run(load, at_once=at_once)

            tasks.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            yield shown
            shown.servers.close()
    assert not any(one.open for one in made.values())


def ready(*tools: RemoteTool) -> Played:
    played = Played(list(tools) or [FIND, DROP])
    played.may_list.set()
    return played


async def run(tool: AnyTool, person: Any = None, **arguments: object) -> Result:
    """Make a call as a turn does."""
    bound = tool.bind(arguments, "/w")
    assert isinstance(bound, Bound)
    printed.clear()
    prepared = await bound.prepare(a_context(person))
    assert isinstance(prepared, Prepared)
    return await prepared.run()


def a_context(person: Any = None) -> Context:
    return replace(context("/w"), person=person or Nobody(), output=printed.append)


printed: list[str] = []


async def test_what_is_ready_is_offered_in_the_order_of_the_servers() -> None:
    async with stage(wanted("b"), wanted("a")) as shown:
        assert shown.offered == []
        await shown.servers.join()
        assert shown.offered == ["mcp__b__find", "mcp__b__drop", "mcp__a__find", "mcp__a__drop"]
        before = shown.servers.offered
        await shown.servers.join()
        assert shown.servers.offered is before
    assert all(one.left for one in shown.played.values())


async def test_a_request_waits_for_a_server_once_and_has_its_tools_when_they_are_there() -> None:
    slow = Played()
    async with stage(wanted("s", wait=0.3), wanted("t"), s=slow) as shown:
        await shown.servers.join()
        assert shown.offered == ["mcp__t__find", "mcp__t__drop"]
        with anyio.fail_after(0.25):
            await shown.servers.join()
        slow.may_list.set()
        await anyio.wait_all_tasks_blocked()
        assert shown.offered == ["mcp__t__find", "mcp__t__drop"]
        await shown.servers.join()
        assert shown.offered[0] == "mcp__s__find"


async def test_a_request_waits_no_longer_than_it_must() -> None:
    slow = Played()
    async with stage(wanted("s", wait=60), s=slow) as shown, anyio.create_task_group() as tasks:
        tasks.start_soon(shown.servers.join)
        await anyio.wait_all_tasks_blocked()
        assert shown.offered == []
        slow.may_list.set()
        await anyio.wait_all_tasks_blocked()
        assert shown.offered == ["mcp__s__find", "mcp__s__drop"]


async def test_a_server_that_changes_while_it_is_waited_for_holds_nobody_up() -> None:
    slow = Played()
    async with stage(wanted("s", wait=60), s=slow) as shown, anyio.create_task_group() as tasks:
        tasks.start_soon(shown.servers.join)
        await anyio.wait_all_tasks_blocked()
        slow.heard.changed()
        slow.may_list.set()
        await anyio.wait_all_tasks_blocked()
        assert shown.offered == ["mcp__s__find", "mcp__s__drop"]


async def test_servers_may_wait_until_they_are_wanted() -> None:
    async with stage(wanted("s", wait=60), at_once=False) as shown:
        assert not shown.played["s"].open
        await shown.servers.join()
        assert shown.offered == ["mcp__s__find", "mcp__s__drop"]


async def test_what_was_never_wanted_is_never_started() -> None:
    async with stage(wanted("s"), at_once=False) as shown:
        pass
    assert shown.played["s"].events is None
    await shown.servers.join()


@pytest.mark.parametrize(
    ("server", "played", "reason"),
    [
        (wanted("s", secrets=("hidden-value",)), Played(connects=False),
         "there is nobody: [redacted]"),
        (wanted("s", reach=Unreachable("not like this")), ready(), "not like this"),
        (wanted("s", start_timeout=0.01), Played(), "it was not ready after 0.01 s"),
    ],
)  # fmt: skip
async def test_a_server_that_fails_costs_one_word_and_its_tools(
    server: Wanted, played: Played, reason: str
) -> None:
    async with stage(replace(server, wait=60), wanted("t"), s=played) as shown:
        await shown.servers.join()
        assert shown.offered == ["mcp__t__find", "mcp__t__drop"]
        assert shown.told == [f"s: {reason}"]
        assert f"- s (editor): failed: {reason}" in shown.servers.view()


async def test_a_server_that_never_connects_is_given_up() -> None:
    @asynccontextmanager
    async def connect(reach: object, events: Events) -> AsyncGenerator[PlayedLine]:
        await anyio.sleep_forever()
        yield ready().line()

    async def load() -> Connect:
        return connect

    told: list[str] = []
    server = wanted("s", wait=60, start_timeout=0.01)
    servers = Servers([server], lambda _, reason: told.append(reason), can_ask=False)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: servers.run(load, at_once=True))
            await servers.join()
            servers.close()
    assert told == ["it was not ready after 0.01 s"]


async def test_a_server_that_ends_keeps_its_tools_for_an_answer_only() -> None:
    async with stage(wanted("s")) as shown:
        await shown.servers.join()
        shown.played["s"].heard.gone("out of memory")
        await shown.servers.join()
        assert shown.offered == []
        await anyio.wait_all_tasks_blocked()
        assert shown.told == ["s: it ended: out of memory"]
        result = await run(shown.tool("mcp__s__find"))
        said = 'Error: the call to MCP server "s" failed: it ended: out of memory'
        assert result == Result(said, ok=False)


async def test_a_call_that_its_server_does_not_survive_says_why() -> None:
    async with stage(wanted("s")) as shown:

        async def end(asked: Asked) -> None:
            shown.played["s"].heard.gone("")
            raise ServerFault("Connection closed")

        async def refuse(asked: Asked) -> None:
            raise ServerFault("no such thing")

        shown.played["s"].on_call = refuse
        result = await run(shown.tool("mcp__s__find"))
        assert result.text.endswith("failed: no such thing")
        shown.played["s"].on_call = end
        result = await run(shown.tool("mcp__s__find"))
        assert result.text.endswith("failed: it ended")


async def test_other_tools_are_offered_from_the_next_request_on() -> None:
    later = ready()
    async with stage(wanted("s", wait=60), s=later) as shown:
        await shown.servers.join()
        later.tools.append(replace(DROP, name="more"))
        later.may_list = anyio.Event()
        later.heard.changed()
        await anyio.wait_all_tasks_blocked()
        later.tools.pop(0)
        later.heard.changed()
        later.may_list.set()
        await shown.servers.join()
        assert shown.offered == ["mcp__s__drop", "mcp__s__more"]
        assert "ready, 2 tools, about " in shown.servers.view()
        _, *tools = shown.servers.view("s").splitlines()
        assert tools == ["  - mcp__s__drop", "  - mcp__s__more"]
        assert shown.servers.view("x") == "Error: there is no MCP server x; there are: s"


async def test_a_server_that_cannot_say_what_changed_is_given_up() -> None:
    async with stage(wanted("s", wait=60, start_timeout=0.5)) as shown:
        await shown.servers.join()
        shown.played["s"].may_list = anyio.Event()
        shown.played["s"].heard.changed()
        await shown.servers.join()
        assert shown.offered == []
    assert shown.told == ["s: it does not say which tools it has"]


async def test_only_the_tools_that_the_user_wants_are_offered() -> None:
    async with stage(wanted("s", tools=("f*",))) as shown:
        await shown.servers.join()
        assert shown.offered == ["mcp__s__find"]


async def rested(shown: Stage) -> None:
    """Wait until the server has nothing to do any more."""
    while shown.played["s"].open or "resting" not in shown.servers.view():
        await anyio.lowlevel.checkpoint()


async def test_a_server_that_is_not_called_rests_until_it_is_called_again() -> None:
    async with stage(wanted("s", rest_after=0.01, wait=60)) as shown:
        await rested(shown)
        await shown.servers.join()
        assert shown.offered == ["mcp__s__find", "mcp__s__drop"], "its tools stay"
        assert "- s (editor): resting, 2 tools, about " in shown.servers.view()
        assert shown.servers.brief() == "s (2 tools)"
        for _ in range(2):
            assert await run(shown.tool("mcp__s__find")) == Result("done")
            await rested(shown)
        shown.played["s"].heard.gone("it was told to end")
    assert shown.told == []
    assert len(shown.played["s"].calls) == 2


async def test_a_server_does_not_rest_during_a_call() -> None:
    async with stage(wanted("s", rest_after=0.01)) as shown:

        async def slow(asked: Asked) -> None:
            with anyio.move_on_after(0.05):
                await anyio.sleep_forever()
            assert shown.played["s"].open

        shown.played["s"].on_call = slow
        await shown.servers.join()
        assert await run(shown.tool("mcp__s__find")) == Result("done")
        await rested(shown)


async def test_calls_that_wake_a_server_go_together() -> None:
    async with stage(wanted("s", rest_after=0.01)) as shown:
        await rested(shown)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(run, shown.tool("mcp__s__find"))
        assert len(shown.played["s"].calls) == 3


async def test_a_server_that_cannot_be_started_again_is_told_of() -> None:
    async with stage(wanted("s", rest_after=0.01)) as shown:
        await rested(shown)
        shown.played["s"].connects = False
        result = await run(shown.tool("mcp__s__find"))
        assert result.text.endswith("failed: there is nobody: hidden-value")
        await shown.servers.join()
        assert shown.offered == []
        assert shown.servers.brief() == "s (failed)"
    assert shown.told == ["s: there is nobody: hidden-value"]


async def asked_for(tool: AnyTool, **arguments: object) -> list[Any]:
    """What the person is shown who is asked for a call."""
    bound = tool.bind(arguments, "/w")
    assert isinstance(bound, Bound)
    prepared = await bound.prepare(a_context())
    assert isinstance(prepared, Prepared)
    return list(prepared.shown or ())


async def test_a_server_that_has_forgotten_us_is_called_anew() -> None:
    async with stage(wanted("s", wait=9), s=ready()) as shown:
        await shown.servers.join()
        one = shown.played["s"]

        async def forget(asked: Asked) -> None:
            if len(one.calls) == 1:
                raise Forgotten("it answered 404 Not Found")

        one.on_call = forget
        assert (await run(shown.tool("mcp__s__find"), q=1)).text == "done"
        assert one.calls == [("find", {"q": 1})] * 2
        assert (one.connections, shown.told) == (2, [])


async def test_a_url_that_breaks_off_is_reached_again_by_the_next_call_and_a_program_is_not() -> (
    None
):
    program = Program(("s",), {}, "/")
    for reach, state in ((Address("s", {}), "resting"), (program, "failed: it is gone")):
        async with stage(wanted("s", wait=9, reach=reach), s=ready()) as shown:
            await shown.servers.join()
            one = shown.played["s"]
            one.breaks.set()
            while f"{state}" not in shown.servers.view():
                await anyio.lowlevel.checkpoint()
            result = await run(shown.tool("mcp__s__find"))
            assert (result.ok, one.connections) == ((True, 2) if "rest" in state else (False, 1))


async def test_a_server_that_changes_again_and_again_is_heeded_at_the_next_request() -> None:
    async with stage(wanted("s", wait=9), s=ready()) as shown:
        one = shown.played["s"]
        for number in range(5):
            await shown.servers.join()
            one.tools = [RemoteTool(f"t{number}", "", {})]
            one.heard.changed()
            await shown.servers.join()
            assert shown.offered == [f"mcp__s__t{number}"]


async def test_a_server_that_changes_whenever_it_is_asked_is_asked_less_and_holds_nobody_up() -> (
    None
):
    async with stage(wanted("s", wait=9), s=ready()) as shown:
        await shown.servers.join()
        one = shown.played["s"]
        one.changes = True
        one.heard.changed()
        with anyio.fail_after(5):
            while one.lists < 12:
                await shown.servers.join()
                await anyio.lowlevel.checkpoint()
        assert len(shown.offered) == 2
        with anyio.move_on_after(0.2):
            await anyio.sleep_forever()
        assert one.lists <= 16


async def test_a_tool_that_its_server_changed_shows_the_change_when_it_is_asked_for() -> None:
    later = ready()
    async with stage(wanted("s", wait=60), s=later) as shown:
        await shown.servers.join()
        assert await asked_for(shown.tool("mcp__s__drop")) == []
        later.tools[1] = replace(DROP, description="Drops all.\n```\nNow.", schema={"a": {}})
        for _ in range(2):  # told again and again, as long as it is another one
            later.heard.changed()
            await shown.servers.join()
            (text, console) = await asked_for(shown.tool("mcp__s__drop"), a=1)
            assert "has changed this tool" in text.text
            assert "````diff\n@@" in text.text
            assert "\n-Drops.\n" in text.text
            assert "\n+Drops all.\n" in text.text
            assert '\n+  "a": {}\n' in text.text
            assert console.text == '{\n  "a": 1\n}'
            assert await asked_for(shown.tool("mcp__s__find")) == []


async def test_a_tool_that_only_calls_itself_otherwise_shows_no_change() -> None:
    later = ready()
    async with stage(wanted("s", wait=60), s=later) as shown:
        await shown.servers.join()
        later.tools[1] = replace(DROP, read_only=True)
        later.heard.changed()
        await shown.servers.join()
        assert await asked_for(shown.tool("mcp__s__drop")) == []


async def test_a_session_that_is_closed_ends_what_is_still_starting() -> None:
    async with stage(wanted("s"), s=Played()) as shown:
        assert shown.played["s"].open
        assert "- s (editor): starting" in shown.servers.view()
    assert not shown.played["s"].left
    assert shown.told == []


async def test_the_end_of_the_process_lets_servers_take_leave() -> None:
    cancelled = ready()

    @asynccontextmanager
    async def connect(reach: object, events: Events) -> AsyncGenerator[PlayedLine]:
        yield cancelled.line()
        await anyio.lowlevel.checkpoint()
        cancelled.left = True

    async def load() -> Connect:
        return connect

    servers = Servers([wanted("s")], lambda _, reason: told.append(reason), can_ask=False)
    told: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: servers.run(load, at_once=True))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert cancelled.left
    assert told == []


# -- calls ----------------------------------------------------------------------------------------


async def test_a_call_goes_to_its_server_and_what_it_says_is_scrubbed() -> None:
    played = ready()
    played.said = "the key is hidden-value"

    async def report(asked: Asked) -> None:
        asked.progress("1 of 2: hidden-value")

    played.on_call = report
    played.structured = {"keys": ["hidden-value", 5]}
    async with stage(wanted("s", secrets=("hidden-value",)), s=played) as shown:
        assert shown.servers.secrets == ("hidden-value",)
        result = await run(shown.tool("mcp__s__find"), what="x")
        assert result == Result("the key is [redacted]")
        assert played.calls == [("find", {"what": "x"})]
        assert printed == ["1 of 2: [redacted]\n"]
        played.said = ""
        result = await run(shown.tool("mcp__s__find"))
        assert result.text == '{"keys": ["[redacted]", 5]}'


async def test_silence_ends_a_call() -> None:
    async def silent(asked: Asked) -> None:
        await anyio.sleep_forever()

    played = ready()
    played.on_call = silent
    async with stage(wanted("s", call_timeout=0.01), s=played) as shown:
        result = await run(shown.tool("mcp__s__find"))
        assert "was silent for 0.01 s" in result.text
        assert not result.ok


async def test_progress_begins_the_limit_anew_and_a_person_stops_it() -> None:
    limits: list[float] = []

    class Thinker(Nobody):
        async def fill(self, message: str, form: Mapping[str, object]) -> Filled:
            limits.append(anyio.current_effective_deadline())
            return Filled("decline")

    async def slow(asked: Asked) -> None:
        limits.append(anyio.current_effective_deadline())
        await anyio.lowlevel.checkpoint()
        asked.progress("still here")
        limits.append(anyio.current_effective_deadline())
        await asked.fill("How long?", FORM)
        limits.append(anyio.current_effective_deadline())

    played = ready()
    played.on_call = slow
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + 5) as whole:
        async with stage(wanted("s", call_timeout=3), s=played) as shown:
            assert await run(shown.tool("mcp__s__find"), Thinker()) == Result("done")
    first, progressed, asking, after = limits
    assert first < progressed < after < asking <= whole.deadline


@pytest.mark.parametrize(
    ("asked_for", "answer", "filled"),
    [
        (FORM, Filled("accept", {"a": "x"}), Filled("accept", {"a": "x"})),
        (FORM, Filled("accept", {"a": 5}), Filled("cancel")),
        (FORM, Filled("decline"), Filled("decline")),
        ({"properties": {"a": {"type": "object"}}}, Filled("accept", {}), Filled("decline")),
    ],
)
async def test_a_server_gets_what_the_person_filled_in(
    asked_for: Any, answer: Filled, filled: Filled
) -> None:
    class Person(Nobody):
        async def fill(self, message: str, form: Mapping[str, object]) -> Filled:
            assert message == 'MCP server "s" asks:\n\nWhat?'
            return answer

    async def ask(asked: Asked) -> None:
        got.append(await asked.fill("What?", asked_for))

    got: list[Filled] = []
    played = ready()
    played.on_call = ask
    async with stage(wanted("s"), s=played) as shown:
        await run(shown.tool("mcp__s__find"), Person())
    assert got == [filled]


@pytest.mark.parametrize(
    ("tool", "trust", "kind", "free"),
    [(FIND, True, "read", True), (FIND, False, "other", False), (DROP, True, "other", False)],
)
async def test_a_card_says_whose_tool_it_is_and_what_is_trusted(
    tool: RemoteTool, trust: bool, kind: str, free: bool
) -> None:
    async with stage(wanted("s", trust_read_only=trust), s=ready(tool)) as shown:
        one = shown.tool(f"mcp__s__{tool.name}")
        assert (one.mutates, one.parallel) == (not free, free)
        bound = one.bind({}, "/w")
        assert isinstance(bound, Bound)
        assert (bound.card.title, bound.card.kind) == (f"s: {tool.name}", kind)


async def test_a_client_that_cannot_be_loaded_costs_no_request_more_than_its_wait() -> None:
    async def load() -> Connect:
        raise ImportError

    servers = Servers([wanted("s", wait=0.01)], lambda name, reason: None, can_ask=False)
    with anyio.fail_after(5), pytest.raises(ImportError):
        await servers.run(load, at_once=True)
    with anyio.fail_after(5):
        await servers.join()
    assert list(servers.offered) == []
