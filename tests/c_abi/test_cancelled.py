"""Threads that are cancelled while they call the C library."""

from pathlib import Path

from c_library import HEADER, ROOT, library, run, tool


def test_cancelled_threads_end_after_their_call_and_leave_nothing(tmp_path: Path) -> None:
    program, place = str(tmp_path / "cancelled"), library().parent
    source = str(ROOT / "tests" / "support" / "cancelled.c")
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread", f"-I{HEADER}"]
    run([tool("gcc"), *options, source, f"-L{place}", "-lmxnet", f"-Wl,-rpath,{place}", "-o", program])
    assert run([program, str(tmp_path / "product.safetensors")]) == "handles: 1\n"
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ""] == ["product.safetensors"]
