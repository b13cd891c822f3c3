"""The package imported again in one process, in a subinterpreter, and interrupted."""

import pytest

from processes import run


@pytest.mark.parametrize("taken", ["mxnet._core", "mxnet"])
def test_a_second_import_has_the_types_of_the_first(taken):
    run(
        """
        x = np.ones(3)
        first = np.ndarray
        for _ in range(3):
            for name in list(sys.modules):
                if name == sys.argv[1] or name.startswith(sys.argv[1] + "."):
                    del sys.modules[name]
            import mxnet
            from mxnet import np as again
            y = again.ones(3) + 1
            assert type(y) is first
            assert (x + y).tolist() == (y + x).tolist() == [3, 3, 3]
            assert (x < y).tolist() == [True] * 3
            assert float(x[0]) == 1 and x[0] + 1 == 2
            try:
                x + again.ones(2)
            except mxnet.error.ShapeError:
                pass
            assert again.random.default_rng(3).normal() == np.random.default_rng(3).normal()
            assert again.add.reduce(y).item() == 6
            net = mxnet.gluon.nn.Dense(2, in_units=3)
            net.initialize()
            expected = net(y.reshape(1, 3))
            net.hybridize()
            assert (net(y.reshape(1, 3)) == expected).all()
            assert mxnet.jit(lambda a: a * 2 + x)(y).tolist() == [5, 5, 5]
            name = f"products {time.time_ns()}"
            mxnet.graph.register_partitioner(name, lambda node: node.op == "exp", lambda part: lambda a: again.exp(a))
            block = mxnet.gluon.nn.HybridLambda(lambda a: again.exp(a) + 1)
            block.optimize_for(x, backend=name)
            assert (block(x) == again.exp(x) + 1).all()
        """,
        taken,
    )


def test_a_fixture_that_restores_the_modules():
    run(
        """
        from unittest import mock
        with mock.patch.dict(sys.modules):
            from mxnet import np
            x, y = np.ones(3), np.arange(3)
        from mxnet import np
        assert (x + y + np.ones(3)).tolist() == [2, 3, 4]
        """,
        prelude="import numpy, sys",
    )


def test_a_subinterpreter_is_refused_with_a_sentence():
    done = run(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        kinds = [[], ["legacy"]] if sys.version_info >= (3, 13) else [[]]
        lines = ["try:", " import mxnet._core", "except ImportError as error:", " print(error, flush=True)"]
        for kind in kinds:
            made = interpreters.create(*kind)
            interpreters.run_string(made, "\\n".join(lines))
            interpreters.destroy(made)
        print(len(kinds))
        import mxnet
        assert mxnet.np.ones(3).sum() == 3
        """,
        prelude="import sys",
    )
    *refusals, count = done.stdout.splitlines()
    # From Python 3.12 on it refuses by itself where an interpreter has a lock of its own.
    sentences = ("cannot be imported in a subinterpreter", "does not support loading in subinterpreters")
    assert len(refusals) == int(count)
    assert all(any(sentence in refusal for sentence in sentences) for refusal in refusals)


def test_ctrl_c_while_ml_dtypes_is_imported_comes_out():
    run(
        """
        import importlib.abc, signal, sys

        class Finder(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name == "ml_dtypes":
                    sys.meta_path.remove(self)
                    signal.raise_signal(signal.SIGINT)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.meta_path.insert(0, Finder())
        try:
            from mxnet import np
        except KeyboardInterrupt:
            pass
        else:
            raise SystemExit("nothing came out")
        from mxnet import np
        assert (np.ones(3, dtype="bfloat16") + 1).tolist() == [2, 2, 2]
        """,
        prelude="",
    )
