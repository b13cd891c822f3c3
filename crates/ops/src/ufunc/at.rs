//! `ufunc.at`: an elementwise function applied in place at an index expression; a repeated index applies it repeatedly.
#![allow(unsafe_code)]

use mxnet_kernels::map::{self, Right};
use mxnet_tensor::{Casting, DType, Device, IndexItem, Kind, Tensor, can_cast};
use smallvec::SmallVec;

use super::dtype::num_outputs;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::KernelContext;
use crate::elementwise::arithmetic::{ADD, NEGATIVE, SUBTRACT};
use crate::error::{Error, Result, Tuple};
use crate::index::{selected_positions, spanned};
use crate::invoke::{Call, dispatch, invoke1};
use crate::launch::elem;
use crate::mode::Flags;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef};
use crate::types::{self, Types};
use crate::{Array, cpu, creation, fp_errors, index, registry, shape};

/// Applies a function in place at positions.
pub static AT: OpDef = OpDef {
    name: "apply_at",
    params: &[
        Param::array("a"),
        Param::array("positions"),
        Param::optional_array("value"),
        Param::required("function", ParamKind::Str),
        Param::required("dtype", ParamKind::DType),
    ],
    doc: "Applies an elementwise function in place to elements of the dense array `a` at flat positions in C order; a binary function takes the \
        value of the position as second operand. It is computed in `dtype`. Positions are processed in order: the function is applied twice to a \
        position that occurs twice.",
    infer: |_| Ok(Inferred::new()),
    cpu: Cpu::Kernel(apply),
    grad: Grad::Stop("it changes its argument: `at` records sums as accumulation"),
    mutates: &[0],
    cost: Cost::PerKiB(2000),
    probe: crate::opdef::Probe::calls(&[
        "np.zeros((4,)), i((6,), 4), f((6,)), 'add', 'float32'",
        "np.ones((2, 3)), i((3,), 6), None, 'negative', 'float32'",
    ]),
    positions: &[1],
    ..OpDef::DEFAULT
};

fn apply(context: &KernelContext) -> Result<()> {
    let (a, positions) = (context.input(0), context.input(1));
    let name = context.str("function");
    let Some(Cpu::Map(rows)) = registry::find(name).map(|op| op.cpu) else {
        let problem = format!("`{name}` is no elementwise function");
        return Err(Error::value(context.op.name, problem));
    };
    let dtype = context.dtype("dtype").unwrap_or(a.dtype());
    let compute = cpu::row_elem(rows, dtype);
    let compute = DType::ALL[compute as usize];
    let wanted = 1 + usize::from(context.opt(2).is_some());
    let fits = a.layout().is_contiguous()
        && positions.layout().is_contiguous()
        && positions.dtype() == DType::I64
        && (rows.ins as usize, rows.outs, rows.params) == (wanted, 1, 0)
        && rows.in_elems.iter().all(Option::is_none)
        && rows.supports(elem(compute));
    if !fits {
        let problem = format!("operands do not fit `{name}`");
        return Err(Error::value(context.op.name, problem));
    }
    let n = positions.len();
    let list = read(positions);
    if let Some(bad) = list.iter().find(|&&p| p < 0 || p as usize >= a.len()) {
        let problem = format!("position {bad} in an array of {} elements", a.len());
        return Err(Error::index(context.op.name, problem));
    }
    let value = match context.opt(2) {
        Some(value) => {
            let single = value.len() == 1;
            let dense = Tensor::empty(value.shape(), compute, Device::cpu(0))?;
            cpu::copy(value, &dense, context.threads)?;
            let stride = if single { 0 } else { compute.size() as isize };
            if !single && dense.len() != n {
                let problem = format!("{} values for {n} positions", dense.len());
                return Err(Error::shape(context.op.name, problem));
            }
            Some((dense, stride))
        }
        None => None,
    };
    let right = value.as_ref().map(|(dense, stride)| Right {
        ptr: dense.data_ptr(),
        stride: *stride,
    });
    // SAFETY: 1. every position lies within the dense array `a`, which the engine lets this operation write. 2. there is one value in total, or one
    // for each position. 3. the function takes these operands, as checked above.
    unsafe {
        map::at_positions(
            rows,
            elem(compute),
            a.data_ptr(),
            elem(a.dtype()),
            list.as_ptr(),
            n,
            right,
        )
    };
    Ok(())
}

/// The elements of a dense int64 tensor.
fn read(positions: &Tensor) -> Vec<i64> {
    cpu::read_dense(positions)
}

/// `a[key] = op(a[key], value)`, unbuffered. While a gradient is recorded through `a` or `value`, returns the array that replaces `a`.
///
/// # Errors
/// [`Error::Index`] as for `a[key]`; [`Error::DType`] if the function's result does not fit the elements of `a`; [`Error::Shape`] if `value`
/// does not broadcast to `a[key]`; [`Error::Value`] for a missing or a superfluous `value`, or if `a` cannot be written;
/// [`Error::Autograd`] for functions other than `add` and `subtract` while a gradient is recorded.
pub fn at(
    op: &'static OpDef,
    a: &Array,
    key: &[IndexItem],
    arrays: &[Array],
    value: Option<&Array>,
) -> Result<Option<Array>> {
    if num_outputs(op) != 1 || op.params.len() > 2 || !matches!(op.cpu, Cpu::Map(_)) {
        let problem = "Only single output ufuncs supported at this time";
        return Err(Error::value(op.name, problem));
    }
    match (op.params.len(), value) {
        (1, Some(_)) => {
            return Err(Error::value(
                op.name,
                "second operand provided when ufunc is unary",
            ));
        }
        (2, None) => return Err(Error::value(op.name, "second operand needed for ufunc")),
        _ => {}
    }
    if a.tensor().is_read_only() {
        return Err(Error::value(op.name, "operand array is read-only"));
    }
    let compute = loop_of(op, a, value)?;
    let flags = Flags::current();
    let recorded = |x: &Array| x.entry().is_some();
    if flags.is_recording() && (recorded(a) || value.is_some_and(recorded)) {
        return record(op, a, key, arrays, value).map(Some);
    }
    if a.shares_elements()
        && let Some((row, positions_row)) = spanned(a)?
    {
        let (item, positions_row) = selected_positions(&positions_row, key, arrays)?;
        return at(op, &row, &[item], &[positions_row], value);
    }
    let positions = positions(a, key, arrays)?;
    let value = value
        .map(|value| spread(op, value, positions.shape(), compute))
        .transpose()?;
    let positions = positions.contiguous()?;
    let dense = a.detach().contiguous()?;
    let in_place = cpu::same_elements(dense.tensor(), a.tensor());
    // The old elements are only needed to find floating-point errors.
    let before = match fp_errors::is_watching() {
        true => Some(fp_errors::unwatched(|| a.detach().copy())?),
        false => None,
    };
    let attrs: Attrs = [Value::Str(op.name.into()), Value::DType(compute)]
        .into_iter()
        .collect();
    dispatch(&Call {
        op: &AT,
        inputs: &[Some(&dense), Some(&positions), value.as_ref()],
        attrs: &attrs,
        outs: &[],
        dtype: None,
    })?;
    if !in_place {
        shape::assign(a, &dense)?;
    }
    if let Some(before) = before {
        let positions_row: Vec<i64> = positions.to_vec()?;
        fp_errors::check_in_place(op, &before, &positions_row, value.as_ref(), &a.detach())?;
    }
    Ok(None)
}

/// The dtype that the function computes in. An error if its result cannot be converted to the dtype of `a`.
fn loop_of(op: &'static OpDef, a: &Array, value: Option<&Array>) -> Result<DType> {
    let Types::Promote { accepts, lift, out } = op.types else {
        let problem = format!("`{}` takes operands of different dtypes", op.name);
        return Err(Error::dtype(op.name, problem));
    };
    let operands: SmallVec<[Option<&Array>; 2]> =
        [Some(a), value].into_iter().take(op.params.len()).collect();
    let (compute, returned) = types::resolve(op.name, accepts, lift, out, &operands, None)?;
    // Floats are truncated to integers, as in NumPy.
    let cut = returned.is_float() && a.dtype().is_integer();
    if !cut && !can_cast(returned, a.dtype(), Casting::SameKind) {
        let problem = format!(
            "cannot cast output from {} to {} under casting rule 'same_kind'",
            returned.name(),
            a.dtype().name()
        );
        return Err(Error::dtype(op.name, problem));
    }
    if let Some(number) = value.and_then(Array::number)
        && number.kind() <= Kind::Integer
        && !number.fits(compute)
    {
        return Err(types::out_of_bounds(op.name, number, compute));
    }
    Ok(compute)
}

/// The elements of `a` that the key selects, as flat positions in C order; of the shape of `a[key]`.
fn positions(a: &Array, key: &[IndexItem], arrays: &[Array]) -> Result<Array> {
    if let ([IndexItem::Array { .. }], [numbers], [len]) = (key, arrays, a.shape()) {
        return index::resolved(&numbers.detach(), *len, 0, "raise");
    }
    let numbers = creation::arange(a.len(), DType::I64)?.reshape(a.shape())?;
    let arrays: SmallVec<[Array; 2]> = arrays.iter().map(Array::detach).collect();
    index::get(&numbers, key, &arrays)
}

/// The value in the dtype computed in: one element for all positions, or one for each.
fn spread(op: &'static OpDef, value: &Array, shape: &[usize], compute: DType) -> Result<Array> {
    let value = value.detach().astype(compute)?;
    if value.len() == 1 && value.ndim() <= shape.len() {
        return value.reshape(&[]);
    }
    if value.layout().broadcast_to(shape).is_err() {
        let problem = format!(
            "value of shape {} does not broadcast to the shape {} of the indexed elements",
            Tuple(value.shape()),
            Tuple(shape)
        );
        return Err(Error::shape(op.name, problem));
    }
    value.broadcast_to(shape)
}

/// Adds at positions, recorded.
fn record(
    op: &'static OpDef,
    a: &Array,
    key: &[IndexItem],
    arrays: &[Array],
    value: Option<&Array>,
) -> Result<Array> {
    let value = match (op.name, value) {
        (name, Some(value)) if name == ADD.name => value.clone(),
        (name, Some(value)) if name == SUBTRACT.name => {
            invoke1(&NEGATIVE, &[&value.astype(a.dtype())?], &Attrs::none())?
        }
        _ => {
            let problem = format!(
                "{}.at changes elements in place and has no gradient: inside `autograd.record` only add.at and subtract.at are recorded",
                op.name
            );
            return Err(Error::autograd(op.name, problem));
        }
    };
    index::accumulate(a, key, arrays, &value)
}
