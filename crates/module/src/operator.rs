//! Operators of modules, converted to definitions for the registry.

use std::ffi::c_char;
use std::mem::{MaybeUninit, offset_of};

use mxnet_core::autograd::GradContext;
use mxnet_core::{
    Array, Cpu, Default, Error, Grad, Grads, InferContext, Inferred, Keep, KernelContext, OpDef,
    OutSpec, Param, ParamKind, Result, Types, invoke_with, registry,
};
use mxnet_tensor::{DType, Dims, checked_len};

use crate::abi::{
    MX_MODULE_MAX_NDIM, MX_MODULE_OK, MX_OPERATOR_IMPURE, MX_PARAMETER_BOOL, MX_PARAMETER_INT,
    MX_PARAMETER_REAL, MX_PARAMETER_TEXT, mx_infer, mx_infer_call, mx_kernel, mx_operator, mx_spec,
};
use crate::call::{Attributes, State, failure, run_kernel};
use crate::text::{self, MESSAGE_BYTES};

/// Data for the functions of the definition.
struct Code {
    infer: mx_infer,
    kernel: mx_kernel,
    gradient: Option<&'static str>,
    state: State,
    num_outputs: usize,
}

fn code(op: &'static OpDef) -> Result<&'static Code> {
    let state = op.state.and_then(|state| state.downcast_ref::<Code>());
    state.ok_or_else(|| Error::internal(op.name, "the entry is of no module"))
}

/// Limit for operands, outputs and parameters of an operator. Larger numbers are a sign of an uninitialised structure.
const MAX_COUNT: usize = 64;

/// A checked copy of a module's description of an operator.
pub struct Description {
    /// The definition.
    pub op: OpDef,
    /// Name of the operator that computes its gradient.
    pub gradient: Option<&'static str>,
}

/// Checks and copies the description of an operator.
///
/// # Safety
/// `given` is null or points to a structure whose pointers are null or valid.
pub unsafe fn describe(given: *const mx_operator) -> Result<Description> {
    let wrong = |problem: String| Error::value("load", problem);
    if given.is_null() || !given.is_aligned() {
        return Err(wrong("the operator is null".to_owned()));
    }
    // SAFETY: not null, and the caller's promise. The first word is the size.
    let size = unsafe { given.cast::<usize>().read() };
    // The structure of version 1, which ends before the flags.
    let needed = offset_of!(mx_operator, flags);
    if size < needed {
        return Err(wrong(format!(
            "the operator's structure has {size} bytes, at least {needed} are needed"
        )));
    }
    let mut whole = MaybeUninit::<mx_operator>::zeroed();
    // SAFETY: 1. the caller's structure has `size` bytes, and so has ours at least as many as are copied. 2. a structure of numbers, pointers and
    // optional functions may be zero where nothing was copied.
    let given = unsafe {
        let len = size.min(size_of::<mx_operator>());
        std::ptr::copy_nonoverlapping(given.cast::<u8>(), whole.as_mut_ptr().cast::<u8>(), len);
        whole.assume_init()
    };
    // SAFETY: as the caller promises.
    let name = unsafe { text::copied(given.name, "name")? };
    let wrong = |problem: &str| Error::value("load", format!("operator `{name}`: {problem}"));
    if name.is_empty() || registry::find(name).is_some() {
        return Err(wrong("the name is empty or exists already"));
    }
    if given.num_inputs > MAX_COUNT
        || given.num_parameters > MAX_COUNT
        || !(1..=MAX_COUNT).contains(&given.num_outputs)
    {
        return Err(wrong(
            "it has no outputs, or more than 64 operands, outputs or parameters",
        ));
    }
    if given.flags & !MX_OPERATOR_IMPURE != 0 || given.reserved != 0 {
        return Err(wrong(
            "it has flags that this engine does not know, or `reserved` is not 0",
        ));
    }
    if given.kernel.is_none() {
        return Err(wrong("it has no kernel"));
    }
    if given.infer.is_none() && given.num_inputs == 0 {
        return Err(wrong("it has neither operands nor a shape rule"));
    }
    if (given.inputs.is_null() && given.num_inputs > 0)
        || (given.parameters.is_null() && given.num_parameters > 0)
    {
        return Err(wrong("its operands or parameters are null"));
    }
    let mut params = Vec::new();
    for i in 0..given.num_inputs {
        // SAFETY: there are `num_inputs` names, by the caller's promise.
        params.push(Param::array(unsafe {
            text::copied(*given.inputs.add(i), "name of an operand")?
        }));
    }
    for i in 0..given.num_parameters {
        // SAFETY: there are `num_parameters` parameters, by the caller's promise.
        let parameter = unsafe { given.parameters.add(i).read() };
        // SAFETY: as the caller promises.
        let name = unsafe { text::copied(parameter.name, "name of a parameter")? };
        let value = parameter.value;
        params.push(match value.kind {
            MX_PARAMETER_INT => Param::int(name, value.integer),
            MX_PARAMETER_BOOL => Param::bool(name, value.integer != 0),
            MX_PARAMETER_REAL => Param::float(name, value.real),
            MX_PARAMETER_TEXT => {
                // SAFETY: as the caller promises.
                let default = unsafe { text::copied(value.text, "default of a parameter")? };
                Param::required(name, ParamKind::Str).or(Default::Str(default))
            }
            other => return Err(wrong(&format!("no parameter has the kind {other}"))),
        });
    }
    for (i, param) in params.iter().enumerate() {
        if params[..i].iter().any(|other| other.name == param.name) {
            return Err(wrong(&format!("two parameters are named `{}`", param.name)));
        }
    }
    let optional = |text: *const c_char| match text.is_null() {
        true => Ok(None),
        // SAFETY: not null, and the caller's promise.
        false => unsafe { text::copied(text, "text") }.map(Some),
    };
    let (doc, gradient) = (optional(given.doc)?, optional(given.gradient)?);
    let code: &'static Code = Box::leak(Box::new(Code {
        infer: given.infer,
        kernel: given.kernel,
        gradient,
        state: State(given.state),
        num_outputs: given.num_outputs,
    }));
    let op = OpDef {
        name,
        doc: doc.unwrap_or("An operator of a module."),
        params: Vec::leak(params),
        types: Types::Infer,
        infer,
        cpu: Cpu::Kernel(kernel),
        grad: match gradient {
            Some(_) => Grad::Rule(Keep::ALL, rule),
            None => Grad::Stop("its module defines none"),
        },
        is_impure: given.flags & MX_OPERATOR_IMPURE != 0,
        state: Some(code),
        ..OpDef::DEFAULT
    };
    Ok(Description { op, gradient })
}

fn spec(x: &Array) -> mx_spec {
    let mut shape = [0; MX_MODULE_MAX_NDIM];
    for (to, &n) in shape.iter_mut().zip(x.shape()) {
        *to = n as i64;
    }
    mx_spec {
        ndim: x.ndim() as i32,
        dtype: i32::from(x.dtype() as u8),
        shape,
    }
}

/// Checks shape and dtype of an output that a shape rule returned.
fn checked(op: &'static str, i: usize, found: &mx_spec) -> Result<OutSpec> {
    let wrong = |problem: String| {
        let problem = format!("the shape rule of its module gives output {i} {problem}");
        Error::unsupported(op, problem)
    };
    let ndim = usize::try_from(found.ndim)
        .ok()
        .filter(|&ndim| ndim <= MX_MODULE_MAX_NDIM);
    let ndim = ndim.ok_or_else(|| wrong(format!("{} axes", found.ndim)))?;
    let dtype = u8::try_from(found.dtype).ok().and_then(DType::from_number);
    let dtype = dtype.ok_or_else(|| wrong(format!("the data type {}", found.dtype)))?;
    let size = |&n: &i64| usize::try_from(n).map_err(|_| wrong(format!("the size {n}")));
    let shape: Dims = found.shape[..ndim]
        .iter()
        .map(size)
        .collect::<Result<_>>()?;
    checked_len(&shape)?;
    Ok(OutSpec {
        shape,
        dtype: Some(dtype),
    })
}

fn infer(context: &InferContext) -> Result<Inferred> {
    let code = code(context.op)?;
    let Some(rule) = code.infer else {
        let like_first = OutSpec {
            shape: Dims::from_slice(context.shape(0)),
            dtype: Some(context.dtype_of(0)),
        };
        return Ok((0..code.num_outputs).map(|_| like_first.clone()).collect());
    };
    if let Some(x) = context
        .inputs
        .iter()
        .flatten()
        .find(|x| x.ndim() > MX_MODULE_MAX_NDIM)
    {
        let problem = format!(
            "a module takes at most {MX_MODULE_MAX_NDIM} axes, found {}",
            x.ndim()
        );
        return Err(context.shape_error(problem));
    }
    let inputs: Vec<mx_spec> = context.inputs.iter().flatten().map(|x| spec(x)).collect();
    // An invalid value, by which outputs that the rule did not write are found.
    let unwritten = mx_spec {
        ndim: -1,
        dtype: -1,
        shape: [-1; MX_MODULE_MAX_NDIM],
    };
    let mut outputs = vec![unwritten; code.num_outputs];
    let attributes = Attributes::new(context.args);
    let mut written = [0 as c_char; MESSAGE_BYTES];
    let call = mx_infer_call {
        size: size_of::<mx_infer_call>(),
        inputs: inputs.as_ptr(),
        num_inputs: inputs.len(),
        attributes: attributes.list.as_ptr(),
        num_attributes: attributes.list.len(),
        outputs: outputs.as_mut_ptr(),
        num_outputs: outputs.len(),
        state: code.state.0,
        message: written.as_mut_ptr(),
        message_capacity: MESSAGE_BYTES,
    };
    // SAFETY: the module promises a function of this type; everything in `call` lives until it returns.
    let status = unsafe { rule(&raw const call) };
    if status != MX_MODULE_OK {
        return Err(failure(context.op.name, status, text::message(&written)));
    }
    let found = outputs.iter().enumerate();
    found
        .map(|(i, spec)| checked(context.op.name, i, spec))
        .collect()
}

fn kernel(context: &KernelContext) -> Result<()> {
    let code = code(context.op)?;
    let attributes = Attributes::new(context.args);
    match run_kernel(context, code.kernel, code.state, &attributes.list)? {
        true => Ok(()),
        false => Err(Error::unsupported(
            context.op.name,
            "its module declined the call, and there is no other kernel",
        )),
    }
}

fn rule(g: &GradContext) -> Result<Grads> {
    let name = code(g.op)?.gradient.unwrap_or("");
    let Some(op) = registry::find(name) else {
        let problem = format!("the operator `{name}` of its gradient does not exist");
        return Err(Error::autograd(g.op.name, problem));
    };
    let mut operands: Vec<Option<&Array>> = Vec::new();
    operands.extend((0..g.num_outputs()).map(|i| Some(g.dy(i))));
    operands.extend((0..g.num_inputs()).map(|i| g.opt_input(i)));
    operands.extend((0..g.num_outputs()).map(|i| Some(g.output(i))));
    let grads = invoke_with(op, &operands, g.args.attrs)?;
    for (i, gradient) in grads.iter().enumerate() {
        if gradient.shape() != g.shape(i) {
            let problem = format!(
                "`{name}` gives operand {i} a gradient of shape {}, the operand has shape {}",
                mxnet_core::Tuple(gradient.shape()),
                mxnet_core::Tuple(g.shape(i))
            );
            return Err(Error::shape(g.op.name, problem));
        }
    }
    Ok(grads.into_iter().map(Some).collect())
}
