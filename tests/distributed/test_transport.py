"""Both transports under the same tests: calls, errors, sums, and workers that are killed, stopped or cannot be made."""

import functools
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import cloudpickle
import numpy as np
import pytest
from commands import lives

from maxmargin.data.errors import DataError
from maxmargin.distributed import Answer, LocalProcesses, RayActors, WorkerDied, processes, transport_of
from maxmargin.distributed.transport import fold, sums
from maxmargin.protocols import OracleError

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers of Ray cannot import the tests

with_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")


class Clerk:
    """The object at the worker."""

    def __init__(self, number=0):
        self.number = number
        self.seen = []

    def echo(self, *args):
        return args

    def note(self, item):
        self.seen.append(item)
        return list(self.seen)

    def nap(self, seconds):
        time.sleep(seconds)
        return self.number

    def scaled(self, array):
        return Answer(self.number, (array * (self.number + 0.1), np.array([self.number])))

    def light_only(self):
        return Answer("light")

    def zeros(self, size):
        return Answer(size, (np.zeros(size),))

    def writes(self, array):
        array[0] = 1

    def fail(self, error):
        raise error

    def fail_oddly(self):
        class Odd(Exception):
            def __reduce__(self):
                raise TypeError("cannot travel")

        raise Odd("no way")

    def unpicklable(self):
        return threading.Lock()

    def environment(self, name):
        return os.environ.get(name)

    def quit(self):
        os._exit(7)

    def leave_a_child(self):
        if (pid := os.fork()) == 0:
            time.sleep(60)
            os._exit(0)
        return pid


def clerks(n):
    return [functools.partial(Clerk, i) for i in range(n)]


@pytest.fixture(params=["local", "ray"])
def new(request):
    """Makes transports with room for n workers, and closes them."""
    kind = LocalProcesses
    if request.param == "ray":
        request.getfixturevalue("ray_here")
        kind = functools.partial(RayActors, patience=60)
    made = []

    def make(n):
        made.append(kind(n_workers=n))
        return made[-1]

    make.kind = request.param
    yield make
    for transport in made:
        transport.close()


def gone(pids, within=10.0):
    until = time.monotonic() + within
    while any(lives(p) for p in pids) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(lives(p) for p in pids)


def test_calls_errors_and_sums(new):
    transport = new(3)
    assert transport.n_workers == 3
    with pytest.raises(RuntimeError, match=r"call start\(\) first"):
        transport.send(0, "echo")
    with pytest.raises(ValueError, match="got 4 makers; this transport has room for 1 to 3"):
        transport.start(clerks(4))
    transport.start(clerks(2))
    assert transport.n_workers == 2
    with pytest.raises(RuntimeError, match="started once"):
        transport.start(clerks(2))
    with pytest.raises(IndexError, match="There is no worker 2"):
        transport.send(2, "echo")

    pids = [transport.pid(i) for i in range(2)]
    assert len({*pids, os.getpid()}) == 3 and all(lives(p) for p in pids)
    assert transport.send(1, "echo", {"a": (1, None)}, "b").result() == ({"a": (1, None)}, "b")
    assert transport.send(0, "light_only").result() == "light"

    # One at a time, in order; and what is sent is what it was at that moment.
    changing = np.zeros(3)
    tickets = []
    for i in range(20):
        changing[:] = i
        tickets.append(transport.send(0, "note", changing))
    np.testing.assert_array_equal(tickets[-1].result(), np.repeat(np.arange(20.0), 3).reshape(20, 3))
    assert transport.send(1, "note", "x").result() == ["x"]

    for error in (DataError("bad row", path="f", row=3), ValueError("v"), MemoryError("m"), OracleError("o", 5)):
        with pytest.raises(type(error)) as caught:
            transport.send(0, "fail", error).result()
        assert type(caught.value) is type(error) and str(caught.value) == str(error)
        assert "in fail" in caught.value.__notes__[0]
    assert caught.value.example == 5
    with pytest.raises(RuntimeError, match="Odd: no way"):
        transport.send(0, "fail_oddly").result()
    with pytest.raises(AttributeError, match="unknown"):
        transport.send(0, "unknown").result()
    with pytest.raises(TypeError, match="pickle"):
        transport.send(0, "unpicklable").result()
    assert transport.send(0, "echo", 1).result() == (1,)

    assert transport.wait([], 1) == []
    naps = [transport.send(0, "nap", 30), transport.send(1, "nap", 0)]
    assert transport.wait(naps, None) == [naps[1]]
    assert transport.wait(naps[:1], 0.05) == []
    transport.close()
    transport.close()
    assert gone(pids)
    with pytest.raises(RuntimeError, match=r"no more after close\(\)"):
        transport.send(0, "echo")


@pytest.mark.parametrize("size", [3, 200_000])
def test_broadcast_and_sums(new, size):
    transport = new(3)
    transport.start(clerks(3))
    rng = np.random.default_rng(size)
    v = rng.normal(size=(2, size))[:, ::-1]
    handle = transport.broadcast(v)
    assert (transport.send(0, "echo", 1, handle, handle).result()[2] == v).all()
    with pytest.raises(ValueError, match="read-only"):
        transport.send(0, "writes", handle).result()
    assert transport.send(0, "echo", transport.broadcast(np.empty((0, 3)))).result()[0].shape == (0, 3)
    with pytest.raises(TypeError, match="dtype object"):
        transport.broadcast(np.array([None]))

    tickets = [transport.send(i, "scaled", handle) for i in (2, 0, 1, 1, 0)]
    before = v.copy()
    v[:] = 0  # the broadcast is a copy
    del handle
    tickets.insert(1, transport.send(0, "light_only"))
    parts = [(before * (i + 0.1), np.array([i])) for i in (2, 0, 1, 1, 0)]
    for _ in range(2):
        total, count = transport.add_up(tickets)
        np.testing.assert_array_equal(total, fold(parts, sums)[0])
        np.testing.assert_allclose(total, sum(p[0] for p in parts), rtol=1e-13, atol=1e-13)
        assert count == [4] and count.dtype == parts[0][1].dtype
        total += 1  # ours to change
    (alone, _) = transport.add_up(tickets[:1])
    alone += 1
    np.testing.assert_array_equal(transport.add_up(tickets[:1])[0], parts[0][0])
    assert transport.add_up(tickets[1:2]) == () == transport.add_up([])
    with pytest.raises(ValueError, match=r"same shapes; got \[\(3,\)\] and \[\(2,\)\]"):
        transport.add_up([transport.send(0, "zeros", 3), transport.send(1, "zeros", 2)])
    with pytest.raises(OracleError):
        transport.add_up([tickets[0], transport.send(0, "fail", OracleError("o", 1))])


def test_fold_uses_each_once_in_order():
    for n in (1, 2, 4, 5, 17, 64, 65):
        assert fold([[i] for i in range(n)], lambda *lists: [x for one in lists for x in one]) == list(range(n))


def outcome(ticket):
    """What came of a call whose worker may have been killed."""
    try:
        return ticket.result()
    except WorkerDied as death:
        assert death.worker == ticket.worker
        return death


def test_killed_at_many_moments(new):
    transport = new(2)
    transport.start(clerks(2))
    local = new.kind == "local"
    moments = np.concatenate([[0], np.geomspace(1e-4, 0.1, 4)]) if local else [0.02]
    for moment in moments:
        big = transport.send(1, "zeros", 4_000_000)  # 32 MB: under way when the signal comes
        queued = transport.send(1, "echo", 1)
        time.sleep(moment)
        os.kill(transport.pid(1), signal.SIGKILL)
        got = outcome(big)
        if isinstance(got, WorkerDied):
            with pytest.raises(WorkerDied):
                transport.add_up([big])
        else:
            np.testing.assert_array_equal(transport.add_up([big])[0], np.zeros(4_000_000))
        assert isinstance(outcome(queued), WorkerDied) or outcome(queued) == (1,)
        after = outcome(transport.send(1, "echo", 2))  # and none is served before restart()
        assert isinstance(after, WorkerDied)
        if local:
            assert str(after) == "worker 1 died: killed by SIGKILL"
        transport.restart(1)
        assert transport.send(1, "note", "first").result() == ["first"]
    assert transport.send(0, "nap", 0).result() == 0

    ticket = transport.send(0, "quit")
    with pytest.raises(WorkerDied, match="exit code 7" if local else "worker 0 died"):
        ticket.result()
    transport.restart(0)
    transport.restart(0)  # one that lives
    assert transport.send(0, "nap", 0).result() == 0


def test_killed_while_it_starts():
    with LocalProcesses(1) as transport:
        transport.start(clerks(1))
        before = transport.pid(0)

        def kill_next():
            while transport.pid(0) == before:
                time.sleep(0.001)
            os.kill(transport.pid(0), signal.SIGKILL)

        killer = threading.Thread(target=kill_next)
        killer.start()
        with pytest.raises(WorkerDied, match="killed by SIGKILL"):
            transport.restart(0)
        killer.join()
        transport.restart(0)
        assert transport.send(0, "nap", 0).result() == 0


def test_a_child_that_holds_the_socket_does_not_hide_a_death():
    with LocalProcesses(1) as transport:
        transport.start(clerks(1))
        child = transport.send(0, "leave_a_child").result()
        nap = transport.send(0, "nap", 60)
        os.kill(transport.pid(0), signal.SIGKILL)
        assert transport.wait([nap], 30) == [nap]
        os.kill(child, signal.SIGKILL)
        assert isinstance(outcome(nap), WorkerDied)


def test_stopped_worker(new):
    transport = new(2)
    transport.start(clerks(2))
    os.kill(transport.pid(0), signal.SIGSTOP)
    pid = transport.pid(0)
    big = np.zeros(1_000_000)
    tickets = [transport.send(0, "echo", big) for _ in range(3)]  # more than a pipe takes
    assert transport.wait(tickets, 0.2) == []
    assert transport.send(1, "nap", 0).result() == 1
    transport.restart(0)
    assert all(isinstance(outcome(t), WorkerDied) for t in tickets)
    assert gone([pid]) and transport.send(0, "nap", 0).result() == 0


class Fails:
    """A maker: counts its calls in a file, then does what it was told for the call of that number."""

    def __init__(self, path, *deeds):
        self.path, self.deeds = path, deeds

    def __call__(self):
        with open(self.path, "a") as file:
            file.write("x")
        deed = dict(enumerate(self.deeds)).get(self.path.stat().st_size - 1, self.deeds[-1])
        if deed == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if deed == "raise":
            raise DataError("no such shard")
        return Clerk(5)


def test_makers_that_fail(new, tmp_path, monkeypatch):
    transport = new(2)
    with pytest.raises(DataError, match="no such shard") as caught:
        transport.start([Clerk, Fails(tmp_path / "raises", "raise")])
    assert "In the worker" in caught.value.__notes__[0]

    transport = new(1)
    with pytest.raises(WorkerDied):
        transport.start([Fails(tmp_path / "dies", "die")])

    transport = new(1)
    transport.start([Fails(tmp_path / "once", "make", "raise", "make")])
    assert transport.send(0, "nap", 0).result() == 5
    with monkeypatch.context() as patch, pytest.raises(DataError, match="no such shard"):
        if new.kind == "ray":
            patch.setattr("ray.kill", lambda actor: None)  # Ray takes its time: calls may reach an actor that was ended
        transport.restart(0)
    with pytest.raises(WorkerDied):
        transport.send(0, "nap", 0).result()
    transport.restart(0)
    assert transport.send(0, "nap", 0).result() == 5


def test_local_workers_leave_interrupts_to_the_driver_and_use_one_thread():
    with LocalProcesses(1) as transport:
        transport.start(clerks(1))
        nap = transport.send(0, "nap", 0.1)
        os.kill(transport.pid(0), signal.SIGINT)
        assert nap.result() == 0
        assert transport.send(0, "environment", "OMP_NUM_THREADS").result() == "1"
    with LocalProcesses(1, blas_threads=3) as transport:
        transport.start(clerks(1))
        assert transport.send(0, "environment", "OPENBLAS_NUM_THREADS").result() == "3"


def test_broadcast_memory_goes_with_its_handle():
    with LocalProcesses(1) as transport:
        transport.start(clerks(1))
        files = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            transport.send(0, "scaled", transport.broadcast(np.ones(10_000))).result()
        transport.send(0, "echo").result()
        assert len(os.listdir("/proc/self/fd")) <= files + 1


SCRIPT = """
import os, sys, time
from maxmargin.distributed import LocalProcesses, RayActors

class Counter:  # no guard around the main module, and a class of its own
    def count(self, n):
        return sum(range(n))  # compiled, and never lets another thread run

if sys.argv[1] == "ray":
    import ray
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
transport = LocalProcesses(2) if sys.argv[1] == "local" else RayActors(n_workers=2)
transport.start([Counter, Counter])
assert transport.send(1, "count", 5).result() == 10
busy = transport.send(0, "count", 10**12)
print(transport.pid(0), transport.pid(1), flush=True)
if sys.argv[2] == "wait":
    time.sleep(100)
"""


@pytest.mark.parametrize(
    ("kind", "end"), [("local", "killed"), ("local", "exits"), pytest.param("ray", "killed", marks=with_ray)]
)
def test_no_worker_outlives_its_driver(tmp_path, kind, end):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(script), kind, "wait" if end == "killed" else "exit"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        pids = [int(p) for p in driver.stdout.readline().split()]
        assert len(pids) == 2, driver.stderr.read()
        if end == "killed":
            assert all(lives(p) for p in pids)
            driver.kill()
        driver.wait(30)
        assert gone(pids, 30)
        if end == "exits":
            assert driver.returncode == 0


def test_ray_that_was_running_goes_on(ray_here):
    RayActors(n_workers=1).close()
    assert ray_here.is_initialized()


def test_words_for_transports(monkeypatch):
    assert isinstance(transport_of("local"), LocalProcesses)
    assert transport_of("local:3").n_workers == 3
    own = LocalProcesses(1)
    assert transport_of(own) is own
    asked = []
    monkeypatch.setattr("maxmargin.distributed.address.RayActors", lambda *a: asked.append(a))
    for word in ("ray://auto", "ray://auto?workers=2", "ray://a.b:10001", "ray://h:1?workers=3"):
        transport_of(word)
    assert asked == [("auto", None), ("auto", 2), ("ray://a.b:10001", None), ("ray://h:1", 3)]
    wrong = ["", "local:", "local:-1", "ray", "ray:4", "ray://", "ray://h/x", "ray://h?cpus=2", "ray://h?workers=x", 4]
    for word in [*wrong, None]:
        with pytest.raises(ValueError, match=r"is not understood\. Possible are") as caught:
            transport_of(word)
        assert repr(word) in str(caught.value)
    for settings in ({"n_workers": 0}, {"n_workers": 1, "blas_threads": 0}):
        with pytest.raises(ValueError, match="at least one worker"):
            LocalProcesses(**settings)


def test_ctrl_c_while_closing_leaves_no_worker(monkeypatch):
    transport = LocalProcesses(2)
    transport.start(clerks(2))
    pids = [transport.pid(i) for i in range(2)]
    pressed = []

    def waiting(worker, patience, plain=processes._Worker._exit_code):
        if not pressed:
            pressed.append(worker)
            raise KeyboardInterrupt
        return plain(worker, patience)

    monkeypatch.setattr(processes._Worker, "_exit_code", waiting)
    with pytest.raises(KeyboardInterrupt):
        transport.close()
    assert pressed and not any(lives(p) for p in pids)
    with pytest.raises(RuntimeError, match="has been closed"):
        transport.start(clerks(2))
