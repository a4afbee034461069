"""A callable in the place of the supplier's: of the same kind, healthy until the fault is due.

Four kinds: a function, an async function, and a generator function of either sort; with ``stream=True`` the first
two give an iterator. Knows turns and ways; nothing of what the fault is called.
"""

import asyncio
import functools
import inspect
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, contextmanager
from types import TracebackType
from typing import Any, Self

from pytest_regcase.errors import UsageRefused
from pytest_regcase.supplier.in_process.reading import CallReader
from pytest_regcase.supplier.in_process.turns import Turn, Turns
from pytest_regcase.supplier.in_process.ways import Way
from pytest_regcase.supplier.protocol import UpstreamReply

_NOTHING = UpstreamReply(text="")


class Callables:
    """Makes the callable. `way_of` says how the fault is shown in a stream (True) or outside; None: not at all."""

    def __init__(
        self,
        supplier: Callable[..., Any],
        turns: Turns,
        reader: CallReader,
        way_of: Callable[[bool], Way | None],
        empty: Any,
    ) -> None:
        self._supplier = supplier
        self._turns = turns
        self._reader = reader
        self._way_of = way_of
        self._empty = empty

    def make(self) -> Callable[..., Any]:
        """Return the callable, of the same kind as the supplier's."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._stream(args, kwargs) if kwargs.get("stream") else self._call(args, kwargs)

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("stream"):
                return await self._stream_async(args, kwargs, awaited=True)
            return await self._call_async(args, kwargs)

        def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            yield from self._stream(args, kwargs)

        async def generate_async(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            async with aclosing(await self._stream_async(args, kwargs, awaited=False)) as parts:
                async for part in parts:
                    yield part

        made: Callable[..., Any] = call
        if _is(inspect.isasyncgenfunction, self._supplier):
            made = generate_async
        elif _is(inspect.isgeneratorfunction, self._supplier):
            made = generate
        elif _is(inspect.iscoroutinefunction, self._supplier):
            made = call_async
        return functools.update_wrapper(made, self._supplier, updated=())

    def _begin(self, args: Any, kwargs: Any, *, streaming: bool) -> tuple[Turn, Way | None]:
        turn = self._turns.begin(self._reader.request(args, kwargs, streaming=streaming), streaming=streaming)
        return turn, self._way_of(streaming) if turn.due.faulted else None

    # whole answers

    def _call(self, args: Any, kwargs: Any) -> Any:
        turn, way = self._begin(args, kwargs, streaming=False)
        if way is not None:
            with _let_go(turn):
                time.sleep(way.wait_seconds)
            if way.then != "answer":
                return self._end(turn, way)
        with _failing(turn):
            value = self._supplier(*args, **kwargs)
            if inspect.isawaitable(value):
                getattr(value, "close", _nothing)()
                raise UsageRefused(
                    "Couldn't read what the supplier gave: it is to be awaited, but the supplier is no async"
                    " function.\nPass an async function that awaits it."
                )
        return self._given(turn, way, value)

    async def _call_async(self, args: Any, kwargs: Any) -> Any:
        turn, way = self._begin(args, kwargs, streaming=False)
        if way is not None:
            with _let_go(turn):
                await asyncio.sleep(way.wait_seconds)
            if way.then != "answer":
                return self._end(turn, way)
        with _failing(turn):
            value = await self._supplier(*args, **kwargs)
        return self._given(turn, way, value)

    def _given(self, turn: Turn, way: Way | None, value: Any) -> Any:
        with _failing(turn):
            said = self._reader.reply(value)
        turn.answered(said, late=way is not None)
        return value

    def _end(self, turn: Turn, way: Way) -> Any:
        """Do what a fault does last, where it is no stream."""
        if way.then == "raise":
            turn.faulted(None, by="peer" if way.wait_seconds else "us")
            raise way.exception()
        turn.faulted(_NOTHING, complete=True)
        return self._empty

    # streams; what comes before their first part happens at once, as a client library's call does

    def _stream(self, args: Any, kwargs: Any) -> Generator[Any, None, None]:
        turn, way = self._begin(args, kwargs, streaming=True)
        if way is not None and not way.begins:
            with _let_go(turn):
                time.sleep(way.wait_seconds)
            if way.then == "raise":
                self._end(turn, way)
        source = () if way is not None and way.is_empty else self._source(turn, args, kwargs)
        return self._parts(_Taken(self._reader, turn, way), source)

    async def _stream_async(self, args: Any, kwargs: Any, *, awaited: bool) -> AsyncGenerator[Any, None]:
        turn, way = self._begin(args, kwargs, streaming=True)
        if way is not None and not way.begins:
            with _let_go(turn):
                await asyncio.sleep(way.wait_seconds)
            if way.then == "raise":
                self._end(turn, way)
        if way is not None and way.is_empty:
            return self._parts_async(_Taken(self._reader, turn, way), _no_parts())
        source = self._source(turn, args, kwargs)
        if awaited:
            with _failing(turn):
                source = await source
        return self._parts_async(_Taken(self._reader, turn, way), source)

    def _source(self, turn: Turn, args: Any, kwargs: Any) -> Any:
        with _failing(turn):
            return self._supplier(*args, **kwargs)

    def _parts(self, taken: "_Taken", source: Any) -> Generator[Any, None, None]:
        try:
            with taken:
                for part in source:
                    taken.add(part)
                    yield part
                    if taken.breaks_here:
                        time.sleep(taken.wait_seconds)
                        break
                taken.end()
        finally:
            getattr(source, "close", _nothing)()

    async def _parts_async(self, taken: "_Taken", source: Any) -> AsyncGenerator[Any, None]:
        try:
            with taken:
                async for part in source:
                    taken.add(part)
                    yield part
                    if taken.breaks_here:
                        await asyncio.sleep(taken.wait_seconds)
                        break
                taken.end()
        finally:
            closed = getattr(source, "aclose", getattr(source, "close", _nothing))()
            if inspect.isawaitable(closed):
                await closed


class _Taken:
    """What a caller took of a stream. As a context manager it records how the stream ended, whoever ended it."""

    def __init__(self, reader: CallReader, turn: Turn, way: Way | None) -> None:
        self._reader = reader
        self._turn = turn
        self._way = way
        self._parts: list[Any] = []
        self._ended = False

    @property
    def breaks_here(self) -> bool:
        """Say whether the fault is due behind the parts that were taken: they say something by now."""
        if self._way is None or not self._way.begins:
            return False
        said = self._reader.parts(self._parts, whole=False)
        return bool(said.text or said.tool_calls)

    @property
    def wait_seconds(self) -> float:
        """How long it hangs there."""
        return self._way.wait_seconds if self._way is not None else 0.0

    def add(self, part: Any) -> None:
        """Note a part that is about to be handed over."""
        self._turn.hands_over()
        self._parts.append(part)

    def end(self) -> None:
        """Do what comes behind the last part: nothing for a healthy stream, else the rest of the fault."""
        way, count = self._way, len(self._parts)
        said = self._reader.parts(self._parts, whole=way is None or way.then == "answer")
        self._ended = True
        if way is None or way.then == "answer":
            self._turn.answered(said, late=way is not None, parts=count)
        elif way.then == "raise":
            self._turn.faulted(said, parts=count, by="peer" if way.wait_seconds else "us")
            raise way.exception()
        else:
            self._turn.faulted(said, complete=True, parts=count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        said, count = self._reader.parts(self._parts, whole=False), len(self._parts)
        if self._way is not None:
            self._turn.faulted(said, parts=count, by="peer")
        elif isinstance(error, Exception):
            self._turn.broke_off(said, parts=count, failure=type(error).__name__)
        elif said.finish is not None:
            # Who has read the reason why a reply is finished has the whole of it.
            self._turn.answered(said, parts=count)
        else:
            self._turn.broke_off(said, parts=count)


@contextmanager
def _let_go(turn: Turn) -> Iterator[None]:
    """Record a caller that does not wait to the end (a cancelled task, Ctrl-C)."""
    try:
        yield
    except BaseException:
        turn.faulted(None, by="peer")
        raise


@contextmanager
def _failing(turn: Turn) -> Iterator[None]:
    """Record that the supplier's own callable failed, or was not waited for."""
    try:
        yield
    except BaseException as error:
        turn.broke_off(_NOTHING, failure=type(error).__name__ if isinstance(error, Exception) else None)
        raise


def _is(test: Callable[[Any], bool], supplier: Callable[..., Any]) -> bool:
    """Say whether the supplier, or its class where it is an object with a `__call__`, is of that kind."""
    return test(supplier) or test(getattr(type(supplier), "__call__", None))  # noqa: B004


def _nothing() -> None:
    """Stand in for a close that a source does not have."""


async def _no_parts() -> AsyncGenerator[Any, None]:
    return
    yield  # what makes it a generator
