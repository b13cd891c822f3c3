"""Row-sparse gradients: rows of few, their sums, and the optimizers that change these rows only."""

import numpy
import pytest

import mxnet as mx
from mxnet import _core, autograd, gluon, np, npx, optimizer, sparse
from mxnet.error import AutogradError, ShapeError, UnsupportedError

ROWS, WIDTH = 50, 3


def table(req: str = "write", stype: str = "row_sparse", dtype: str = "float64"):
    rng = numpy.random.default_rng(0)
    weight = np.array(rng.normal(size=(ROWS, WIDTH)), dtype=dtype)
    weight.attach_grad(req, stype)
    return weight


def embedded(weight, at, scale, sparse_grad: bool = True):
    """A pass through an embedding of rows `at`, weighted by `scale` of shape (len(at), WIDTH)."""
    with autograd.record():
        loss = (npx.embedding(np.array(at), weight, sparse_grad=sparse_grad) * np.array(scale)).sum()
    loss.backward()


def expected(*passes) -> numpy.ndarray:
    """The dense gradient, in a loop over rows."""
    found = numpy.zeros((ROWS, WIDTH))
    for at, scale in passes:
        for j, row in zip(at, scale, strict=True):
            found[j] += row
    return found


AT, SCALE = [7, 3, 7, 49], numpy.random.default_rng(1).normal(size=(4, WIDTH))
AT2, SCALE2 = [0, 3], numpy.random.default_rng(2).normal(size=(2, WIDTH))


def test_embedding_gives_the_rows_it_read_in_order():
    weight = table()
    embedded(weight, AT, SCALE)
    assert isinstance(weight.grad, sparse.row_sparse_array)
    assert weight.grad.shape == weight.shape
    assert weight.grad.indices.asnumpy().tolist() == [3, 7, 49]
    numpy.testing.assert_allclose(weight.grad.todense().asnumpy(), expected((AT, SCALE)), rtol=1e-15)


def test_indices_of_several_axes_and_out_of_bounds_count_as_in_the_dense_gradient():
    at = numpy.array([[1, -4], [99, 1]])
    found = []
    for stype in ("row_sparse", "default"):
        weight = table(stype=stype)
        with autograd.record():
            loss = np.square(npx.embedding(np.array(at), weight, sparse_grad=stype == "row_sparse")).sum()
        loss.backward()
        found.append(weight.grad.asnumpy())
    numpy.testing.assert_allclose(*found, rtol=1e-15)


def test_write_replaces_and_add_accumulates_rows():
    for req, passes in (("write", [(AT2, SCALE2)]), ("add", [(AT, SCALE), (AT2, SCALE2)])):
        weight = table(req)
        embedded(weight, AT, SCALE)
        embedded(weight, AT2, SCALE2)
        touched = sorted({j for at, _ in passes for j in at})
        assert weight.grad.indices.asnumpy().tolist() == touched
        numpy.testing.assert_allclose(weight.grad.todense().asnumpy(), expected(*passes), rtol=1e-14)


def test_gradients_held_by_the_user_stay_as_they_are():
    weight = table()
    embedded(weight, AT, SCALE)
    held = weight.grad
    embedded(weight, AT2, SCALE2)
    numpy.testing.assert_allclose(held.todense().asnumpy(), expected((AT, SCALE)), rtol=1e-15)


def test_cotangents_of_several_uses_stay_rows():
    weight = table()
    with autograd.record():
        y = (npx.embedding(np.array(AT), weight, sparse_grad=True) * np.array(SCALE)).sum()
        z = (npx.embedding(np.array(AT2), weight, sparse_grad=True) * np.array(SCALE2)).sum()
        loss = y + z
    loss.backward()
    assert weight.grad.indices.asnumpy().tolist() == [0, 3, 7, 49]
    numpy.testing.assert_allclose(weight.grad.todense().asnumpy(), expected((AT, SCALE), (AT2, SCALE2)), rtol=1e-14)


def test_a_dense_cotangent_among_them_gives_all_rows():
    weight = table()
    with autograd.record():
        loss = (npx.embedding(np.array(AT), weight, sparse_grad=True) * np.array(SCALE)).sum() + (weight * 2).sum()
    loss.backward()
    assert weight.grad.indices.size == ROWS
    numpy.testing.assert_allclose(weight.grad.todense().asnumpy(), expected((AT, SCALE)) + 2, rtol=1e-14)


def test_a_dense_buffer_gets_the_sum_of_rows():
    weight = table("add", "default")
    embedded(weight, AT, SCALE)
    embedded(weight, AT2, SCALE2)
    assert isinstance(weight.grad, np.ndarray)
    numpy.testing.assert_allclose(weight.grad.asnumpy(), expected((AT, SCALE), (AT2, SCALE2)), rtol=1e-14)


def test_rows_flow_on_through_computed_tables_and_autograd_grad():
    base = table(stype="default")
    with autograd.record():
        weight = base * 3
        loss = (npx.embedding(np.array(AT), weight, sparse_grad=True) * np.array(SCALE)).sum()
        of_table = autograd.grad(loss, [weight], retain_graph=True)[0]
    loss.backward()
    numpy.testing.assert_allclose(of_table.asnumpy(), expected((AT, SCALE)), rtol=1e-15)
    numpy.testing.assert_allclose(base.grad.asnumpy(), 3 * expected((AT, SCALE)), rtol=1e-14)


def test_second_gradients_flow_through_rows():
    weight = table()
    with autograd.record():
        loss = (npx.embedding(np.array(AT), weight, sparse_grad=True) ** 3).sum()
        first = autograd.grad(loss, [weight], create_graph=True)[0]
        total = (first * first).sum()
    total.backward()
    # loss = sum over reads of w^3: with n reads of a row first = 3 n w^2, and the gradient of its square 36 n^2 w^3.
    n = numpy.bincount(AT, minlength=ROWS)[:, None]
    numpy.testing.assert_allclose(weight.grad.todense().asnumpy(), 36 * n**2 * weight.asnumpy() ** 3, rtol=1e-13)


@pytest.mark.parametrize("shape", [(ROWS, WIDTH), (ROWS,)])
def test_dot_of_a_sparse_matrix_gives_the_rows_of_its_columns(shape):
    rng = numpy.random.default_rng(3)
    dense = rng.normal(size=(6, ROWS)) * (rng.uniform(size=(6, ROWS)) < 0.05)
    x = sparse.csr_array(dense)
    weight = np.array(rng.normal(size=shape))
    weight.attach_grad(stype="row_sparse")
    dy = rng.normal(size=(6, *shape[1:]))
    with autograd.record():
        y = np.dot(x, weight)
    y.backward(np.array(dy))
    assert weight.grad.indices.asnumpy().tolist() == sorted(set(dense.nonzero()[1].tolist()))
    numpy.testing.assert_allclose(weight.grad.todense().asnumpy(), dense.T @ dy, rtol=1e-13, atol=1e-15)


def test_gradient_memory_is_that_of_the_rows():
    weight = np.zeros((800_000, 32))  # whole blocks of 1 MiB are counted
    weight.attach_grad(stype="row_sparse")
    mx.waitall()
    _core.reset_memory_peak()
    before = _core.memory_stats()["in_use_bytes"]
    with mx.engine.mode("sync"), autograd.record():
        loss = npx.embedding(np.arange(16), weight, sparse_grad=True).sum()
    loss.backward()
    mx.waitall()
    assert weight.grad.indices.size == 16
    assert _core.memory_stats()["peak_bytes"] - before < weight.nbytes / 10


def test_what_is_not_possible_is_refused():
    with pytest.raises(ShapeError, match="a 0-d array has no rows"):
        np.array(1.0).attach_grad(stype="row_sparse")
    with pytest.raises(UnsupportedError, match="'csr'"):
        np.zeros(3).attach_grad(stype="csr")
    with pytest.raises(ValueError, match="`grad_stype` must be one of"):
        gluon.Parameter("weight", shape=(2,), grad_stype="csr")
    x = np.zeros((3, 2))
    x.attach_grad()
    with pytest.raises(AutogradError, match="dense"):
        _core.set_row_gradient(x, np.array([0]), np.zeros((1, 2)))


def test_a_trace_refuses_rows_and_names_the_alternative():
    weight = table()

    @mx.jit
    def step(at):
        with autograd.record():
            loss = npx.embedding(at, weight, sparse_grad=True).sum()
        loss.backward()
        return loss

    with pytest.raises(UnsupportedError, match="leave `sparse_grad` out"):
        step(np.array(AT))
    net = gluon.nn.Embedding(ROWS, WIDTH, sparse_grad=True)
    net.initialize()
    eager = net(np.array(AT)).asnumpy()
    net.hybridize()
    numpy.testing.assert_array_equal(net(np.array(AT)).asnumpy(), eager)
    with pytest.raises(UnsupportedError, match="leave `sparse_grad` out"), autograd.record():
        net(np.array(AT)).sum().backward()


def net_and_copy(sparse_grad: bool):
    net = gluon.nn.Embedding(ROWS, WIDTH, sparse_grad=sparse_grad)
    net.initialize()
    net.weight.set_data(np.array(numpy.random.default_rng(4).normal(size=(ROWS, WIDTH)), dtype="float32"))
    return net


OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "lazy_update": True},
    "adam": {"learning_rate": 0.1, "lazy_update": True},
    "adagrad": {"learning_rate": 0.1},
    "ftrl": {"learning_rate": 0.1},
}


def leaves(state):
    return [x for part in state for x in leaves(part)] if isinstance(state, tuple) else [] if state is None else [state]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_lazy_updates_touch_the_rows_of_the_gradient_only(name):
    batches = [[1, 4, 4], [2], [4, 30, 1]]
    net, dense = net_and_copy(True), net_and_copy(False)
    trainers = [gluon.Trainer(n.collect_params(), name, dict(OPTIMIZERS[name], wd=0.01)) for n in (net, dense)]
    first = net.weight.data().asnumpy()
    for at in batches:
        before = net.weight.data().asnumpy()
        states = trainers[0]._updaters[0].states
        kept = [x.asnumpy() for x in leaves(states.get(0))]
        with autograd.record():
            loss = np.square(net(np.array(at))).sum()
        loss.backward()
        trainers[0].step(1)
        others = numpy.setdiff1d(numpy.arange(ROWS), at)
        assert net.weight.data().asnumpy()[others].tobytes() == before[others].tobytes()
        for now, then in zip(leaves(states[0]), kept, strict=False):
            assert now.asnumpy()[others].tobytes() == then[others].tobytes()
        assert (net.weight.data().asnumpy()[at] != before[at]).any(axis=1).all()
    never = numpy.setdiff1d(numpy.arange(ROWS), numpy.concatenate(batches))
    assert net.weight.data().asnumpy()[never].tobytes() == first[never].tobytes()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_row_that_has_a_gradient_in_each_step_is_updated_as_in_a_dense_step(name):
    nets = [net_and_copy(True), net_and_copy(False)]
    for net in nets:
        trainer = gluon.Trainer(net.collect_params(), name, dict(OPTIMIZERS[name], wd=0.01))
        for _ in range(3):
            with autograd.record():
                loss = np.square(net(np.array([5, 9]))).sum()
            loss.backward()
            trainer.step(2)
    ours, theirs = (net.weight.data().asnumpy()[[5, 9]] for net in nets)
    numpy.testing.assert_array_equal(ours, theirs)


def test_without_lazy_update_rows_without_gradient_decay():
    nets = [net_and_copy(True), net_and_copy(False)]
    for net in nets:
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "wd": 0.5, "momentum": 0.9})
        for at in ([1, 2], [2, 7]):
            with autograd.record():
                loss = np.square(net(np.array(at))).sum()
            loss.backward()
            trainer.step(1)
    numpy.testing.assert_array_equal(*(net.weight.data().asnumpy() for net in nets))


def test_optimizers_that_need_all_rows_refuse_lazy_updates():
    lars = optimizer.create("lars", lazy_update=True)
    weight = np.zeros((4, 2))
    grad = sparse.row_sparse_array(([[1.0, 2.0]], [1]), shape=(4, 2))
    with pytest.raises(UnsupportedError, match="LARS"):
        lars.update([0], [weight], [grad], [lars.create_state(0, weight)])


def test_half_precision_weights_have_their_float32_copies_updated_by_rows():
    weight = np.ones((6, 2), dtype="float16")
    sgd = optimizer.create("sgd", learning_rate=0.5, momentum=0.9, lazy_update=True, multi_precision=True)
    updater = optimizer.get_updater(sgd)
    grad = sparse.row_sparse_array((np.array([[1.0, 2.0]], dtype="float16"), [4]), shape=(6, 2))
    updater([0], [grad], [weight])
    want = numpy.ones((6, 2))
    want[4] -= [0.5, 1.0]
    numpy.testing.assert_array_equal(weight.asnumpy(), want)
    numpy.testing.assert_array_equal(updater.states[0][0].asnumpy(), want)


def test_clip_global_norm_scales_the_rows():
    weight = table()
    embedded(weight, [2, 4], [[3.0, 0, 0], [0, 4.0, 0]])
    other = np.array([12.0])
    assert gluon.utils.clip_global_norm([weight.grad, other], 6.5) == pytest.approx(13.0, rel=1e-12)
    # A norm of 13 is halved, but for the term 1e-8 that keeps a norm of zero from dividing.
    numpy.testing.assert_allclose(weight.grad.data.asnumpy(), [[1.5, 0, 0], [0, 2, 0]], rtol=1e-8)


def test_parameters_give_rows_and_clear_them():
    weight = gluon.Parameter("weight", shape=(ROWS, WIDTH), grad_stype="row_sparse", grad_req="add")
    weight.initialize(init="ones")
    assert weight.grad_stype == "row_sparse"
    assert weight.grad().indices.size == 0
    with autograd.record():
        loss = npx.embedding(np.array(AT), weight.data(), sparse_grad=True).sum()
    loss.backward()
    assert weight.list_grad()[0].indices.asnumpy().tolist() == [3, 7, 49]
    weight.zero_grad()
    assert weight.grad().indices.size == 0
    assert weight.grad().shape == (ROWS, WIDTH)
    rows = weight.row_sparse_data(np.array([9, 1, 9]))
    assert rows.indices.asnumpy().tolist() == [1, 9]
    numpy.testing.assert_array_equal(rows.data.asnumpy(), numpy.ones((2, WIDTH)))
    assert [r.indices.asnumpy().tolist() for r in weight.list_row_sparse_data(np.array([3]))] == [[3]]
    with pytest.raises(IndexError, match="row 50 is out of bounds"):
        weight.row_sparse_data(np.array([50]))


def test_copies_on_two_devices_sum_their_rows():
    devices = [mx.cpu(0), mx.cpu(1)]
    net = gluon.nn.Embedding(ROWS, WIDTH, sparse_grad=True)
    net.initialize(device=devices)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "lazy_update": True})
    first = net.weight.data(devices[0]).asnumpy()
    for device, at in zip(devices, ([1, 2], [2, 8]), strict=True):
        with autograd.record():
            loss = net(np.array(at, device=device)).sum()
        loss.backward()
    trainer.step(1)
    want = first.copy()
    for j, count in ((1, 1), (2, 2), (8, 1)):
        want[j] -= count
    for device in devices:
        numpy.testing.assert_array_equal(net.weight.data(device).asnumpy(), want)
