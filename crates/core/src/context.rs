//! Contexts: the arguments of the functions in an operator's definition.

use std::ops::{Deref, Range};
use std::sync::Arc;

use mxnet_engine::{Access, Stream};
use mxnet_kernels::Threads;
use mxnet_tensor::{
    DType, Device, Dims, Layout, Scalar, Storage, Tensor, broadcast_shapes, normalize_axis,
};
use smallvec::SmallVec;

use crate::args::{Args, Attrs, Param, ParamKind};
use crate::cpu;
use crate::error::{Error, OperandFacts, Result, Tuple};
use crate::opdef::{Inferred, OpDef, OutSpec, one, one_of};
use crate::{Array, Outputs};

/// Argument of shape inference, eager bodies and composite bodies: arrays and attributes of one call.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// The operator.
    pub op: &'static OpDef,
    /// The array arguments, flattened in the order of the parameters.
    pub inputs: &'a [Option<&'a Array>],
    /// Attributes, by name.
    pub args: Args<'a>,
    /// Whether training mode is on.
    pub training: bool,
    /// Arrays given as `out`. The caller copies the outputs there; few operators need to read them.
    pub outs: &'a [Option<&'a Array>],
}

/// Argument of shape inference, which may read shapes, dtypes and devices, never values.
pub type InferContext<'a> = CallContext<'a>;
/// Argument of an eager operator, which runs at the call.
pub type EagerContext<'a> = CallContext<'a>;
/// Argument of a composite operator, which calls other operators.
pub type CompositeContext<'a> = CallContext<'a>;

impl<'a> Deref for CallContext<'a> {
    type Target = Args<'a>;

    fn deref(&self) -> &Args<'a> {
        &self.args
    }
}

impl<'a> CallContext<'a> {
    /// Array argument `i`.
    ///
    /// # Panics
    /// If it is absent: optional arguments are read with [`CallContext::opt`].
    #[inline]
    pub fn input(&self, i: usize) -> &'a Array {
        self.opt(i)
            .expect("required arguments are present: the call was checked against the parameters")
    }

    /// Array argument `i`, if it was given.
    #[inline]
    pub fn opt(&self, i: usize) -> Option<&'a Array> {
        self.inputs.get(i).copied().flatten()
    }

    /// Shape of array argument `i`.
    pub fn shape(&self, i: usize) -> &'a [usize] {
        self.input(i).shape()
    }

    /// Dtype of array argument `i`.
    pub fn dtype_of(&self, i: usize) -> DType {
        self.input(i).dtype()
    }

    /// One output with the shape and dtype of argument `i`.
    pub fn same_as(&self, i: usize) -> Result<Inferred> {
        one_of(Dims::from_slice(self.shape(i)), self.dtype_of(i))
    }

    /// One output: all shapes broadcast together, dtype by the type rule.
    pub fn broadcast(&self) -> Result<Inferred> {
        if let [Some(x)] = self.inputs {
            return one(Dims::from_slice(x.shape()));
        }
        let shapes: SmallVec<[&[usize]; 8]> =
            self.inputs.iter().flatten().map(|x| x.shape()).collect();
        one(broadcast_shapes(&shapes)?)
    }

    /// Several outputs.
    pub fn many(&self, outs: impl IntoIterator<Item = (Dims, DType)>) -> Result<Inferred> {
        Ok(outs
            .into_iter()
            .map(|(shape, dtype)| OutSpec {
                shape,
                dtype: Some(dtype),
            })
            .collect())
    }

    /// Attribute `name` as an axis of argument `i`.
    pub fn axis(&self, name: &str, i: usize) -> Result<usize> {
        Ok(normalize_axis(
            self.int(name) as isize,
            self.input(i).ndim(),
        )?)
    }

    /// Attribute `name` as axes of argument `i`, in the order given; `None` means all of them.
    pub fn axes(&self, name: &str, i: usize) -> Result<SmallVec<[usize; 4]>> {
        self.normal_axes(name, self.input(i).ndim())
    }

    /// Positions of the arguments of array parameter `p`, counted among the array parameters: one, or those of a list. Lists in one call have the
    /// same length.
    pub fn arguments_of(&self, p: usize) -> Range<usize> {
        arguments_of(self.op, self.inputs.len(), p)
    }

    /// The arrays whose elements the operator changes, and their positions among the arguments.
    pub fn mutated(&self) -> impl Iterator<Item = (usize, &'a Array)> {
        let context = *self;
        let arguments = context
            .op
            .mutates
            .iter()
            .flat_map(move |&p| context.arguments_of(p));
        arguments.filter_map(move |i| context.opt(i).map(|x| (i, x)))
    }

    /// Checks that the arrays that the operator changes can be written.
    ///
    /// # Errors
    /// [`Error::Value`] that names the argument, as [`Array::check_writable`].
    pub fn check_mutated(&self) -> Result<()> {
        self.mutated().try_for_each(|(i, x)| {
            if !x.tensor().is_read_only() && !x.shares_elements() {
                return Ok(());
            }
            let facts = self.facts_of(|k| k == i);
            let name = facts.first().map_or("", |fact| &fact.name);
            x.check_writable(self.op.name, &format!("`{name}`"))
                .map_err(|error| error.with_operands(|| facts.clone()))
        })
    }

    /// Checks that array argument `i` has this shape, if it was given.
    ///
    /// # Errors
    /// [`Error::Shape`] that names the argument.
    pub fn check_shape(&self, i: usize, expected: &[usize]) -> Result<()> {
        match self.opt(i).map(Array::shape) {
            Some(found) if found != expected => {
                let facts = self.facts_of(|k| k == i);
                let name = facts.first().map_or("", |fact| &fact.name);
                let (found, expected) = (Tuple(found), Tuple(expected));
                Err(self.shape_error(format!("`{name}` has shape {found}, must have {expected}")))
            }
            _ => Ok(()),
        }
    }

    /// The operands for error messages.
    pub fn facts(&self) -> Vec<OperandFacts> {
        self.facts_of(|_| true)
    }

    /// The arguments at the positions for which `is_shown` is true, for error messages.
    pub fn facts_of(&self, is_shown: impl Fn(usize) -> bool) -> Vec<OperandFacts> {
        let tensor = |i: usize| self.opt(i).filter(|_| is_shown(i)).map(Array::tensor);
        operand_facts(self.op, self.inputs.len(), tensor)
    }

    /// A shape error that shows the operands.
    #[cold]
    pub fn shape_error(&self, problem: impl Into<String>) -> Error {
        Error::shape(self.op.name, problem).with_operands(|| self.facts())
    }

    /// A dtype error that shows the operands.
    #[cold]
    pub fn dtype_error(&self, problem: impl Into<String>) -> Error {
        Error::dtype(self.op.name, problem).with_operands(|| self.facts())
    }

    /// An error about the value of an attribute.
    #[cold]
    pub fn value_error(&self, problem: impl Into<String>) -> Error {
        Error::value(self.op.name, problem)
    }

    /// An error about matrices that shows the operands.
    #[cold]
    pub fn linalg_error(&self, problem: impl Into<String>) -> Error {
        Error::linalg(self.op.name, problem).with_operands(|| self.facts())
    }

    /// Returns `result` as the only output.
    pub fn done(&self, result: Array) -> Result<Outputs> {
        Ok(SmallVec::from_buf([result]))
    }
}

/// Argument of a view operator: the layout of its input, never the elements.
#[derive(Clone, Copy)]
pub struct ViewContext<'a> {
    /// The operator.
    pub op: &'static OpDef,
    /// Layout of the first input.
    pub layout: &'a Layout,
    /// Dtype of the first input.
    pub dtype: DType,
    /// Attributes, by name.
    pub args: Args<'a>,
}

impl<'a> Deref for ViewContext<'a> {
    type Target = Args<'a>;

    fn deref(&self) -> &Args<'a> {
        &self.args
    }
}

/// A position in the global stream of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RngState {
    /// Seed of the stream.
    pub seed: u64,
    /// First counter block of this call.
    pub offset: u64,
}

/// Argument of a kernel: tensors, attributes, threads. A kernel may run later, on another thread.
#[derive(Clone, Copy)]
pub struct KernelContext<'a> {
    /// The operator.
    pub op: &'static OpDef,
    /// The array arguments.
    pub inputs: &'a [Option<&'a Tensor>],
    /// The outputs, allocated; their contents are undefined.
    pub outputs: &'a [&'a Tensor],
    /// Attributes, by name.
    pub args: Args<'a>,
    /// The dtype that an elementwise operator computes in; `None` for other operators.
    pub compute: Option<DType>,
    /// Whether training mode is on.
    pub training: bool,
    /// Start of this call's random numbers; set for operators that draw some.
    pub rng: RngState,
    /// Threads for parallel loops.
    pub threads: &'a dyn Threads,
    /// Device that executes the kernel.
    pub device: Device,
    /// Stream of the device; `None` for devices without one.
    pub stream: Option<&'a dyn Stream>,
    /// Bit `i` is set if array argument `i` (of the first 64) is a number, see [`KernelContext::number`]; set on devices other than the CPU.
    pub numbers: u64,
    /// Bit `i` is set if nobody reads array argument `i` (of the first 64) after this call, so that the kernel may use its memory.
    pub last_reads: u64,
}

impl<'a> Deref for KernelContext<'a> {
    type Target = Args<'a>;

    fn deref(&self) -> &Args<'a> {
        &self.args
    }
}

impl<'a> KernelContext<'a> {
    /// Array argument `i`.
    ///
    /// # Panics
    /// If it is absent: optional arguments are read with [`KernelContext::opt`].
    #[inline]
    pub fn input(&self, i: usize) -> &'a Tensor {
        self.opt(i)
            .expect("required arguments are present: the call was checked against the parameters")
    }

    /// Array argument `i`, if it was given.
    #[inline]
    pub fn opt(&self, i: usize) -> Option<&'a Tensor> {
        self.inputs.get(i).copied().flatten()
    }

    /// Whether the kernel may overwrite array argument `i`, see [`KernelContext::last_reads`].
    pub fn may_overwrite(&self, i: usize) -> bool {
        i < 64 && self.last_reads >> i & 1 == 1
    }

    /// Array argument `i` if it is a Python number or a constant of the operator. Its element is in main memory; the device gets it as an argument
    /// of the launch. On the CPU it is a 0-d array like any other.
    pub fn number(&self, i: usize) -> Option<Scalar> {
        let is_number = i < 64 && self.numbers >> i & 1 == 1;
        is_number.then(|| cpu::read_scalar(self.input(i)))
    }

    /// Scratch memory on the kernel's device, uninitialised. It may be dropped once the work that uses it is enqueued.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is not enough.
    pub fn workspace(&self, len_bytes: usize) -> Result<Workspace<'a>> {
        let storage = Storage::allocate(len_bytes, self.device)?;
        mxnet_kernels::scratch::count_bytes(len_bytes);
        if let Some(stream) = self.stream {
            for (event, _) in storage.var().events(Access::Overwrite) {
                stream.wait(&event, false);
            }
        }
        Ok(Workspace {
            storage,
            stream: self.stream,
        })
    }

    /// Another form of `x`, an array argument or a view of one, that is kept with its storage until the elements change, such as packed weights. `key`
    /// says which form; `pack` writes the `len_bytes` bytes of the form, at the second call with the same elements.
    ///
    /// `None` if the elements may change at any time, if they changed after the last call, or if there is no memory for the form: then the kernel
    /// packs for this call only.
    ///
    /// # Errors
    /// What `pack` reports.
    pub fn packed(
        &self,
        x: &Tensor,
        key: &[usize],
        len_bytes: usize,
        pack: impl FnOnce(*mut u8) -> Result<()>,
    ) -> Result<Option<Arc<Storage>>> {
        let (storage, layout) = (x.storage(), x.layout());
        // Code outside the library writes shared bytes without the engine. A variable that nobody reads belongs to memory of a graph's run.
        let Some(writes) = storage.var().writes_if_read() else {
            return Ok(None);
        };
        if storage.is_shared_while_held() || !storage.device().is_host() {
            return Ok(None);
        }
        let mut words: SmallVec<[u64; 24]> = key.iter().map(|&word| word as u64).collect();
        words.push(x.dtype() as u64);
        words.push(layout.offset() as u64);
        words.extend(layout.shape().iter().map(|&len| len as u64));
        words.extend(layout.strides().iter().map(|&stride| stride as u64));
        let form = storage.packed_forms().get(&words, writes, || {
            let bytes = Storage::allocate(len_bytes, storage.device())?;
            pack(bytes.ptr())?;
            Ok(bytes)
        });
        match form {
            Err(Error::Memory(_)) => Ok(None),
            form => form,
        }
    }

    /// An owned copy, for work that is done later.
    pub fn to_owned(&self) -> OwnedKernelContext {
        OwnedKernelContext {
            op: self.op,
            inputs: self.inputs.iter().map(|x| x.cloned()).collect(),
            outputs: self.outputs.iter().map(|&y| y.clone()).collect(),
            attrs: self.args.attrs.clone(),
            compute: self.compute,
            training: self.training,
            rng: self.rng,
            device: self.device,
            numbers: self.numbers,
        }
    }

    /// Output `i`.
    #[inline]
    pub fn output(&self, i: usize) -> &'a Tensor {
        self.outputs[i]
    }

    /// Attribute `name` as an axis of argument `i`.
    pub fn axis(&self, name: &str, i: usize) -> Result<usize> {
        Ok(normalize_axis(
            self.int(name) as isize,
            self.input(i).layout().ndim(),
        )?)
    }

    /// Attribute `name` as axes of argument `i`; `None` means all of them.
    pub fn axes(&self, name: &str, i: usize) -> Result<SmallVec<[usize; 4]>> {
        self.normal_axes(name, self.input(i).layout().ndim())
    }
}

/// Scratch memory of a kernel.
pub struct Workspace<'a> {
    storage: Arc<Storage>,
    stream: Option<&'a dyn Stream>,
}

impl Workspace<'_> {
    /// The first byte, on the kernel's device.
    pub fn ptr(&self) -> *mut u8 {
        self.storage.ptr()
    }

    /// Size in bytes.
    pub fn len_bytes(&self) -> usize {
        self.storage.len_bytes()
    }
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        // The stream frees the block after the work that was enqueued.
        if let Some(stream) = self.stream {
            let var = self.storage.var();
            var.record_event(stream.record(), Access::Write);
        }
    }
}

/// An owned [`KernelContext`], stored while an operation is queued.
pub struct OwnedKernelContext {
    /// The operator.
    pub op: &'static OpDef,
    /// The array arguments.
    pub inputs: SmallVec<[Option<Tensor>; 4]>,
    /// The outputs.
    pub outputs: SmallVec<[Tensor; 2]>,
    /// The attributes.
    pub attrs: Attrs,
    /// As [`KernelContext::compute`].
    pub compute: Option<DType>,
    /// As [`KernelContext::training`].
    pub training: bool,
    /// As [`KernelContext::rng`].
    pub rng: RngState,
    /// As [`KernelContext::device`].
    pub device: Device,
    /// As [`KernelContext::numbers`].
    pub numbers: u64,
}

impl OwnedKernelContext {
    /// Calls `kernel` with it.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn run(
        &self,
        threads: &dyn Threads,
        stream: Option<&dyn Stream>,
        kernel: impl FnOnce(&KernelContext) -> Result<()>,
    ) -> Result<()> {
        let inputs: SmallVec<[Option<&Tensor>; 8]> =
            self.inputs.iter().map(Option::as_ref).collect();
        let outputs: SmallVec<[&Tensor; 2]> = self.outputs.iter().collect();
        kernel(&KernelContext {
            op: self.op,
            inputs: &inputs,
            outputs: &outputs,
            args: Args {
                params: self.op.params,
                attrs: &self.attrs,
            },
            compute: self.compute,
            training: self.training,
            rng: self.rng,
            threads,
            device: self.device,
            stream,
            numbers: self.numbers,
            last_reads: 0,
        })
        .map_err(|e| e.in_op(self.op.name).with_operands(|| self.facts()))
    }

    /// How errors show the operands.
    fn facts(&self) -> Vec<OperandFacts> {
        operand_facts(self.op, self.inputs.len(), |i| self.inputs[i].as_ref())
    }
}

/// Calls `run` with the array arguments of an operator on the CPU, its [`OpDef::positions`] replaced by copies if code outside the library can write to
/// them: they are checked and then used, and must not change in between. `None`: there is nothing to copy.
///
/// # Errors
/// [`Error::Memory`], and what `run` reports.
#[inline]
pub(crate) fn with_own_positions<R>(
    op: &OpDef,
    inputs: &[Option<&Tensor>],
    copy: impl Fn(&Tensor) -> Result<Tensor>,
    run: impl FnOnce(&[Option<Tensor>]) -> Result<R>,
) -> Result<Option<R>> {
    // Nearly all calls end here.
    if !inputs
        .iter()
        .flatten()
        .any(|x| x.storage().is_shared_while_held())
    {
        return Ok(None);
    }
    let arguments = || {
        let given = op.positions.iter();
        given.flat_map(|&p| arguments_of(op, inputs.len(), p))
    };
    let is_shared = |i: usize| {
        let storage = inputs[i].map(Tensor::storage);
        storage
            .is_some_and(|s| s.is_shared_while_held() && s.device().is_host() && !s.is_abstract())
    };
    if !arguments().any(is_shared) {
        return Ok(None);
    }
    let mut own: SmallVec<[Option<Tensor>; 4]> = inputs.iter().map(|_| None).collect();
    for i in arguments().filter(|&i| is_shared(i)) {
        own[i] = inputs[i].map(&copy).transpose()?;
    }
    run(&own).map(Some)
}

/// The arguments of array parameter `p` of a call with `num_inputs` array arguments.
fn arguments_of(op: &OpDef, num_inputs: usize, p: usize) -> Range<usize> {
    let params = || op.array_params();
    let is_list = |param: &Param| param.kind == ParamKind::Arrays;
    let num_lists = params().filter(|param| is_list(param)).count();
    let num_singles = params().count() - num_lists;
    let length = num_inputs.saturating_sub(num_singles) / num_lists.max(1);
    let size = |param: &Param| if is_list(param) { length } else { 1 };
    let start: usize = params().take(p).map(size).sum();
    start..start + params().nth(p).map_or(0, size)
}

/// How errors show the operands for which `tensor` has one.
fn operand_facts<'a>(
    op: &OpDef,
    num_inputs: usize,
    tensor: impl Fn(usize) -> Option<&'a Tensor>,
) -> Vec<OperandFacts> {
    let mut facts = Vec::new();
    for (p, param) in op.array_params().enumerate() {
        let arguments = arguments_of(op, num_inputs, p);
        let start = arguments.start;
        for i in arguments {
            let Some(x) = tensor(i) else {
                continue;
            };
            facts.push(OperandFacts {
                name: match param.kind {
                    ParamKind::Arrays => format!("{}[{}]", param.name, i - start),
                    _ => param.name.to_owned(),
                },
                shape: x.shape().to_vec(),
                dtype: x.dtype(),
                device: x.device(),
            });
        }
    }
    facts
}
