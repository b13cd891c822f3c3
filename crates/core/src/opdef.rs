//! `OpDef`: the definition of one operator, in one struct literal.

use std::any::Any;

use mxnet_kernels::map::InnerLoops;
use mxnet_kernels::reduce::Reduce;
use mxnet_tensor::{Casting, DType, Dims, Layout};
use smallvec::SmallVec;

use crate::args::Param;
use crate::autograd::{GradContext, RowSparse};
use crate::batching::Batch;
use crate::context::{
    CallContext, CompositeContext, EagerContext, InferContext, KernelContext, ViewContext,
};
use crate::error::Result;
use crate::invoke::Call;
use crate::types::Types;
use crate::{Array, Outputs};

pub use crate::declared::{Fold, FpErrors, Pole, Probe};

/// One operator.
pub struct OpDef {
    /// Name in the registry, in messages and in files.
    pub name: &'static str,
    /// Names that it had in earlier versions. Files of graphs may have them, see [`crate::registry::find_in_file`].
    pub old_names: &'static [&'static str],
    /// Increased when the meaning changes: of an attribute, or of the result for the same attributes. Files store the version that wrote them.
    pub version: u32,
    /// Public functions and methods that call it.
    pub surface: &'static [Surface],
    /// Parameters in the order of the signature.
    pub params: &'static [Param],
    /// Docstring: first sentence, then details with shapes, dtypes and sources.
    pub doc: &'static str,
    /// Descriptions of parameters that the name and the usual description of that name do not explain.
    pub about: Words,
    /// Type and description of the results; for elementwise functions they follow from `types`.
    pub returns: Words,
    /// Class and condition of errors that do not follow from the parameters.
    pub raises: Words,
    /// Example for the docstring, a short session at the prompt. The tests run it. It is indented as in the source.
    pub example: &'static str,
    /// Keywords that every call takes in addition to the parameters.
    pub form: Form,
    /// The operator that executes calls which give more than `params`. Its parameters begin with `params`, and it has the documented signature.
    pub full_signature: Option<&'static OpDef>,
    /// Casting rule for `out=`: folds and functions that select elements allow any conversion, as in NumPy.
    pub out_casting: Casting,
    /// What errors call the operator, if users do not know it by its name: the function of which it is a part, or nothing.
    pub reports_as: Option<&'static str>,
    /// Whether `out=` may have a larger shape than the result, which is then broadcast. True for elementwise functions that are composites.
    pub out_broadcasts: bool,
    /// For `real`, `imag` and `isreal`: the result for a Python number, see [`ScalarPart`].
    pub scalar_part: Option<ScalarPart>,
    /// Elementwise operators: decides whether other calls execute this call. Called when a plan is prepared; it may read dtypes, shapes and
    /// attributes.
    pub expands: Option<Expands>,
    /// Handles a Python integer that the dtype to compute in cannot hold; `None`: an error.
    pub on_overflow: Option<fn(&Call, DType) -> Option<OnOverflow>>,
    /// Floating-point errors that it can have.
    pub fp_errors: FpErrors,
    /// Check of the operands' values of an elementwise operator, before anything is computed. It may run later, on another thread.
    pub refuses: Option<Refusal>,
    /// Warnings that do not depend on `seterr` but on shapes or a mask: too few elements. Called by the Python layer.
    pub warns: Option<Warning>,
    /// How Python gets the outputs, as a function of the number of array arguments: `nonzero` always returns a tuple, `where` for one array, `split`
    /// a list.
    pub bundle: fn(usize) -> Bundle,
    /// Signature of a generalised ufunc as NumPy writes it: `(n),(n)->()`. Python then shows an object of type `ufunc`. Empty for other operators.
    pub core_signature: &'static str,
    /// How dtypes promote, and the dtype of the outputs.
    pub types: Types,
    /// Shapes (and, with [`Types::Infer`], dtypes) of the outputs.
    pub infer: InferFn,
    /// How the CPU computes the result.
    pub cpu: Cpu,
    /// Memory order of the outputs, slowest axis first, `None` for C order; for kernels that write to any strides. Called only if an operand is not
    /// in C order.
    pub order: Option<OrderFn>,
    /// Whether the kernel needs new outputs to be filled with zeros. Large blocks come zeroed from the system.
    pub zeroed: bool,
    /// The gradient.
    pub grad: Grad,
    /// The row-sparse gradient of one input, for operators that read few of its rows.
    pub row_grad: Option<RowGrad>,
    /// Array parameters whose elements the operator changes, by position among the array parameters; a list stands for all of its arrays.
    pub mutates: &'static [usize],
    /// Array parameters that say where the operator reads or writes, and how much: positions, offsets, lengths, counts, masks. By position among the
    /// array parameters; a list stands for all of its arrays. The operator checks their elements and then uses them, so if code outside the library
    /// can write to such an array ([`mxnet_tensor::Storage::is_shared`]), the kernel or body gets a copy.
    pub positions: &'static [usize],
    /// Whether a call waits for its outputs: the kernel may refuse values, and the error must be raised at the call.
    pub waits: bool,
    /// How it is folded over an axis, for operators of two arrays with `reduce`, `accumulate`, `reduceat`.
    pub fold: Fold,
    /// What the kernel computes of the elements along the axes in attribute `axis`, if it is that of [`mxnet_kernels::reduce::reduce`]. Graphs then
    /// compute the operand while it is reduced.
    pub reduces: Option<Reduce>,
    /// Whether the kernel is a sequence of short loops, each waiting for the one before, so that threads do not divide it well: recurrent layers,
    /// factorisations. Graphs run such kernels side by side if they are independent.
    pub is_sequential: bool,
    /// Random numbers that it draws.
    pub rng: Rng,
    /// Whether calls must be made as often as the program makes them, because the operator has state, draws numbers of its own or writes files. For
    /// operators of modules.
    pub is_impure: bool,
    /// How all examples of a batch are computed at once (`vmap`).
    pub batch: Batch,
    /// What the Python object of a 0-d result stands for.
    pub zero_dim: ZeroDimResult,
    /// For elementwise operators: type of the ONNX operator that computes the same from the same operands, all of one dtype. `None` if there is none,
    /// or if it has attributes; `mxnet/onnx` in Python has the translations of other operators.
    pub onnx: Option<&'static str>,
    /// How it treats sparse operands.
    pub sparse: Sparse,
    /// How automatic mixed precision treats it.
    pub amp: Amp,
    /// Cost of one call, for the scheduler.
    pub cost: Cost,
    /// Whether its kernel can divide a large call among threads, as elementwise loops always do. If so, the caller may take part instead of leaving
    /// all of it to the workers.
    pub parallel: bool,
    /// Whether its kernel may write output 0 over the elements of input 0. Elementwise loops always may.
    pub in_place: bool,
    /// Inputs and reference for the standard tests.
    pub probe: Probe,
    /// Data for the functions of an operator that is added at run time: a library's handle, a table.
    pub state: Option<&'static (dyn Any + Send + Sync)>,
}

/// How Python gets the outputs of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundle {
    /// One output by itself, several as a tuple.
    Natural,
    /// A tuple, also for a single output.
    Tuple,
    /// A list.
    List,
}

/// Entries of a section of a docstring: name or type, and a description.
pub type Words = &'static [(&'static str, &'static str)];

/// Checks the operands of an elementwise operator that computes in this dtype.
pub type Refusal = fn(&KernelContext, DType) -> Result<()>;

/// Decides whether other calls execute this one, and by which function.
pub type Expands = fn(&Call) -> Option<Expansion>;

/// Executes a call by other calls and writes its `outs`.
pub type Expansion = fn(&Call) -> Result<Outputs>;

/// Handling of a Python integer that the call's integer dtype cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOverflow {
    /// All elements of the result have this value.
    Constant(bool),
    /// The number counts as true.
    True,
}

/// Computes the memory order of the outputs.
pub type OrderFn = fn(&CallContext) -> Option<Dims>;

/// The part of a Python number that `real`, `imag` or `isreal` returns, as a Python object like in NumPy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarPart {
    /// Its real part.
    Real,
    /// Its imaginary part.
    Imag,
    /// Whether the imaginary part is 0.
    IsReal,
}

/// Returns the warning of a call, if there is one.
pub type Warning = fn(&CallContext) -> Result<Option<Warned>>;

/// Text of a warning, by Python's category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warned {
    /// `RuntimeWarning`: about the result.
    Runtime(&'static str),
    /// `DeprecationWarning`: about the form of the call.
    Deprecated(&'static str),
}

/// Shapes of the outputs.
pub type InferFn = fn(&InferContext) -> Result<Inferred>;

/// Shape and dtype inferred for one output.
#[derive(Clone, Debug, PartialEq)]
pub struct OutSpec {
    /// Shape.
    pub shape: Dims,
    /// Data type; `None` if [`OpDef::types`] determines it.
    pub dtype: Option<DType>,
}

/// Result of inference, one entry per output.
pub type Inferred = SmallVec<[OutSpec; 1]>;

/// One output of this shape; [`OpDef::types`] determines its dtype.
pub fn one(shape: impl Into<Dims>) -> Result<Inferred> {
    Ok(SmallVec::from_iter([OutSpec {
        shape: shape.into(),
        dtype: None,
    }]))
}

/// One output of this shape and dtype.
pub fn one_of(shape: impl Into<Dims>, dtype: DType) -> Result<Inferred> {
    Ok(SmallVec::from_iter([OutSpec {
        shape: shape.into(),
        dtype: Some(dtype),
    }]))
}

/// A public name of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// `mx.np.<name>`
    Np(&'static str),
    /// `mx.np.linalg.<name>`
    NpLinalg(&'static str),
    /// `mx.np.fft.<name>`
    NpFft(&'static str),
    /// `mx.np.random.<name>`
    NpRandom(&'static str),
    /// `mx.npx.<name>`
    Npx(&'static str),
    /// `ndarray.<name>(...)`, the first array parameter being the array itself
    Method(&'static str),
}

/// Keywords that every call takes in addition to the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// None.
    ParamsOnly,
    /// `out=None`.
    Out,
    /// `out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True, signature=None`; Python shows an object of type `ufunc`. All
    /// parameters are arrays.
    Ufunc,
}

/// The body of an operator that runs at the call.
pub type EagerBody = fn(&EagerContext) -> Result<Outputs>;

/// How the CPU computes an operator.
#[derive(Clone, Copy)]
pub enum Cpu {
    /// Element by element over broadcast operands, with inner loops of the kernel crate.
    Map(&'static InnerLoops),
    /// One kernel that fills preallocated outputs; it may run later, on another thread.
    Kernel(fn(&KernelContext) -> Result<()>),
    /// As `Kernel`, but it uses only functions that every device has ([`mxnet_tensor::Backend`]), so it runs on all devices.
    AnyDevice(fn(&KernelContext) -> Result<()>),
    /// A view of the first input.
    View(fn(&ViewContext) -> Result<Viewed>),
    /// Runs at the call, after its inputs are ready.
    Eager(EagerBody, Known),
    /// Made of other operators; gradients, tracing and devices come from those.
    Composite(fn(&CompositeContext) -> Result<Outputs>),
}

/// Whether the shapes and dtypes of an eager operator's outputs are known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Yes, by [`OpDef::infer`].
    ByRule,
    /// No, they depend on the values of the operands.
    FromValues,
}

/// What the Python object of a 0-d result stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroDimResult {
    /// A NumPy scalar: in-place operators such as `+=` create a new one.
    Scalar,
    /// A 0-d array, which can be written to, as NumPy's constructors return.
    Array,
    /// The same as the operand: copies and conversions.
    AsOperand,
}

/// Result of a view operator.
#[derive(Clone, Debug)]
pub enum Viewed {
    /// The array itself, unchanged.
    Itself,
    /// No view is possible: this operator, called with the same arguments, computes the result.
    Computed(&'static OpDef),
    /// A view with this layout.
    Shared(Layout),
    /// A view with a layout that the user gave. It is checked: a layout that leaves the storage is an error.
    Checked {
        /// The layout.
        layout: Layout,
        /// Whether the view can be written, if the array can.
        writable: bool,
    },
    /// A read-only view: some elements are repeated, or NumPy makes it read-only.
    Locked(Layout),
    /// A view of the real parts.
    RealParts,
    /// A view of the imaginary parts of complex elements.
    ImaginaryParts,
    /// A copy in C order with this shape.
    Copied(Dims),
    /// A copy in Fortran order with this shape.
    CopiedFortran(Dims),
}

/// The arrays that are saved for the gradient rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Bit `i` stands for input `i`.
    pub inputs: u32,
    /// Bit `i` stands for output `i`.
    pub outputs: u32,
}

impl Keep {
    /// No arrays; rules can read shapes and dtypes.
    pub const NOTHING: Keep = Keep {
        inputs: 0,
        outputs: 0,
    };
    /// All inputs.
    pub const INPUTS: Keep = Keep {
        inputs: u32::MAX,
        outputs: 0,
    };
    /// All outputs.
    pub const OUTPUTS: Keep = Keep {
        inputs: 0,
        outputs: u32::MAX,
    };
    /// All inputs and outputs.
    pub const ALL: Keep = Keep {
        inputs: u32::MAX,
        outputs: u32::MAX,
    };
    /// Whether input `i` is saved. Inputs from 31 on share a bit.
    #[inline]
    pub const fn has_input(self, i: usize) -> bool {
        self.inputs >> (if i < 31 { i } else { 31 }) & 1 == 1
    }

    /// Whether output `i` is saved. Outputs from 31 on share a bit.
    #[inline]
    pub const fn has_output(self, i: usize) -> bool {
        self.outputs >> (if i < 31 { i } else { 31 }) & 1 == 1
    }

    /// These inputs, as a bit mask.
    pub const fn inputs(mask: u32) -> Keep {
        Keep {
            inputs: mask,
            outputs: 0,
        }
    }
}

/// Gradients with respect to the inputs, one entry each; `None` if there is none.
pub type Grads = SmallVec<[Option<Array>; 2]>;

/// A gradient rule: calls operators on cotangents and saved arrays.
pub type GradRule = fn(&GradContext) -> Result<Grads>;

/// A rule for the row-sparse gradient with respect to one input.
#[derive(Clone, Copy)]
pub struct RowGrad {
    /// The function that users call, for messages.
    pub name: &'static str,
    /// The position of the input.
    pub input: usize,
    /// Whether the call asks for a row-sparse gradient. If not, the dense rule runs.
    pub applies: fn(&GradContext) -> bool,
    /// Computes the rows. It can read the arrays that the `Keep` of the operator's gradient names.
    pub rule: fn(&GradContext) -> Result<RowSparse>,
    /// Hint of the error in a trace, where row-sparse gradients are not possible.
    pub instead: &'static str,
}

/// The gradient of an operator.
#[derive(Clone, Copy)]
pub enum Grad {
    /// The arrays to save, and a rule that calls operators.
    Rule(Keep, GradRule),
    /// Two rules. The first calls fused operators that have no gradient themselves. The second is used if gradients of the gradient are needed
    /// (`create_graph`).
    Fused(Keep, GradRule, GradRule),
    /// No gradient flows, for this reason.
    Stop(&'static str),
    /// The gradient follows from the operators that a composite calls.
    Derived,
}

impl Grad {
    /// The arrays to save; `None` if the operator has no rule of its own.
    #[inline]
    pub fn keep(&self) -> Option<Keep> {
        match self {
            Grad::Rule(keep, _) | Grad::Fused(keep, ..) => Some(*keep),
            Grad::Stop(_) | Grad::Derived => None,
        }
    }

    /// The gradient rule to run and the arrays it needs; the only place where one of the two rules is chosen.
    pub fn rule(&self, creates_graph: bool) -> Option<(Keep, GradRule)> {
        match *self {
            Grad::Rule(keep, rule) => Some((keep, rule)),
            Grad::Fused(keep, fused, composed) => {
                Some((keep, if creates_graph { composed } else { fused }))
            }
            Grad::Stop(_) | Grad::Derived => None,
        }
    }
}

/// Random numbers that an operator draws.
#[derive(Clone, Copy, Debug)]
pub enum Rng {
    /// None.
    No,
    /// This many counter blocks, as a function of the number of elements of the first output.
    Blocks(fn(u64) -> u64),
    /// The operators that a composite calls draw them.
    Derived,
}

/// How an operator treats sparse operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparse {
    /// f(0) = 0: the operator is applied to the stored values, the pattern stays.
    KeepsZero,
    /// The result is dense in general.
    Dense,
}

/// How automatic mixed precision treats an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amp {
    /// Runs in half precision.
    Narrow,
    /// Runs in float32.
    WidenToF32,
    /// Runs in the dtype that its inputs promote to. The operators that the body of a composite calls are treated by their own marks.
    Follow,
}

/// Cost of one call on one core, in nanoseconds.
#[derive(Clone, Copy)]
pub enum Cost {
    /// This many nanoseconds per 1024 bytes read and written.
    PerKiB(u32),
    /// Computed from the shapes.
    Of(fn(&InferContext) -> u64),
}

impl OpDef {
    /// Whether it reduces elements of any dtype to truth values.
    pub fn reduces_to_truth(&self) -> bool {
        matches!(self.reduces, Some(Reduce::Any | Reduce::All))
    }

    /// Defaults of all fields; definitions set the others with `..OpDef::DEFAULT`.
    pub const DEFAULT: OpDef = OpDef {
        name: "",
        old_names: &[],
        version: 1,
        surface: &[],
        params: &[],
        doc: "",
        about: &[],
        returns: &[],
        raises: &[],
        example: "",
        form: Form::ParamsOnly,
        full_signature: None,
        out_casting: Casting::SameKind,
        reports_as: None,
        out_broadcasts: false,
        scalar_part: None,
        refuses: None,
        expands: None,
        on_overflow: None,
        fp_errors: FpErrors::DEFAULT,
        zero_dim: ZeroDimResult::Scalar,
        warns: None,
        bundle: |_| Bundle::Natural,
        core_signature: "",
        types: Types::Infer,
        infer: |context| context.same_as(0),
        cpu: Cpu::Composite(|context| {
            Err(crate::Error::internal(
                context.op.name,
                "the operator's entry names no kernel",
            ))
        }),
        zeroed: false,
        grad: Grad::Stop("no gradient is defined"),
        row_grad: None,
        mutates: &[],
        positions: &[],
        order: None,
        waits: false,
        fold: Fold::ORDERED,
        reduces: None,
        rng: Rng::No,
        is_impure: false,
        is_sequential: false,
        batch: Batch::None,
        onnx: None,
        sparse: Sparse::Dense,
        amp: Amp::Follow,
        cost: Cost::PerKiB(100),
        parallel: false,
        in_place: false,
        probe: Probe::STANDARD,
        state: None,
    };

    /// An elementwise function of one array.
    pub const UNARY: OpDef = OpDef {
        params: &[Param::array("x")],
        form: Form::Ufunc,
        infer: |context| context.broadcast(),
        ..OpDef::DEFAULT
    };

    /// An elementwise function of two arrays.
    pub const BINARY: OpDef = OpDef {
        params: &[Param::array("x1"), Param::array("x2")],
        form: Form::Ufunc,
        infer: |context| context.broadcast(),
        ..OpDef::DEFAULT
    };

    /// A view of the first input.
    pub const VIEW: OpDef = OpDef {
        types: Types::First,
        cost: Cost::PerKiB(0),
        zero_dim: ZeroDimResult::AsOperand,
        ..OpDef::DEFAULT
    };

    /// An operator that calls others.
    pub const COMPOSITE: OpDef = OpDef {
        grad: Grad::Derived,
        ..OpDef::DEFAULT
    };

    /// Whether Python shows it as an object of type `ufunc`.
    pub fn is_ufunc(&self) -> bool {
        self.form == Form::Ufunc || !self.core_signature.is_empty()
    }

    /// The array parameters, in the order of the signature.
    pub fn array_params(&self) -> impl Iterator<Item = &'static Param> {
        self.params.iter().filter(|p| p.is_array())
    }

    /// Whether gradients flow through it.
    pub fn is_differentiable(&self) -> bool {
        !matches!(self.grad, Grad::Stop(_))
    }
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
