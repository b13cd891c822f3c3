//! One recurrent layer in one direction: the fused kernel and its gradient.
#![allow(unsafe_code)]

use std::sync::Arc;

use mxnet_kernels::rnn::{
    self as kernel, Cell, Cotangents, Direction, Gradients, Packed, Parameters, Rnn,
};
use mxnet_tensor::{DType, Dims, Storage, Tensor};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Args, Attrs, Param, ParamKind};
use crate::context::{CallContext, KernelContext};
use crate::error::{Error, Result};
use crate::invoke::invoke_with;
use crate::launch::elem;
use crate::linalg::flops_ns;
use crate::nn::operand::{self, Form, Staged};
use crate::nn::unrolled::{self, Steps};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe};
use crate::types::{self, Types};
use crate::workspace;

/// Names of the cells.
pub(super) const MODES: &[&str] = &["rnn_relu", "rnn_tanh", "lstm", "gru"];

/// One layer in one direction.
pub static RNN_LAYER: OpDef = OpDef {
    name: "rnn_layer",
    params: &[
        Param::array("data"),
        Param::array("wi"),
        Param::array("wh"),
        Param::array("bi"),
        Param::array("bh"),
        Param::array("h0"),
        Param::optional_array("c0"),
        Param::optional_array("lengths"),
        Param::required("mode", ParamKind::Choice(MODES)),
        Param::bool("reverse", false),
    ],
    doc: "Result, last hidden and last cell state of one recurrent layer in one direction, and what its gradient needs. Steps after the end of a \
        sequence (`lengths`) leave the states unchanged; their results are 0.",
    infer: |context| {
        let g = checked(context)?;
        let Types::Promote { accepts, lift, out } = Types::REAL_FLOAT else {
            return Err(Error::internal(context.op.name, "a type rule of another kind"));
        };
        let (_, dtype) = types::resolve(context.op.name, accepts, lift, out, &context.inputs[..7], None)?;
        let state = Dims::from_slice(&[g.batch, g.hidden]);
        let cells = if g.cell == Cell::Lstm {
            state.clone()
        } else {
            Dims::from_slice(&[0, g.hidden])
        };
        let kept = kernel::workspace_bytes(&g) / 4;
        context.many([
            (Dims::from_slice(&[g.time, g.batch, g.hidden]), dtype),
            (state, dtype),
            (cells, dtype),
            (Dims::from_slice(&[kept]), operand::compute(dtype)),
        ])
    },
    cpu: Cpu::Kernel(forward),
    is_sequential: true,
    grad: Grad::Fused(
        Keep {
            inputs: 0b1111_1111,
            outputs: 0b1001,
        },
        |g| {
            let inputs: SmallVec<[Option<&Array>; 13]> = (0..8)
                .map(|i| g.opt_input(i))
                .chain([Some(g.output(0)), Some(g.output(3)), Some(g.dy(0))])
                .chain([g.has_dy(1).then(|| g.dy(1)), g.has_dy(2).then(|| g.dy(2))])
                .collect();
            let attrs: Attrs = [g.get("mode").clone(), g.get("reverse").clone()]
                .into_iter()
                .collect();
            let found = invoke_with(&RNN_LAYER_GRADIENT, &inputs, &attrs)?;
            let mut grads: Grads = found.into_iter().map(Some).collect();
            grads.resize(g.num_inputs(), None);
            for i in 0..grads.len() {
                if !g.wants(i) {
                    grads[i] = None;
                }
            }
            Ok(grads)
        },
        |g| unrolled::gradient(g, steps(&g.args)),
    ),
    cost: Cost::Of(|context| cost_ns(context, 1)),
    probe: Probe::calls(&[
        "f((3, 2, 2)), f((8, 2)), f((8, 2)), f((8,)), f((8,)), f((2, 2)), f((2, 2)), None, 'lstm'",
        "f((3, 2, 2)), f((6, 2)), f((6, 2)), f((6,)), f((6,)), f((2, 2)), None, np.array([3, 1]), 'gru', reverse=True",
    ])
    .ulp(64),
    positions: &[7],
    ..OpDef::DEFAULT
};

/// The gradient of one layer.
pub static RNN_LAYER_GRADIENT: OpDef = OpDef {
    name: "rnn_layer_gradient",
    params: &[
        Param::array("data"),
        Param::array("wi"),
        Param::array("wh"),
        Param::array("bi"),
        Param::array("bh"),
        Param::array("h0"),
        Param::optional_array("c0"),
        Param::optional_array("lengths"),
        Param::array("y"),
        Param::array("workspace"),
        Param::array("dy"),
        Param::optional_array("dhn"),
        Param::optional_array("dcn"),
        Param::required("mode", ParamKind::Choice(MODES)),
        Param::bool("reverse", false),
    ],
    doc: "Gradients of `rnn_layer` with respect to its arrays.",
    infer: |context| {
        let g = checked(context)?;
        let (sequence, state) = ([g.time, g.batch, g.hidden], [g.batch, g.hidden]);
        for (i, expected) in [(8, &sequence[..]), (10, &sequence), (11, &state), (12, &state)] {
            context.check_shape(i, expected)?;
        }
        context.check_shape(9, &[kernel::workspace_bytes(&g) / 4])?;
        let cells = context.opt(6).map_or(Dims::from_slice(&[0, 0]), |c| Dims::from_slice(c.shape()));
        let dtype = context.dtype_of(8);
        let given = (0..6).map(|i| (Dims::from_slice(context.shape(i)), dtype));
        context.many(given.chain([(cells, dtype)]))
    },
    cpu: Cpu::Kernel(backward),
    is_sequential: true,
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    cost: Cost::Of(|context| cost_ns(context, 2)),
    probe: Probe::calls(&["f((1, 1, 1)), f((1, 1)), f((1, 1)), f((1,)), f((1,)), f((1, 1)), None, None, f((1, 1, 1)), f((1,)), f((1, 1, 1)), None, None, 'rnn_tanh'"]).ulp(64),
    positions: &[7],
    ..OpDef::DEFAULT
};

fn cost_ns(context: &CallContext, passes: usize) -> u64 {
    let steps: usize = context.shape(0)[..2].iter().product();
    passes as u64 * flops_ns(2 * steps * (context.input(1).len() + context.input(2).len()))
}

/// The cell that attribute `mode` names.
pub(super) fn cell(args: &Args) -> Cell {
    match args.str("mode") {
        "lstm" => Cell::Lstm,
        "gru" => Cell::Gru,
        "rnn_tanh" => Cell::Tanh,
        _ => Cell::Relu,
    }
}

fn steps(args: &Args) -> Steps {
    Steps {
        cell: cell(args),
        direction: direction(args),
        clip: None,
    }
}

fn direction(args: &Args) -> Direction {
    if args.bool("reverse") {
        Direction::Reverse
    } else {
        Direction::Forward
    }
}

fn geometry(args: &Args, data: &[usize], wh: &[usize], dtype: DType) -> Rnn {
    Rnn {
        elem: elem(operand::compute(dtype)),
        cell: cell(args),
        direction: direction(args),
        time: data[0],
        batch: data[1],
        input: data[2],
        hidden: wh[1],
    }
}

/// The geometry of a call whose operands have the shapes that the kernels rely on.
fn checked(context: &CallContext) -> Result<Rnn> {
    let (&[time, batch, input], &[rows, hidden]) = (context.shape(0), context.shape(2)) else {
        return Err(context.shape_error("`data` must have 3 axes and `wh` 2"));
    };
    let g = geometry(
        &context.args,
        &[time, batch, input],
        &[rows, hidden],
        DType::F32,
    );
    let rows = g.cell.gates() * hidden;
    let expected: [&[usize]; 7] = [
        &[rows, input],
        &[rows, hidden],
        &[rows],
        &[rows],
        &[batch, hidden],
        &[batch, hidden],
        &[batch],
    ];
    for (i, shape) in expected.into_iter().enumerate() {
        context.check_shape(i + 1, shape)?;
    }
    match g.cell == Cell::Lstm && context.opt(6).is_none() {
        true => Err(context.value_error("an LSTM needs `c0`")),
        false => Ok(g),
    }
}

/// The lengths of the sequences; an error if one is out of range.
fn lengths(context: &KernelContext, g: &Rnn) -> Result<Option<Vec<usize>>> {
    let Some(x) = context.opt(7) else {
        return Ok(None);
    };
    let dense = operand::dense(x, DType::I64, context.threads)?;
    // SAFETY: dense, and of this dtype.
    let found = unsafe { std::slice::from_raw_parts(dense.data_ptr().cast::<i64>(), dense.len()) };
    let checked = found.iter().enumerate().map(|(i, &length)| {
        let fits = usize::try_from(length).ok().filter(|&n| n <= g.time);
        let problem = || {
            format!(
                "`sequence_length` {i} is {length}, must be in 0..={}",
                g.time
            )
        };
        fits.ok_or_else(|| Error::value("rnn", problem()))
    });
    Ok(Some(checked.collect::<Result<_>>()?))
}

fn forward(context: &KernelContext) -> Result<()> {
    let [y, hn, cn, workspace] = [0, 1, 2, 3].map(|i| context.output(i));
    let dtype = operand::compute(y.dtype());
    let g = geometry(
        &context.args,
        context.input(0).shape(),
        context.input(2).shape(),
        dtype,
    );
    let dense: SmallVec<[Option<Tensor>; 7]> = (0..7)
        .map(|i| operand::dense_or_none(context.opt(i), dtype, context.threads))
        .collect::<Result<_>>()?;
    let at = |i: usize| operand::pointer(dense[i].as_ref()).cast_const();
    let outs = [
        Staged::new(y, dtype)?,
        Staged::new(hn, dtype)?,
        Staged::new(cn, dtype)?,
    ];
    let lengths = lengths(context, &g)?;
    let scratch = workspace::take(kernel::scratch_bytes(&g))?;
    if workspace.len() * dtype.size() < kernel::workspace_bytes(&g) {
        let problem = format!(
            "a workspace of {} elements for {} bytes",
            workspace.len(),
            kernel::workspace_bytes(&g)
        );
        return Err(Error::internal(context.op.name, problem));
    }
    let parameters = Parameters {
        wi: at(1),
        wh: at(2),
        bi: at(3),
        bh: at(4),
    };
    let wi = match kernel::packed_input_bytes(&g) {
        None => None,
        Some(len) => {
            let pack = |to: *mut u8| {
                // SAFETY: the weights are dense and of the geometry's sizes; `to` has the size of the form.
                unsafe { kernel::pack_input(context.threads, &g, at(1), to) };
                Ok(())
            };
            operand::packed(
                context,
                context.input(1),
                Form::Linear,
                dtype,
                &[g.lanes()],
                len,
                pack,
            )?
        }
    };
    let pack = |to: *mut u8| {
        // SAFETY: as above.
        unsafe { kernel::pack_state(context.threads, &g, at(2), to) };
        Ok(())
    };
    let (key, len) = ([g.lanes(), g.cell.gates()], kernel::packed_state_bytes(&g));
    let wh = operand::packed(
        context,
        context.input(2),
        Form::RecurrentState,
        dtype,
        &key,
        len,
        pack,
    )?;
    let pointer = |form: &Option<Arc<Storage>>| {
        form.as_ref()
            .map_or(std::ptr::null(), |form| form.ptr().cast_const())
    };
    let packed = Packed {
        wi: pointer(&wi),
        wh: pointer(&wh),
    };
    let cells = if g.cell == Cell::Lstm {
        outs[2].ptr()
    } else {
        std::ptr::null_mut()
    };
    // SAFETY: 1. operands are dense, of `dtype` and of the geometry's sizes (the calling composite ensures this). 2. results, workspace and scratch
    // were allocated for this call, with the sizes that the kernel asks for.
    unsafe {
        kernel::forward(
            context.threads,
            &g,
            &parameters,
            packed,
            at(0),
            at(5),
            at(6),
            lengths.as_deref(),
            outs[0].ptr(),
            outs[1].ptr(),
            cells,
            workspace.data_ptr(),
            scratch.data_ptr(),
        );
    }
    for out in outs {
        out.finish(context.threads)?;
    }
    Ok(())
}

fn backward(context: &KernelContext) -> Result<()> {
    let dtype = operand::compute(context.output(0).dtype());
    let g = geometry(
        &context.args,
        context.input(0).shape(),
        context.input(2).shape(),
        dtype,
    );
    let dense: SmallVec<[Option<Tensor>; 13]> = (0..13)
        .map(|i| operand::dense_or_none(context.opt(i).filter(|_| i != 7), dtype, context.threads))
        .collect::<Result<_>>()?;
    let lengths = lengths(context, &g)?;
    let at = |i: usize| operand::pointer(dense[i].as_ref()).cast_const();
    let outs: SmallVec<[Staged; 7]> = (0..7)
        .map(|i| Staged::new(context.output(i), dtype))
        .collect::<Result<_>>()?;
    // The kernel overwrites the workspace. If the graph may be walked again, it gets a copy.
    let copy_of = |kept: &Tensor| -> Result<Tensor> {
        let copy = Tensor::empty(kept.shape(), dtype, kept.device())?;
        crate::cpu::copy(kept, &copy, context.threads)?;
        Ok(copy)
    };
    let space = match &dense[9] {
        Some(dense) if context.may_overwrite(9) => dense.clone(),
        _ => copy_of(context.input(9))?,
    };
    let own = lengths
        .as_ref()
        .map(|_| copy_of(context.input(8)))
        .transpose()?;
    let y = own.as_ref().map_or(at(8).cast_mut(), Tensor::data_ptr);
    if space.len() * dtype.size() < kernel::workspace_bytes(&g) {
        let problem = format!(
            "a workspace of {} bytes, needs {}",
            space.len() * dtype.size(),
            kernel::workspace_bytes(&g)
        );
        return Err(Error::value(context.op.name, problem));
    }
    let scratch = workspace::take(kernel::scratch_bytes(&g))?;
    let parameters = Parameters {
        wi: at(1),
        wh: at(2),
        bi: at(3),
        bh: at(4),
    };
    let cotangents = Cotangents {
        dy: at(10),
        dhn: at(11),
        dcn: if g.cell == Cell::Lstm {
            at(12)
        } else {
            std::ptr::null()
        },
    };
    let lstm = g.cell == Cell::Lstm && context.opt(6).is_some();
    let gradients = Gradients {
        dx: outs[0].ptr(),
        dwi: outs[1].ptr(),
        dwh: outs[2].ptr(),
        dbi: outs[3].ptr(),
        dbh: outs[4].ptr(),
        dh0: outs[5].ptr(),
        dc0: if lstm {
            outs[6].ptr()
        } else {
            std::ptr::null_mut()
        },
    };
    // SAFETY: 1. operands are dense, of `dtype` and of the geometry's sizes: those of the forward call. 2. results, workspace (checked above) and
    // scratch were allocated for this call, with the sizes that the kernel asks for.
    unsafe {
        kernel::backward(
            context.threads,
            &g,
            &parameters,
            at(0),
            at(5),
            at(6),
            lengths.as_deref(),
            y,
            &cotangents,
            &gradients,
            space.data_ptr(),
            scratch.data_ptr(),
        );
    }
    for out in outs {
        out.finish(context.threads)?;
    }
    Ok(())
}
