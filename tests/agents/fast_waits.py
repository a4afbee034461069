"""Waits of every kind for an hour, run by a process whose clock is fast: prints how long each took by its clocks.

    python fast_waits.py before|after

``before``: each wait begins in real time, says so on stdout, and the clock is made fast meanwhile.
"""

import asyncio
import concurrent.futures
import ctypes
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

HOUR = 3600.0
SYS_FUTEX = {"x86_64": 202, "aarch64": 98}.get(os.uname().machine)
FUTEX_WAIT, FUTEX_WAIT_BITSET = 0, 9
LIBC = ctypes.CDLL(None, use_errno=True)


class Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def after_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    assert not lock.acquire(timeout=HOUR)


def after_an_event() -> None:
    assert not threading.Event().wait(HOUR)


def after_a_queue() -> None:
    try:
        queue.SimpleQueue[int]().get(timeout=HOUR)
    except queue.Empty:
        return
    raise AssertionError


def after_a_future() -> None:
    release = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(release.wait)
        try:
            future.result(HOUR)
        except TimeoutError:
            return
        finally:
            release.set()
    raise AssertionError


def after_select() -> None:
    reader, _ = os.pipe()
    assert select.select([reader], [], [], HOUR) == ([], [], [])


def after_poll() -> None:
    poll = select.poll()
    poll.register(os.pipe()[0], select.POLLIN)
    assert poll.poll(HOUR * 1000) == []


def after_epoll() -> None:
    with select.epoll() as epoll:
        epoll.register(os.pipe()[0], select.EPOLLIN)
        assert epoll.poll(HOUR) == []


def after_a_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(HOUR)
        try:
            server.accept()
        except TimeoutError:
            return
    raise AssertionError


def after_asyncio() -> None:
    async def wait() -> None:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), HOUR)
        except TimeoutError:
            return
        raise AssertionError

    asyncio.run(wait())


def after_a_child() -> None:
    assert subprocess.run(["sleep", str(HOUR)], check=False).returncode == 0


def after_a_child_that_is_killed() -> None:
    try:
        subprocess.run(["sleep", "1000000"], timeout=HOUR, check=False)
    except subprocess.TimeoutExpired:
        return
    raise AssertionError


def after_timeout() -> None:
    assert subprocess.run(["timeout", str(HOUR), "sleep", "1000000"], check=False).returncode == 124


def until_the_alarm(start: Callable[[], object]) -> None:
    """Wait for SIGALRM, held back before: one that came just before a `pause` would be waited for in vain."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    start()
    signal.sigwait({signal.SIGALRM})
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def after_an_alarm() -> None:
    until_the_alarm(lambda: signal.alarm(int(HOUR)))


def after_an_interval_timer() -> None:
    until_the_alarm(lambda: signal.setitimer(signal.ITIMER_REAL, HOUR))


def after_a_futex() -> None:
    word = ctypes.c_int(5)
    timeout = Timespec(int(HOUR), 0)
    assert LIBC.syscall(SYS_FUTEX, ctypes.byref(word), FUTEX_WAIT, 5, ctypes.byref(timeout), None, 0) == -1


def after_a_futex_until_a_moment() -> None:
    word = ctypes.c_int(5)
    moment = Timespec(int(time.monotonic() + HOUR) + 1, 0)
    every = ctypes.c_uint(0xFFFFFFFF)
    result = LIBC.syscall(SYS_FUTEX, ctypes.byref(word), FUTEX_WAIT_BITSET, 5, ctypes.byref(moment), None, every)
    assert result == -1


def after_a_condition_of_libc() -> None:
    condition, mutex = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    moment = Timespec(int(time.time() + HOUR) + 1, 0)
    LIBC.pthread_mutex_lock(mutex)
    # It may wake for no reason, as every caller has to expect.
    while (result := LIBC.pthread_cond_timedwait(condition, mutex, ctypes.byref(moment))) == 0:
        pass
    assert result == 110


KINDS: dict[str, Callable[[], None]] = {
    "sleep": lambda: time.sleep(HOUR),
    "lock": after_a_lock,
    "event": after_an_event,
    "queue": after_a_queue,
    "future": after_a_future,
    "select": after_select,
    "poll": after_poll,
    "epoll": after_epoll,
    "socket": after_a_socket,
    "asyncio": after_asyncio,
    "child": after_a_child,
    "killed-child": after_a_child_that_is_killed,
    "condition": after_a_condition_of_libc,
}
if SYS_FUTEX is not None:
    KINDS |= {"futex": after_a_futex, "futex-moment": after_a_futex_until_a_moment}
TIMERS: dict[str, Callable[[], None]] = {
    "alarm": after_an_alarm,
    "interval-timer": after_an_interval_timer,
    "timeout": after_timeout,
}
"""Set with the kernel: only those that are set once the clock is fast."""


def took(wait: Callable[[], None]) -> tuple[float, float]:
    """Return the seconds by the monotonic and by the wall clock."""
    before = time.monotonic(), time.time()
    wait()
    return time.monotonic() - before[0], time.time() - before[1]


def main() -> None:
    if sys.argv[1] == "after":
        print(json.dumps({name: took(wait) for name, wait in {**KINDS, **TIMERS}.items()}), flush=True)
        return
    with concurrent.futures.ThreadPoolExecutor(len(KINDS)) as pool:
        futures = {name: pool.submit(took, wait) for name, wait in KINDS.items()}
        # Long enough for all of them to wait; were one late, it would only be tested less.
        time.sleep(0.5)
        print("waiting", flush=True)
        print(json.dumps({name: future.result() for name, future in futures.items()}), flush=True)


if __name__ == "__main__":
    main()
