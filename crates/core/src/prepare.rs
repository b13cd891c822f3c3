//! Plans of calls, made by the rules of their operators: dtypes, layouts, kernels, numbers that a dtype cannot hold.

use std::sync::Arc;

use mxnet_kernels::map::InnerLoops;
use mxnet_tensor::{
    DType, Device, DeviceKind, Dims, Layout, Scalar, backend_of, broadcast_shapes, checked_len,
};
use smallvec::SmallVec;

use crate::context::KernelContext;
use crate::eager::run;
use crate::error::{Error, Result};
use crate::invoke::Call;
use crate::launch::{Kernel, caught, cost_ns};
use crate::opdef::{Cpu, Inferred, OnOverflow, OpDef};
use crate::out_arrays::{check_out, into_outs};
use crate::plan::{Launch, OutputPlan, Plan};
use crate::types::{self, Types};
use crate::{Array, Outputs, cpu, creation, device_kernels, memory_order};

/// Prepares the plan of a call by the operator's rules, which read no values and allocate nothing. To run the plan, allocate its outputs
/// ([`plan::OutputPlan::allocate`]) and launch its kernel ([`launch`]).
///
/// # Errors
/// Errors of the rules; [`Error::Device`] if the device has no kernel of the operator; [`Error::Internal`] for views and composites, which have no
/// plan.
pub fn prepare(call: &Call) -> Result<Plan> {
    let device = call.device()?;
    // Creation on another device, and copies to it, need a kernel of that device.
    let working = match device.kind() {
        DeviceKind::Cpu => device_asked_for(call).unwrap_or(device),
        _ => device,
    };
    if working.kind() != DeviceKind::Cpu {
        // A backend registers its kernels when its devices are first looked up.
        backend_of(working)?;
    }
    if let Cpu::AnyDevice(kernel) = call.op.cpu {
        return inferred(call, kernel, device, working);
    }
    let on_device = match working.kind() {
        DeviceKind::Cpu => device_kernels::find(call.op, DeviceKind::Cpu),
        kind => Some(
            device_kernels::find(call.op, kind).ok_or_else(|| missing_kernel(call.op, working))?,
        ),
    };
    match call.op.cpu {
        Cpu::Map(rows) => elementwise(call, rows, on_device, device),
        Cpu::Kernel(kernel) => inferred(call, on_device.unwrap_or(kernel), device, working),
        Cpu::AnyDevice(_) | Cpu::View(_) | Cpu::Eager(..) | Cpu::Composite(_) => Err(
            Error::internal(call.op.name, "only operators with kernels have plans"),
        ),
    }
}

/// The device that the attribute `device` of a call names, if the operator has one.
fn device_asked_for(call: &Call) -> Option<Device> {
    let has_one = call.op.params.iter().any(|p| p.name == "device");
    has_one.then(|| call.context().device("device")).flatten()
}

#[cold]
pub(crate) fn missing_kernel(op: &OpDef, device: Device) -> Error {
    Error::device(op.name, format!("no kernel for {device}"))
        .with_hint("copy the arrays with `.to_device(mx.cpu())`")
}

/// Plans an elementwise operator: the outputs have the shape that all operands broadcast to.
fn elementwise(
    call: &Call,
    rows: &'static InnerLoops,
    on_device: Option<fn(&KernelContext) -> Result<()>>,
    device: Device,
) -> Result<Plan> {
    if let Some(body) = call.op.expands.and_then(|expands| expands(call)) {
        return Ok(Plan::Expand(body));
    }
    let (compute, returned) = types::resolve_call(call)?;
    if rounds_numbers(call, compute) {
        return Ok(Plan::Expand(with_rounded_numbers));
    }
    let shapes: SmallVec<[&[usize]; 4]> = call.inputs.iter().flatten().map(|x| x.shape()).collect();
    let mut shape = broadcast_shapes(&shapes)?;
    // `out` may have more axes than the operands, and longer ones.
    if let Some(out) = call.outs.iter().flatten().next()
        && out.shape() != shape.as_slice()
        && broadcast_shapes(&[&shape, out.shape()]).is_ok_and(|both| both.as_slice() == out.shape())
    {
        shape = Dims::from_slice(out.shape());
    }
    let num_outs = rows.outs as usize;
    for (i, out) in call.outs.iter().enumerate().take(num_outs) {
        if let Some(out) = out {
            check_out(call, i, out, &shape, returned)
                .map_err(|error| overflow_error(call, compute).unwrap_or(error))?;
        }
    }
    let layout = layout_like(call, &shape)?;
    let given = |i: usize| call.outs.get(i).copied().flatten();
    let form = |i: usize| match given(i) {
        Some(out) => (out.layout(), out.dtype(), out.tensor().data_ptr()),
        // Addresses matter only for given outputs, which may overlap operands.
        None => (&layout, returned, std::ptr::null_mut()),
    };
    let outs: SmallVec<[_; 2]> = (0..num_outs).map(form).collect();
    let kernel = match on_device {
        Some(kernel) => Kernel::Fn(kernel, Some(compute)),
        None => {
            let compute = cpu::row_elem(rows, compute);
            let operands = call.inputs.iter().flatten().map(|x| x.tensor());
            Kernel::Map {
                loops: Arc::new(cpu::loops(rows, compute, &shape, &outs, operands)?),
                compute,
                params: call.attrs.values().iter().map(cpu::row_param).collect(),
            }
        }
    };
    let bytes_written = outs
        .iter()
        .map(|(layout, dtype, _)| layout.len() * dtype.size());
    let cost_ns = cost_ns(&call.context(), bytes_written.sum());
    let output = || OutputPlan {
        layout: layout.clone(),
        dtype: returned,
    };
    Ok(Plan::Launch(Launch {
        kernel,
        outputs: (0..num_outs).map(|_| output()).collect(),
        device,
        runs_on: device,
        cost_ns,
        numbers: numbers(call, compute),
    }))
}

/// Positions of the Python numbers among the operands of an elementwise operator, and the dtypes that must hold them.
fn numbers(call: &Call, compute: DType) -> SmallVec<[(usize, DType); 2]> {
    // A condition is compared with 0 only, so any number is allowed.
    let num_conditions = usize::from(matches!(call.op.types, Types::Choose));
    let is_count = |i| i == 1 && matches!(call.op.types, Types::Counted { .. });
    let inputs = call.inputs.iter().enumerate().skip(num_conditions);
    inputs
        .filter(|(_, x)| x.is_some_and(Array::is_weak))
        .map(|(i, _)| (i, if is_count(i) { DType::I32 } else { compute }))
        .collect()
}

/// The error for a Python integer that its dtype cannot hold, if any. It is reported before errors about `out`.
#[cold]
fn overflow_error(call: &Call, compute: DType) -> Option<Error> {
    numbers(call, compute).into_iter().find_map(|(i, dtype)| {
        let value = call.inputs[i].and_then(Array::number)?;
        let has_answer = value.fits(dtype) || on_overflow(call, compute).is_some();
        (!has_answer).then(|| types::out_of_bounds(call.op.name, value, dtype))
    })
}

/// How the operator handles a Python integer that its dtype cannot hold; `None` if that is an error.
fn on_overflow(call: &Call, compute: DType) -> Option<OnOverflow> {
    call.op
        .on_overflow
        .and_then(|on_overflow| on_overflow(call, compute))
}

/// Handles a Python integer that its dtype cannot hold: comparisons and logic have a result, for other operators it is an error.
#[cold]
pub(crate) fn handle_overflow(call: &Call, value: Scalar, dtype: DType) -> Result<Outputs> {
    let (compute, _) = types::resolve_call(call)?;
    match on_overflow(call, compute) {
        Some(OnOverflow::Constant(answer)) => {
            let shapes: SmallVec<[&[usize]; 4]> =
                call.inputs.iter().flatten().map(|x| x.shape()).collect();
            let (shape, value) = (broadcast_shapes(&shapes)?, Scalar::Bool(answer));
            let result = creation::full(&shape, value, DType::Bool, call.device()?)?;
            into_outs(call, SmallVec::from_buf([result]))
        }
        Some(OnOverflow::True) => {
            let truth = Array::weak_scalar(Scalar::Bool(true))?;
            let inputs: SmallVec<[Option<&Array>; 2]> = call
                .inputs
                .iter()
                .map(|x| x.map(|x| if x.is_weak() { &truth } else { x }))
                .collect();
            run(&Call {
                inputs: &inputs,
                ..*call
            })
        }
        None => Err(types::out_of_bounds(call.op.name, value, dtype)),
    }
}

/// The layout of an output of `shape`: its axes have the memory order of the inputs' axes (whatever the signs of their strides) if these agree,
/// otherwise C order.
fn layout_like(call: &Call, shape: &Dims) -> Result<Layout> {
    checked_len(shape)?;
    let mut full = call
        .inputs
        .iter()
        .flatten()
        .filter(|x| x.shape() == shape.as_slice());
    if let Some(first) = full.next() {
        let dense = memory_order::dense_like(first.layout());
        if let Some(layout) = dense.filter(|_| !first.layout().is_contiguous())
            && full.all(|x| x.layout().strides() == first.layout().strides())
        {
            return Ok(layout);
        }
    }
    let inputs = call.inputs.iter().flatten();
    let inputs = inputs.filter(|x| x.ndim() > 0 && !x.is_weak());
    if inputs.clone().any(|x| !x.layout().is_contiguous()) {
        // Axes with stride 0 (broadcast) do not affect the order.
        let layouts = inputs.map(|x| x.layout().broadcast_to(shape));
        let layouts: SmallVec<[Layout; 3]> = layouts.collect::<Result<_, _>>()?;
        let layouts: SmallVec<[&Layout; 3]> = layouts.iter().collect();
        if let Some(order) = memory_order::axes_as(&layouts, shape.len()) {
            return memory_order::dense(&order, shape);
        }
    }
    Ok(Layout::contiguous(shape))
}

/// Whether Python numbers are combined with float16 or bfloat16. They are rounded to that dtype first: inner loops compute in float32, where they
/// would not be.
fn rounds_numbers(call: &Call, compute: DType) -> bool {
    let is_number = |x: &&Array| x.is_weak() && x.kind() != mxnet_tensor::Kind::Bool;
    matches!(compute, DType::F16 | DType::BF16)
        && matches!(call.op.types, Types::Promote { .. })
        && call.inputs.iter().flatten().any(is_number)
        && !call.inputs.iter().flatten().all(|x| x.is_weak())
}

/// Executes the call with its Python numbers rounded to the float16 or bfloat16 that it computes in.
fn with_rounded_numbers(call: &Call) -> Result<Outputs> {
    let (compute, _) = types::resolve_call(call)?;
    let mut rounded: SmallVec<[Option<Array>; 2]> = SmallVec::new();
    for x in call.inputs {
        let number = x.filter(|x| x.is_weak() && x.kind() != mxnet_tensor::Kind::Bool);
        rounded.push(match number.and_then(Array::number) {
            Some(value) if !value.fits(compute) => return handle_overflow(call, value, compute),
            Some(value) => Some(Array::constant(value, compute)?),
            None => None,
        });
    }
    let inputs: SmallVec<[Option<&Array>; 2]> = call
        .inputs
        .iter()
        .zip(&rounded)
        .map(|(x, rounded)| rounded.as_ref().or(*x))
        .collect();
    run(&Call {
        inputs: &inputs,
        ..*call
    })
}

/// Plans an operator with shape inference. A panic of its rules becomes an error.
pub(crate) fn inferred(
    call: &Call,
    kernel: fn(&KernelContext) -> Result<()>,
    device: Device,
    runs_on: Device,
) -> Result<Plan> {
    caught(call.op.name, || by_rules(call, kernel, device, runs_on))
}

fn by_rules(
    call: &Call,
    kernel: fn(&KernelContext) -> Result<()>,
    device: Device,
    runs_on: Device,
) -> Result<Plan> {
    let context = call.context();
    let specs = (call.op.infer)(&context)?;
    let dtypes = output_dtypes(call, &specs)?;
    let device = device_asked_for(call).unwrap_or(device);
    let in_c_order = || {
        let mut inputs = call.inputs.iter().flatten();
        inputs.all(|x| x.layout().is_contiguous())
    };
    let asks_for_order = || call.op.params.iter().any(|p| p.name == "order");
    let order = (call.op.order).filter(|_| !in_c_order() || asks_for_order());
    let order = order.and_then(|order| order(&context));
    let mut outputs = SmallVec::new();
    let mut bytes_written = 0;
    for (i, (spec, &dtype)) in specs.iter().zip(&dtypes).enumerate() {
        if let Some(out) = call.outs.get(i).copied().flatten() {
            check_out(call, i, out, &spec.shape, dtype)?;
        }
        checked_len(&spec.shape)?;
        let layout = match order.as_deref() {
            Some(order) if order.len() == spec.shape.len() => {
                memory_order::dense(order, &spec.shape)?
            }
            _ => Layout::contiguous(&spec.shape),
        };
        bytes_written += layout.len() * dtype.size();
        outputs.push(OutputPlan { layout, dtype });
    }
    Ok(Plan::Launch(Launch {
        kernel: Kernel::Fn(kernel, None),
        outputs,
        device,
        runs_on,
        cost_ns: cost_ns(&context, bytes_written),
        numbers: SmallVec::new(),
    }))
}

fn output_dtypes(call: &Call, specs: &Inferred) -> Result<SmallVec<[DType; 2]>> {
    specs
        .iter()
        .map(|spec| match (spec.dtype, call.op.types) {
            (Some(dtype), _) => Ok(dtype),
            (None, Types::First) => Ok(call.context().dtype_of(0)),
            (None, Types::Promote { .. } | Types::Choose | Types::Counted { .. }) => {
                types::resolve_call(call).map(|(_, returned)| returned)
            }
            (None, Types::Infer) => Err(Error::internal(call.op.name, "inference gave no dtype")),
        })
        .collect()
}
