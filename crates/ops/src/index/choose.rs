//! `choose`: selects each element from one of several arrays.
#![allow(unsafe_code)]

use mxnet_kernels::index::{Choice, choose as kernel};
use mxnet_tensor::{Casting, DType, Scalar, Tensor, broadcast_shapes};
use smallvec::SmallVec;

use super::positions::all_in_range;
use super::resolved;
use crate::Array;
use crate::args::{Attrs, Param};
use crate::batching::Batch;
use crate::cpu;
use crate::elementwise::comparison::EQUAL;
use crate::elementwise::select;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::opdef::{Cpu, Form, Grad, Keep, OpDef, Probe, Surface, one_of};
use crate::types::promoted;

/// NumPy's `choose`.
pub static CHOOSE: OpDef = OpDef {
    name: "choose",
    surface: &[Surface::Np("choose")],
    params: &[
        Param::array("a"),
        Param::arrays("choices"),
        Param::out(),
        Param::choice("mode", &["raise", "wrap", "clip"], "raise"),
    ],
    form: Form::Out,
    out_casting: Casting::Unsafe,
    doc: "Each element is taken from one of several arrays, selected by index; indices and arrays broadcast. With the mode 'raise' the call waits for the indices.",
    about: &[
        ("a", "The index of the array to take each element from."),
        ("choices", "The arrays, or one array of them."),
        (
            "mode",
            "How an index out of bounds is treated: an error ('raise'), modulo the number of arrays ('wrap'), or the nearest one ('clip').",
        ),
    ],
    returns: &[(
        "ndarray",
        "Of the shape to which all broadcast, of the dtype that the choices promote to.",
    )],
    raises: &[
        (
            "ValueError",
            "If an index is out of bounds and `mode` is 'raise', or if there is no array.",
        ),
        (
            "TypeError",
            "If the indices are not integers, or are uint64.",
        ),
    ],
    example: "
        >>> np.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]])
        array([ 1, 20,  3])
        >>> np.choose([0, 3, 7], [[1, 2, 3], [10, 20, 30]], mode='clip')
        array([ 1, 20, 30])
    ",
    cpu: Cpu::Composite(|context| {
        let (numbers, choices) = (context.input(0), &context.inputs[1..]);
        if choices.is_empty() {
            return Err(context.value_error("there must be at least one array to choose from"));
        }
        if numbers.dtype().is_inexact() {
            let found = numbers.dtype().name();
            return Err(context.dtype_error(format!("`a` must be integers, found {found}")));
        }
        if numbers.dtype() == DType::U64 {
            return Err(context.dtype_error(
                "Cannot cast array data from dtype('uint64') to dtype('int64') according to the rule 'safe'",
            ));
        }
        let dtype = promoted(choices);
        let mut numbers = numbers.astype(DType::I64)?;
        if context.str("mode") != "raise" {
            let mode = if context.str("mode") == "wrap" {
                "wrap"
            } else {
                "clip"
            };
            numbers = resolved(&numbers, choices.len(), 0, mode)?;
        }
        let choices = choices
            .iter()
            .flatten()
            .map(|x| x.astype(dtype))
            .collect::<Result<SmallVec<[Array; 8]>>>()?;
        let mut inputs = SmallVec::<[&Array; 8]>::new();
        inputs.push(&numbers);
        inputs.extend(&choices);
        context.done(invoke1(&CHOSEN, &inputs, &Attrs::none())?)
    }),
    probe: Probe::calls(&[
        "i((3, 4), 2), (f((3, 4)), f((3, 4)))",
        "i((3, 1), 3), [f((4,)), f((1, 4)), 2.5]",
        "i((5,), 9), [i((5,), 9), f((5,))], None, 'wrap'",
        "i((5,), 9), f((2, 5)), None, 'clip'",
        "i((), 2), (f((2, 2)), c((2,)))",
        "b((0,)), (f((0,)), f((1,)))",
    ]),
    positions: &[0],
    ..OpDef::COMPOSITE
};

/// `choose` from arrays of one dtype, with indices in range.
pub static CHOSEN: OpDef = OpDef {
    name: "chosen",
    params: &[Param::array("numbers"), Param::arrays("choices")],
    doc: "Elements of `choices`, arrays of one dtype, selected by the int64 indices `numbers`; all broadcast.",
    infer: |context| {
        if (2..context.inputs.len()).any(|i| context.dtype_of(i) != context.dtype_of(1))
            || context.dtype_of(0) != DType::I64
        {
            return Err(context
                .dtype_error("indices must be int64, and all choices must have the same dtype"));
        }
        let shapes: SmallVec<[&[usize]; 8]> = (0..context.inputs.len())
            .map(|i| context.shape(i))
            .collect();
        one_of(broadcast_shapes(&shapes)?, context.dtype_of(1))
    },
    // Users expect an index error at the call.
    waits: true,
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let shape = out.shape();
        let given = context.input(0);
        let broadcast;
        let numbers = if given.shape() == shape && given.layout().is_contiguous() {
            given
        } else {
            broadcast = Tensor::empty(shape, DType::I64, out.device())?;
            cpu::copy(given, &broadcast, context.threads)?;
            &broadcast
        };
        let count = context.inputs.len() - 1;
        if !all_in_range(numbers, count, context.threads) {
            let found: Vec<i64> = cpu::read_dense(numbers);
            let bad = found.iter().find(|n| !(0..count as i64).contains(*n));
            let problem = format!(
                "invalid entry in choice array: `a` must be in 0..{count}, found {}",
                bad.copied().unwrap_or_default()
            );
            return Err(Error::value("choose", problem));
        }
        let size = out.dtype().size() as isize;
        let mut strides = SmallVec::<[SmallVec<[isize; 4]>; 8]>::new();
        for i in 1..=count {
            let layout = context.input(i).layout().broadcast_to(shape)?;
            strides.push(layout.strides().iter().map(|s| s * size).collect());
        }
        let choices: SmallVec<[Choice; 8]> = strides
            .iter()
            .enumerate()
            .map(|(i, strides)| Choice {
                ptr: context.input(i + 1).data_ptr(),
                strides,
            })
            .collect();
        // SAFETY: 1. the indices are dense int64 of the output's shape, in range (checked). 2. broadcast layouts lie within their storages;
        // all have the output's dtype (inference). 3. the output is dense and new.
        unsafe {
            kernel(
                context.threads,
                elem(out.dtype()),
                shape,
                numbers.data_ptr().cast_const().cast(),
                &choices,
                out.data_ptr(),
            );
        }
        Ok(())
    }),
    grad: Grad::Rule(Keep::inputs(1), |g| {
        let zero = Array::constant(Scalar::I64(0), g.dy(0).dtype())?;
        let mut grads = crate::opdef::Grads::from_iter([None]);
        for i in 1..g.num_inputs() {
            grads.push(if g.wants(i) {
                let number = Array::weak_scalar(Scalar::I64(i as i64 - 1))?;
                let here = g.input(0).binary(&EQUAL, &number)?;
                Some(g.fitted(select::choose(&here, g.dy(0), &zero)?, i)?)
            } else {
                None
            });
        }
        Ok(grads)
    }),
    probe: Probe::calls(&[
        "i((3, 4), 2), (f((3, 4)), f((3, 4)))",
        "i((3, 1), 3), [f((4,)), f((1, 4)), f((3, 4))]",
    ])
    .against("numpy.choose"),
    batch: Batch::Leading(&[0]),
    positions: &[0],
    ..OpDef::DEFAULT
};
