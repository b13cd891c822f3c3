//! `OpDef`: everything there is to know about one operator, in one struct literal.

use std::any::Any;

use mxnet_kernels::map::InnerLoops;
use mxnet_tensor::{Casting, DType, Dims, Layout};
use smallvec::SmallVec;

use crate::args::Param;
use crate::autograd::{GradCx, RowSparse};
use crate::batching::Batch;
use crate::cx::{CallCx, CompositeCx, EagerCx, InferCx, KernelCx, ViewCx};
use crate::error::Result;
use crate::invoke::Call;
use crate::types::Types;
use crate::{Array, Outputs};

pub use crate::declared::{Floats, Fold, Pole, Probe};

/// One operator.
pub struct OpDef {
    /// Name in the registry, in messages and in files.
    pub name: &'static str,
    /// Counts changes of meaning: of an attribute, or of the result for the same attributes. Files say which version wrote them.
    pub version: u32,
    /// Where users find it.
    pub surface: &'static [Surface],
    /// Parameters in the order of the signature.
    pub params: &'static [Param],
    /// First sentence, then details. Shapes, dtypes and sources belong here.
    pub doc: &'static str,
    /// What parameters mean whose name does not say it already, where neither the usual meaning of the name nor `doc` does.
    pub about: Words,
    /// Type and description of what is returned; for functions of every element it follows from `types`.
    pub returns: Words,
    /// Class and condition of the errors that do not follow from the parameters.
    pub raises: Words,
    /// A short session at the prompt, with the margin it has in the source. The tests run it.
    pub example: &'static str,
    /// Which keywords every call takes besides the parameters.
    pub form: Form,
    /// The operator that serves calls which give more than `params`: its parameters start with these, and the public signature is its own.
    pub extended: Option<&'static OpDef>,
    /// How far the dtype of `out=` may be from the result's: folds, and what chooses elements, convert to any, as NumPy's do.
    pub out_casting: Casting,
    /// Whether `out=` must have a dtype that the result's holds safely: functions that choose elements read it into their own, as NumPy's do.
    pub out_held: bool,
    /// Whether `out=` may be larger than the result, which is repeated in it: functions of elements that are made of others.
    pub out_spreads: bool,
    /// What a Python number answers for itself.
    pub of_number: Option<OfNumber>,
    /// Calls of an elementwise operator that other calls carry out. Asked when a call is prepared: it may look at dtypes, shapes and attributes.
    pub expands: Option<Expands>,
    /// What it answers to a Python integer that the dtype which it computes in does not hold; `None`: an error.
    pub beyond: Option<fn(&Call, DType) -> Option<Beyond>>,
    /// What floating-point errors of it are.
    pub floats: Floats,
    /// What refuses operands of an elementwise operator for their values, before anything is computed: it may run later, on another thread.
    pub refuses: Option<Refusal>,
    /// What a call warns of whatever `seterr` says, told by shapes or by a mask: too few elements. Asked where Python calls.
    pub warns: Option<Warning>,
    /// How Python gets the outputs, given the number of array arguments: `nonzero` gives a tuple always, `where` if there is one, `split` a list.
    pub bundle: fn(usize) -> Bundle,
    /// The axes that operands and result of a generalised function share, as NumPy writes them: `(n),(n)->()`. Python sees an object of type `ufunc`
    /// then, too. Empty for all others.
    pub core: &'static str,
    /// How dtypes promote, and the outputs' dtype.
    pub types: Types,
    /// Shapes (and, with [`Types::Infer`], dtypes) of the outputs.
    pub infer: InferFn,
    /// How the CPU computes it.
    pub cpu: Cpu,
    /// How the axes of the outputs lie in memory, slowest first and `None` for C order, of kernels that write to any strides. Asked only where an
    /// operand does not lie in C order.
    pub order: Option<OrderFn>,
    /// Whether new outputs are zeros when the kernel gets them, as large blocks of memory are that come from the system.
    pub zeroed: bool,
    /// The gradient.
    pub grad: Grad,
    /// The row-sparse gradient of one input, of operators that read a few of its rows.
    pub row_grad: Option<RowGrad>,
    /// Positions among the array parameters of those whose elements the operator changes; a list stands for all of its arrays.
    pub mutates: &'static [usize],
    /// Whether a call returns when its outputs are there: the kernel may refuse values, and the error is raised at the call.
    pub waits: bool,
    /// What folding it over an axis means, for operators of two arrays: its `reduce`, `accumulate`, `reduceat`.
    pub fold: Fold,
    /// Random numbers it draws.
    pub rng: Rng,
    /// How all examples of a batch are computed at once (`vmap`).
    pub batch: Batch,
    /// What the Python object of a 0-d result stands for.
    pub zero_dim: ZeroDimResult,
    /// The ONNX operator it is.
    pub onnx: Onnx,
    /// What it does with sparse operands.
    pub sparse: Sparse,
    /// What automatic mixed precision does with it.
    pub amp: Amp,
    /// What one call costs, for the scheduler.
    pub cost: Cost,
    /// Whether its kernel divides the work of one large call among threads, as elementwise loops always do: the caller may
    /// take part instead of handing all of it over.
    pub parallel: bool,
    /// Whether its kernel may write output 0 to the very elements of input 0. Elementwise loops always may.
    pub in_place: bool,
    /// What the standard tests feed it.
    pub probe: Probe,
    /// What the functions of an operator that is added while the program runs need beside their arguments: a library's handle, a table.
    pub state: Option<&'static (dyn Any + Send + Sync)>,
}

/// How Python gets the outputs of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundle {
    /// One output by itself, several as a tuple.
    Natural,
    /// A tuple, of a single output too.
    Tuple,
    /// A list.
    List,
}

/// Entries of a section of a docstring: name or type, and a sentence.
pub type Words = &'static [(&'static str, &'static str)];

/// Looks at the operands of an elementwise operator that will be computed in this dtype.
pub type Refusal = fn(&KernelCx, DType) -> Result<()>;

/// Whether other calls carry this one out, and how.
pub type Expands = fn(&Call) -> Option<Expansion>;

/// Carries a call out by other calls, its `outs` included.
pub type Expansion = fn(&Call) -> Result<Outputs>;

/// What becomes of a Python integer that no integer type of the call holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The result is this everywhere.
    Answer(bool),
    /// The number counts as true.
    True,
}

/// The axes of an output in the order of memory.
pub type OrderFn = fn(&CallCx) -> Option<Dims>;

/// What functions of parts give for a Python number: its own part, as NumPy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfNumber {
    /// Its real part.
    Real,
    /// Its imaginary part.
    Imag,
    /// Whether that is 0.
    IsReal,
}

/// What a call warns of, if there is reason to.
pub type Warning = fn(&CallCx) -> Result<Option<Warned>>;

/// A sentence that warns, by Python's category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warned {
    /// Of what the result is.
    Runtime(&'static str),
    /// Of a form of the call.
    Deprecated(&'static str),
}

/// Shapes of the outputs.
pub type InferFn = fn(&InferCx) -> Result<Inferred>;

/// What inference found for one output.
#[derive(Clone, Debug, PartialEq)]
pub struct OutSpec {
    /// Shape.
    pub shape: Dims,
    /// Data type; `None` leaves it to [`OpDef::types`].
    pub dtype: Option<DType>,
}

/// What inference found, one entry an output.
pub type Inferred = SmallVec<[OutSpec; 1]>;

/// One output of this shape, its dtype by [`OpDef::types`].
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

/// Where users find an operator.
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

/// Which keywords every call takes besides the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// None.
    Plain,
    /// `out=None`.
    Out,
    /// `out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True, signature=None`; Python sees an object of type
    /// `ufunc`. All parameters are arrays.
    Ufunc,
}

/// The body of an operator that runs at the call.
pub type EagerBody = fn(&EagerCx) -> Result<Outputs>;

/// How the CPU computes an operator.
#[derive(Clone, Copy)]
pub enum Cpu {
    /// Element by element, operands broadcast, rows of the kernel crate.
    Map(&'static InnerLoops),
    /// One kernel that fills preallocated outputs; it may run later, on another thread.
    Kernel(fn(&KernelCx) -> Result<()>),
    /// The same, by the devices' own means ([`mxnet_tensor::Backend`]): it runs on every device.
    AnyDevice(fn(&KernelCx) -> Result<()>),
    /// A view of the first input; `None` means the elements must be copied first.
    View(fn(&ViewCx) -> Result<Viewed>),
    /// Runs at the call, after its inputs are ready.
    Eager(EagerBody, Known),
    /// Made of other operators; gradients, tracing and devices come from those.
    Composite(fn(&CompositeCx) -> Result<Outputs>),
}

/// How the shapes and dtypes of the outputs are known of an operator that runs at the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// By [`OpDef::infer`].
    ByRule,
    /// From the values of the operands, so not before it has run.
    FromValues,
}

/// What the Python object of a 0-d result stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroDimResult {
    /// It stands for one of NumPy's scalars: in-place operators make new ones.
    Scalar,
    /// An array to write to, as NumPy's constructors give.
    Array,
    /// What the operand is: copies and conversions.
    AsOperand,
}

/// What a view operator answers.
#[derive(Clone, Debug)]
pub enum Viewed {
    /// The array itself: there is nothing to be seen in another way.
    Itself,
    /// No view shows it: this operator, given the same arguments, computes it.
    Computed(&'static OpDef),
    /// The elements in place, seen through this layout.
    Shared(Layout),
    /// The elements in place, seen through a layout that was not derived from theirs: it is an error if it leaves the storage.
    Checked {
        /// The layout.
        layout: Layout,
        /// Whether they can be written, if those of the array can.
        writable: bool,
    },
    /// The elements in place, not to be written: some of them are repeated, or NumPy has it so.
    Locked(Layout),
    /// The real parts of the elements, in place.
    RealParts,
    /// The imaginary parts of complex elements, in place.
    ImaginaryParts,
    /// The elements, copied in C order, have this shape.
    Copied(Dims),
    /// The elements, copied in Fortran order, have this shape.
    CopiedFortran(Dims),
}

/// What the tape keeps for the gradient rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Bit `i`: input `i`.
    pub inputs: u32,
    /// Bit `i`: output `i`.
    pub outputs: u32,
}

impl Keep {
    /// Shapes and dtypes only.
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
    /// Whether input `i` is kept; those from 31 on share a bit.
    #[inline]
    pub const fn has_input(self, i: usize) -> bool {
        self.inputs >> (if i < 31 { i } else { 31 }) & 1 == 1
    }

    /// Whether output `i` is kept; those from 31 on share a bit.
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

/// Gradients with respect to the inputs, one entry each; `None` where there is none.
pub type Grads = SmallVec<[Option<Array>; 2]>;

/// A gradient rule: calls operators on cotangents and kept arrays.
pub type GradRule = fn(&GradCx) -> Result<Grads>;

/// A rule for the gradient with respect to one input whose rows are zero but for some.
#[derive(Clone, Copy)]
pub struct RowGrad {
    /// The function that users call, for messages.
    pub name: &'static str,
    /// The position of the input.
    pub input: usize,
    /// Whether the call asks for it. If not, the gradient is dense.
    pub applies: fn(&GradCx) -> bool,
    /// Computes the rows. It reads what the `Keep` of the operator's gradient names.
    pub rule: fn(&GradCx) -> Result<RowSparse>,
    /// What a caller does where rows are not possible, in a trace: the hint of the error.
    pub instead: &'static str,
}

/// The gradient of an operator.
#[derive(Clone, Copy)]
pub enum Grad {
    /// A rule that calls operators, and what it needs.
    Rule(Keep, GradRule),
    /// Two rules. The first calls operators with kernels of their own that have no gradient themselves; the second is taken where the gradient's own
    /// gradient is asked for (`create_graph`).
    Fused(Keep, GradRule, GradRule),
    /// No gradient flows, for this reason.
    Stop(&'static str),
    /// The operators it is made of have theirs.
    Derived,
}

impl Grad {
    /// What the tape keeps; `None` if no rule of the operator's own sends gradients on.
    #[inline]
    pub fn keep(&self) -> Option<Keep> {
        match self {
            Grad::Rule(keep, _) | Grad::Fused(keep, ..) => Some(*keep),
            Grad::Stop(_) | Grad::Derived => None,
        }
    }

    /// The rule, and what it needs. The one place where it is chosen.
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

/// Random numbers an operator draws.
#[derive(Clone, Copy, Debug)]
pub enum Rng {
    /// None.
    No,
    /// This many counter blocks, given the number of elements of the first output.
    Blocks(fn(u64) -> u64),
    /// The operators it is made of draw them.
    Derived,
}

/// The ONNX operator an operator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onnx {
    /// One node of this type, since this opset.
    Node {
        /// Operator type.
        ty: &'static str,
        /// First opset that has it in this form.
        since: u32,
    },
    /// Made of others at export.
    Composite,
    /// Nothing in ONNX does this.
    None,
}

/// What an operator does with sparse operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparse {
    /// f(0) = 0: stored values are mapped, the pattern stays.
    KeepsZero,
    /// The result is dense in general.
    Dense,
}

/// What automatic mixed precision does with an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amp {
    /// Runs in half precision.
    Narrow,
    /// Runs in float32.
    WidenToF32,
    /// Runs in the widest type among its inputs.
    Follow,
}

/// What one call costs on one core, in nanoseconds.
#[derive(Clone, Copy)]
pub enum Cost {
    /// This many nanoseconds per 1024 bytes read and written.
    PerKiB(u32),
    /// Computed from the shapes.
    Of(fn(&InferCx) -> u64),
}

impl OpDef {
    /// What most operators have in common; entries name the rest.
    pub const DEFAULT: OpDef = OpDef {
        name: "",
        version: 1,
        surface: &[],
        params: &[],
        doc: "",
        about: &[],
        returns: &[],
        raises: &[],
        example: "",
        form: Form::Plain,
        extended: None,
        out_casting: Casting::SameKind,
        out_held: false,
        out_spreads: false,
        of_number: None,
        refuses: None,
        expands: None,
        beyond: None,
        floats: Floats::PLAIN,
        zero_dim: ZeroDimResult::Scalar,
        warns: None,
        bundle: |_| Bundle::Natural,
        core: "",
        types: Types::Infer,
        infer: |cx| cx.same_as(0),
        cpu: Cpu::Composite(|cx| {
            Err(crate::Error::internal(
                cx.op.name,
                "the operator's entry names no kernel",
            ))
        }),
        zeroed: false,
        grad: Grad::Stop("no gradient is defined"),
        row_grad: None,
        mutates: &[],
        order: None,
        waits: false,
        fold: Fold::ORDERED,
        rng: Rng::No,
        batch: Batch::None,
        onnx: Onnx::None,
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
        infer: |cx| cx.broadcast(),
        ..OpDef::DEFAULT
    };

    /// An elementwise function of two arrays.
    pub const BINARY: OpDef = OpDef {
        params: &[Param::array("x1"), Param::array("x2")],
        form: Form::Ufunc,
        infer: |cx| cx.broadcast(),
        ..OpDef::DEFAULT
    };

    /// Another way to see the first input's elements.
    pub const VIEW: OpDef = OpDef {
        types: Types::First,
        cost: Cost::PerKiB(0),
        zero_dim: ZeroDimResult::AsOperand,
        ..OpDef::DEFAULT
    };

    /// Made of other operators.
    pub const COMPOSITE: OpDef = OpDef {
        grad: Grad::Derived,
        onnx: Onnx::Composite,
        ..OpDef::DEFAULT
    };

    /// Whether Python sees an object of type `ufunc`.
    pub fn is_ufunc(&self) -> bool {
        self.form == Form::Ufunc || !self.core.is_empty()
    }

    /// Positions (in the signature) of the array parameters.
    pub fn array_params(&self) -> impl Iterator<Item = &'static Param> {
        self.params.iter().filter(|p| p.is_array())
    }

    /// The family, for tables: the first word of the registry slice it is listed in is derived by the registry.
    pub fn is_differentiable(&self) -> bool {
        !matches!(self.grad, Grad::Stop(_))
    }
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
