"""The profiler: what it sees, compared with other counts and clocks; traces, tables, threads, forks, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import mxnet as mx
from mxnet import _core, autograd, gluon, np, profiler

Event = dict[str, Any]


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path) -> Iterator[None]:
    """Each test begins with an empty profiler and the default settings."""
    yield
    profiler.set_config(filename=tmp_path / "end.json")
    profiler.resume()
    profiler.dump()
    profiler.dumps(reset=True)
    profiler.set_config()


def record(path: Path, body: Callable[[], Any], **options: Any) -> list[Event]:
    """The events of the trace of `body`, without metadata."""
    file = path / "profile.json"
    profiler.set_config(filename=file, **options)
    profiler.set_state("run")
    try:
        body()
    finally:
        profiler.set_state("stop")
    profiler.dump()
    events = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] != "M"]
    return sorted(events, key=lambda event: event["ts"])


def operators(events: list[Event]) -> Counter[str]:
    """Names of the operators that were called one by one, not by others."""
    kinds = ("operator", "view", "copy", "operator,backward", "view,backward", "copy,backward")
    found = [event for event in events if event["cat"] in kinds]
    return Counter(event["name"] for event in found if "inside_operator" not in event["args"])


def test_an_operator_has_times_operands_and_bytes(tmp_path: Path) -> None:
    x, y = np.ones((3, 4)), np.ones((4, 5), dtype="float64")

    def body() -> None:
        np.matmul(x.astype("float64"), y)

    before = time.perf_counter()
    events = record(tmp_path, body)
    passed_us = (time.perf_counter() - before) * 1e6
    [event] = [event for event in events if event["name"] == "matmul"]
    assert event["cat"] == "operator"
    assert event["ph"] == "X"
    assert event["pid"] == os.getpid()
    assert event["args"]["inputs"] == [
        {"shape": [3, 4], "dtype": "float64"},
        {"shape": [4, 5], "dtype": "float64"},
    ]
    assert event["args"]["outputs"] == [{"shape": [3, 5], "dtype": "float64"}]
    assert event["args"]["bytes"] == 3 * 5 * 8
    assert 0 <= event["dur"] <= passed_us
    assert "queued_us" not in event["args"]


def test_times_are_those_of_a_clock(tmp_path: Path) -> None:
    x = np.ones((300, 300))
    seconds = 0.0

    def body() -> None:
        nonlocal seconds
        begin = time.perf_counter()
        for _ in range(20):
            np.matmul(x, x).wait_to_read()
        seconds = time.perf_counter() - begin

    events = record(tmp_path, body)
    runs = [event for event in events if event["name"] == "matmul"]
    assert len(runs) == 20
    # Products of this size are nearly all of the time. The lower bound leaves room for a busy machine.
    total = sum(event["dur"] for event in runs) / 1e6
    assert 0.05 * seconds < total <= seconds


def seen_by_hook(body: Callable[[], Any]) -> Counter[str]:
    names: Counter[str] = Counter()

    def show(name: str, inputs: Any, outputs: Any) -> None:
        names[name] += 1

    _core.with_op_hook(show, body)
    return names


def network(hybridize: bool = False) -> tuple[Any, Any, Any, Any]:
    mx.random.seed(0)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(3))
    net.initialize()
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    x = np.array(numpy.random.default_rng(0).normal(size=(5, 4)), dtype="float32")
    y = np.array([0, 1, 2, 0, 1])
    loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def step() -> Any:
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(5)
        return value

    return net, trainer, step, x


def test_every_operator_of_a_training_step_is_seen(tmp_path: Path) -> None:
    step = network()[2]
    step()
    expected: Counter[str] = Counter()

    def body() -> None:
        expected.update(seen_by_hook(step))

    found = operators(record(tmp_path, body))
    assert len(expected) > 8
    missing = expected - found
    assert not missing
    # A step without the hook runs the same kernels, except for what interpreters have done otherwise.
    unprofiled = operators(record(tmp_path, step))
    for name in ("fully_connected", "batch_norm_training", "relu", "fused_adam", "cross_entropy"):
        assert unprofiled[name] == expected[name], name


def test_backward_operators_are_distinguished_from_forward_ones(tmp_path: Path) -> None:
    x = np.ones((4, 4))
    x.attach_grad()

    def body() -> None:
        with autograd.record():
            y = np.exp(x).sum()
        y.backward()

    events = record(tmp_path, body)
    categories = {(event["name"], event["cat"]) for event in events}
    assert ("exp", "operator") in categories
    assert ("exp", "operator,backward") not in categories
    assert any(category == "operator,backward" for _, category in categories)


def test_graphs_have_a_run_and_their_nodes(tmp_path: Path) -> None:
    @mx.jit
    def function(x: Any) -> Any:
        return np.matmul(np.exp(x) * 2 + 1, x)

    x = np.ones((6, 6))
    function(x)
    events = record(tmp_path, lambda: [function(x) for _ in range(3)])
    runs = [event for event in events if event["cat"] == "graph"]
    nodes = [event for event in events if event["cat"] == "graph operator"]
    assert len(runs) == 3
    per_run = [node for node in nodes if inside(node, runs[0])]
    assert len(nodes) == 3 * len(per_run)
    [product] = [node for node in per_run if node["name"] == "matmul"]
    assert "test_profiler.py" in product["args"]["line"]
    # The three elementwise operators run as one loop.
    fused = [node for node in per_run if node["name"].startswith("fused(")]
    assert [node["name"] for node in fused] == ["fused(exp, multiply, add)"]
    assert not operators(events)


def inside(inner: Event, outer: Event) -> bool:
    ends = inner["ts"] + inner["dur"], outer["ts"] + outer["dur"]
    return bool(inner["ts"] >= outer["ts"] and ends[0] <= ends[1] + 0.002)


def test_hybridized_steps_show_graphs_forward_and_backward_with_scopes(tmp_path: Path) -> None:
    net, _, step, _ = network(hybridize=True)
    step()
    events = record(tmp_path, step)
    categories = {event["cat"] for event in events}
    assert {"graph", "graph,backward", "graph operator", "graph operator,backward"} <= categories
    scopes = {event["args"].get("scope") for event in events if event["cat"] == "graph operator"}
    assert "HybridSequential:0:" in scopes
    assert "HybridSequential:2:" in scopes
    del net


def test_eager_blocks_are_scopes(tmp_path: Path) -> None:
    net, _, _, x = network()
    net(x)
    events = record(tmp_path, lambda: net(x))
    scopes = [event["args"].get("scope") for event in events if event["name"] == "fully_connected"]
    assert scopes == ["HybridSequential:0:", "HybridSequential:2:"]


def test_whole_steps_under_jit_are_seen(tmp_path: Path) -> None:
    w = np.ones((4,))
    w.attach_grad()

    @mx.jit
    def step(x: Any) -> Any:
        with autograd.record():
            y = (w * x).sum()
        y.backward()
        return y

    x = np.arange(4.0)
    step(x)
    events = record(tmp_path, lambda: step(x))
    [run] = [event for event in events if event["cat"] == "graph"]
    nodes = [event for event in events if event["cat"].startswith("graph operator")]
    assert {node["cat"] for node in nodes} == {"graph operator", "graph operator,backward"}
    assert all(inside(node, run) for node in nodes)


def test_results_are_the_same_bits(tmp_path: Path) -> None:
    def work() -> list[numpy.ndarray[Any, Any]]:
        net, _, step, x = network()
        values = [step().asnumpy() for _ in range(3)]
        z = np.arange(24.0).reshape(4, 6)
        z[1, 2:4] = 7
        z[z > 20] -= 1
        values += [net(x).asnumpy(), z.asnumpy(), (z[2] + z[:, 1:2]).asnumpy()]
        values.append(numpy.array([float(z[3, 1]) + float(z[0, 0] + 1)]))
        return values

    unprofiled = work()
    profiled: list[Any] = []
    record(tmp_path, lambda: profiled.extend(work()), profile_all=True)
    for a, b in zip(unprofiled, profiled, strict=True):
        assert a.tobytes() == b.tobytes()


def test_element_reads_and_writes_are_operators(tmp_path: Path) -> None:
    x = np.arange(10.0)

    def body() -> None:
        x[3] = 5.0
        _ = x[2] + 1
        _ = x[1:4]
        x[[1, 2]] = 0

    expected: Counter[str] = Counter()
    found = operators(record(tmp_path, lambda: expected.update(seen_by_hook(body))))
    assert expected.total() >= 4
    assert not expected - found
    # Without the hook no fast path goes by either: at least as many events as statements.
    assert operators(record(tmp_path, body)).total() >= 4


def test_queued_operators_tell_waiting_from_running(tmp_path: Path) -> None:
    x = np.ones((200, 200))

    def body() -> None:
        y = x
        for _ in range(5):
            y = np.matmul(y, x)
        mx.waitall()

    with mx.engine.mode("async"):
        events = record(tmp_path, body)
    runs = [event for event in events if event["name"] == "matmul"]
    assert len(runs) == 5
    for earlier, later in zip(runs, runs[1:], strict=False):
        # Each waits for the one before: begun after its end, pushed before.
        assert later["ts"] + 0.002 >= earlier["ts"] + earlier["dur"]
    assert all(event["args"]["queued_us"] >= 0 for event in runs)
    # They were pushed in the order of the calls.
    pushed = [event["ts"] - event["args"]["queued_us"] for event in runs]
    assert all(earlier <= later + 0.002 for earlier, later in zip(pushed, pushed[1:], strict=False))
    table = json.loads(profiler.dumps(format="json"))["Time"]
    assert table["operator,queue"]["matmul"]["Count"] == 5
    assert table["operator"]["matmul"]["Count"] == 5


def test_memory_counters_follow_what_is_alive(tmp_path: Path) -> None:
    kept: list[Any] = []

    def body() -> None:
        for _ in range(3):
            kept.append(np.ones((1 << 20,)))
            kept[-1].wait_to_read()

    events = record(tmp_path, body, profile_imperative=True, profile_memory=True)
    counters = [event["args"] for event in events if event["ph"] == "C"]
    live = [counter["live_bytes"] for counter in counters]
    assert live[-1] - live[0] >= 2 * (4 << 20)
    assert all(counter["peak_bytes"] >= counter["live_bytes"] for counter in counters)
    storage = json.loads(profiler.dumps(format="json"))["Memory"]["Device Storage"]["Memory: cpu(0)"]
    assert storage["Peak"] >= storage["Max"] >= storage["Avg"] >= storage["Min"] > 0
    assert "Device Storage" in profiler.dumps()


def test_copies_between_devices_are_a_category(tmp_path: Path) -> None:
    _core.add_simulated_devices()
    device = mx.Device("sim", 0)
    x = np.ones((16, 16))
    events = record(tmp_path, lambda: x.to_device(device).to_device(mx.cpu()).wait_to_read())
    copies = [event for event in events if event["cat"] == "copy"]
    assert len(copies) == 2
    assert all(event["args"]["bytes"] == 16 * 16 * 4 for event in copies)


def test_events_of_the_program(tmp_path: Path) -> None:
    domain = profiler.Domain("training")
    task, frame = domain.new_task("epoch"), domain.new_frame("step")
    event, counter = profiler.Event("load"), domain.new_counter("batches")
    marker = domain.new_marker("here")
    outer = profiler.Task(domain, "outer")

    def body() -> None:
        outer.start()
        for span in (task, frame, event):
            span.start()
            np.ones(3)
            span.stop()
        outer.stop()
        counter.set_value(5)
        counter.increment(3)
        counter.decrement()
        nonlocal_counter = counter
        nonlocal_counter += 10
        nonlocal_counter -= 2
        for scope in ("global", "process", "thread", "task", "marker"):
            marker.mark(scope)

    events = record(tmp_path, body)
    by_name = {event["name"]: event for event in events}
    assert by_name["epoch"]["cat"] == "training"
    assert by_name["step"]["cat"] == "training,frame"
    assert by_name["load"]["cat"] == "event"
    assert all(inside(by_name[name], by_name["outer"]) for name in ("epoch", "step", "load"))
    assert [e["args"]["value"] for e in events if e["name"] == "batches"] == [5, 8, 7, 17, 15]
    assert [e["s"] for e in events if e["name"] == "here"] == ["g", "p", "t", "t", "t"]
    statistics = json.loads(profiler.dumps(format="json"))
    assert statistics["Time"]["training"]["epoch"]["Count"] == 1
    assert statistics["Value"]["training,counter"]["batches"] == {"Count": 5, "Min": 5, "Max": 17, "Avg": 10.4}
    assert str(domain) == "training"
    assert [str(x) for x in (task, frame, event, counter, marker)] == ["epoch", "step", "load", "batches", "here"]


def test_counters_take_negative_values(tmp_path: Path) -> None:
    counter = profiler.Domain("d").new_counter("c", -4)
    events = record(tmp_path, lambda: [counter.set_value(-3), counter.decrement(7)])
    assert [event["args"]["value"] for event in events] == [-3, -10]
    values = json.loads(profiler.dumps(format="json"))["Value"]["d,counter"]["c"]
    assert (values["Min"], values["Max"], values["Avg"]) == (-10, -3, -6.5)
    with pytest.raises(OverflowError):
        counter.set_value(1 << 70)


def test_scopes_name_operators(tmp_path: Path) -> None:
    def body() -> None:
        with profiler.scope("outer") as outer:
            assert outer == "outer:"
            np.exp(np.ones(2))
            with profiler.scope("inner:"):
                np.log(np.ones(2))
            with profiler.scope("alone", append_mode=False):
                np.sin(np.ones(2))
        np.cos(np.ones(2))

    events = {event["name"]: event for event in record(tmp_path, body)}
    assert events["exp"]["args"]["scope"] == "outer:"
    assert events["log"]["args"]["scope"] == "outer:inner:"
    assert events["sin"]["args"]["scope"] == "alone:"
    assert "scope" not in events["cos"]["args"]


def test_pause_and_stop_record_nothing(tmp_path: Path) -> None:
    def body() -> None:
        np.exp(np.ones(2))
        profiler.pause()
        np.log(np.ones(2))
        profiler.resume()
        np.sin(np.ones(2))

    np.cos(np.ones(2))
    events = record(tmp_path, body)
    np.cos(np.ones(2))
    assert {"exp", "sin"} <= set(operators(events))
    assert not {"log", "cos"} & set(operators(events))


def test_what_is_recorded_is_chosen(tmp_path: Path) -> None:
    @mx.jit
    def function(x: Any) -> Any:
        return np.exp(x) @ x

    x = np.ones((4, 4))
    function(x)

    def body() -> None:
        function(x)
        np.log(x).wait_to_read()

    def categories(**options: Any) -> set[str]:
        return {event["cat"].split(",")[0] for event in record(tmp_path, body, **options)}

    assert categories() == {"operator", "graph", "graph operator"}
    assert categories(profile_symbolic=True) == {"graph", "graph operator"}
    assert categories(profile_imperative=True) == {"operator"}
    assert categories(profile_api=True) == {"call"}
    assert categories(profile_memory=True) == set()
    assert categories(profile_all=True) == {"operator", "graph", "graph operator", "call", "memory"}


def test_tables_add_up_and_sort(tmp_path: Path) -> None:
    def body() -> None:
        for n in (10, 1000, 100_000):
            np.exp(np.ones(n))
        np.log(np.ones(5))

    events = record(tmp_path, body)
    durations = [event["dur"] / 1e3 for event in events if event["name"] == "exp"]
    row = json.loads(profiler.dumps(format="json"))["Time"]["operator"]["exp"]
    assert row["Count"] == len(durations) == 3
    for key, value in (("Total", sum(durations)), ("Min", min(durations)), ("Max", max(durations))):
        # The trace has microseconds with three digits.
        assert row[key] == pytest.approx(value, abs=3e-6)
    assert row["Avg"] == pytest.approx(row["Total"] / 3)
    columns = {"total": "Total", "avg": "Avg", "min": "Min", "max": "Max", "count": "Count"}
    for sort_by, key in columns.items():
        for ascending in (False, True):
            text = profiler.dumps(format="json", sort_by=sort_by, ascending=ascending)
            values = [x[key] for x in json.loads(text)["Time"]["operator"].values()]
            assert len(values) >= 2
            assert values == sorted(values, reverse=not ascending)
    table = profiler.dumps()
    assert "operator\n=====" in table
    line = next(line for line in table.splitlines() if line.startswith("exp "))
    assert line.split()[1] == "3"
    profiler.dumps(reset=True)
    assert "exp" not in profiler.dumps()


def test_statistics_can_be_switched_off(tmp_path: Path) -> None:
    events = record(tmp_path, lambda: np.exp(np.ones(2)), aggregate_stats=False)
    assert events
    assert profiler.dumps() == ""


def test_dumps_add_up_until_one_is_finished(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    profiler.set_config(filename=str(file))

    def names() -> set[str]:
        return {event["name"] for event in json.loads(file.read_text())["traceEvents"]}

    profiler.set_state("run")
    np.exp(np.ones(2))
    profiler.dump(False)
    assert mx.config.profiler is True
    assert "exp" in names()
    np.log(np.ones(2))
    profiler.dump(True)
    assert mx.config.profiler is False
    assert {"exp", "log"} <= names()
    profiler.dump()
    assert {"exp", "log"} <= names()
    profiler.set_state("run")
    np.sin(np.ones(2))
    profiler.dump()
    assert "sin" in names()
    assert not {"exp", "log"} & names()


def test_threads_have_buffers_of_their_own(tmp_path: Path) -> None:
    num_threads, num_calls = 4, 1500

    def work() -> None:
        x = np.ones(3)
        for _ in range(num_calls):
            np.exp(x)

    def body() -> None:
        threads = [threading.Thread(target=work) for _ in range(num_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    events = record(tmp_path, body)
    counts = Counter(event["tid"] for event in events if event["name"] == "exp")
    assert sorted(counts.values()) == [num_calls] * num_threads


def test_full_buffers_drop_events_of_the_trace_and_say_so(tmp_path: Path) -> None:
    x = np.ones(3)
    with mx.config(profiler_buffer_bytes=1 << 16):
        events = record(tmp_path, lambda: [np.exp(x) for _ in range(3000)])
        trace = json.loads((tmp_path / "profile.json").read_text())
    num_dropped = trace["otherData"]["dropped_events"]
    assert num_dropped > 0
    assert len(events) + num_dropped == 3000
    text = profiler.dumps(format="json")
    assert json.loads(text)["Time"]["operator"]["exp"]["Count"] == 3000
    assert json.loads(text)["Dropped"] == num_dropped
    assert f"lacks {num_dropped} events" in profiler.dumps()


def test_many_short_threads_do_not_fill_the_memory(tmp_path: Path) -> None:
    x = np.ones(3)

    def body() -> None:
        for _ in range(50):
            thread = threading.Thread(target=lambda: np.exp(x))
            thread.start()
            thread.join()

    with mx.config(profiler_buffer_bytes=10 << 16):
        events = record(tmp_path, body)
        trace = json.loads((tmp_path / "profile.json").read_text())
    assert len(events) <= 10
    assert trace["otherData"]["dropped_events"] == 50 - len(events)
    assert json.loads(profiler.dumps(format="json"))["Time"]["operator"]["exp"]["Count"] == 50


def test_a_forked_child_has_an_empty_stopped_profiler(tmp_path: Path) -> None:
    file, child_file = tmp_path / "p.json", tmp_path / "child.json"

    def body() -> None:
        np.exp(np.ones(2))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                is_stopped = mx.config.profiler is False
                is_empty = "exp" not in profiler.dumps()
                profiler.set_config(filename=child_file)
                profiler.set_state("run")
                np.log(np.ones(2))
                profiler.dump()
                code = 0 if is_stopped and is_empty else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        np.sin(np.ones(2))

    names = set(operators(record(tmp_path, body)))
    assert {"exp", "sin"} <= names
    assert "log" not in names
    trace = json.loads(child_file.read_text())["traceEvents"]
    assert "log" in {event["name"] for event in trace}
    assert "exp" not in {event["name"] for event in trace}
    assert not file.exists()


def test_files_are_written_from_time_to_time(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    profiler.set_config(filename=file, continuous_dump=True, dump_period=0.001)
    profiler.set_state("run")
    np.exp(np.ones(2))
    end = time.monotonic() + 30
    while not (file.exists() and '"exp"' in file.read_text()):
        assert time.monotonic() < end
        time.sleep(0.001)
    profiler.set_state("stop")


def test_the_environment_starts_the_profiler_and_the_end_writes_its_file(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    program = "import mxnet as mx; x = mx.np.exp(mx.np.ones(3)); assert mx.config.origin('profiler') == 'environment'"
    environment = {**os.environ, "MXNET_PROFILER": "1", "MXNET_PROFILER_FILENAME": str(file)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=120)
    names = {event["name"] for event in json.loads(file.read_text())["traceEvents"]}
    assert "exp" in names


def test_settings_are_those_of_the_configuration(tmp_path: Path) -> None:
    profiler.set_config(filename=tmp_path / "a.json", profile_memory=True, dump_period=2.5)
    assert mx.config.profiler_filename == str(tmp_path / "a.json")
    assert mx.config.profiler_memory is True
    assert mx.config.profiler_operators is False
    assert mx.config.profiler_dump_period_ms == 2500
    mx.config.save(tmp_path / "s.toml")
    profiler.set_config()
    assert mx.config.profiler_filename == "profile.json"
    mx.config.load(tmp_path / "s.toml")
    assert mx.config.profiler_filename == str(tmp_path / "a.json")
    with mx.config(profiler=True):
        assert mx.config.profiler is True
    assert mx.config.profiler is False


def test_wrong_options_are_refused_and_change_nothing() -> None:
    profiler.set_config(profile_memory=True)
    before = [(x.name, x.value) for x in mx.config.settings()]
    with pytest.raises(TypeError, match="there is no option 'profile_everything'; there are profile_all"):
        profiler.set_config(profile_everything=True)
    for options, message in [
        ({"profile_all": "yes"}, "`profile_all` must be True or False, found 'yes'"),
        ({"dump_period": "often"}, "`dump_period` must be a number of seconds"),
        ({"dump_period": 0}, "at least 0.001 seconds, found 0"),
        ({"filename": ""}, "`filename` must be the path of a file"),
        ({"profile_process": "both"}, "`profile_process` must be 'worker', found 'both'"),
    ]:
        with pytest.raises(ValueError, match=message):
            profiler.set_config(**options)
    with pytest.raises(mx.error.UnsupportedError, match="use profile_process='worker'"):
        profiler.set_config(profile_process="server")
    with pytest.raises(mx.error.UnsupportedError, match="use profile_memory=True"):
        profiler.set_config(gpu_memory_profile_filename_prefix="x")
    for call in (profiler.set_state, profiler.pause, profiler.resume, profiler.dump):
        with pytest.raises(mx.error.UnsupportedError, match="no server processes"):
            call(profile_process="server")
    assert [(x.name, x.value) for x in mx.config.settings()] == before


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`state` must be 'run' or 'stop', found 'on'"):
        profiler.set_state("on")
    with pytest.raises(ValueError, match="`format` must be"):
        profiler.dumps(format="xml")
    with pytest.raises(ValueError, match="`sort_by` must be"):
        profiler.dumps(sort_by="name")
    with pytest.raises(ValueError, match="`ascending` must be"):
        profiler.dumps(ascending="yes")  # type: ignore[arg-type]
    domain = profiler.Domain("d")
    with pytest.raises(ValueError, match="Task: `t` has not begun"):
        domain.new_task("t").stop()
    with pytest.raises(ValueError, match="`scope` must be 'global'"):
        domain.new_marker("m").mark("planet")
    profiler.set_config(filename=tmp_path / "no" / "folder" / "p.json")
    with pytest.raises(OSError, match="cannot write"):
        profiler.dump()


def test_older_names_say_what_to_use() -> None:
    for name in ("profiler_set_config", "profiler_set_state", "dump_profile"):
        with pytest.raises(
            AttributeError, match=f"`mx.profiler.{name.removeprefix('profiler_').removesuffix('_profile')}`"
        ):
            getattr(profiler, name)
    with pytest.raises(AttributeError, match="no server processes"):
        _ = profiler.set_kvstore_handle  # type: ignore[attr-defined]
