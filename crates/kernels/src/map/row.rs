//! Inner loops of elementwise operators: a function of one element, compiled to loops for each instruction set and type.

mod declare;
mod loops;

use crate::elem::Elem;
use crate::isa::Isa;

pub(crate) use declare::{binary_rows, ternary_rows, unary_rows};
pub(crate) use loops::{binary, binary_one, binary2, ternary, unary, unary_one, unary2};

/// The inner loop of an elementwise operator.
///
/// `ptrs` are the outputs, then the inputs; `strides` their byte strides in the same order; `n` the number of elements; `params` the operator's
/// parameters. The stride of an output is its element size; that of an input is its element size, or 0 for a single value. Outputs overlap no input,
/// except that an output may be exactly one of the first [`InnerLoops::in_place`] inputs. The driver handles everything else with tiles.
///
/// # Safety
/// Every pointer is valid for `n` elements at its stride and aligned for its element type; `params` holds as many numbers as the
/// operator takes; the CPU has the instruction set that the function was chosen for.
pub type InnerLoop =
    unsafe fn(ptrs: *const *mut u8, strides: *const isize, n: usize, params: *const f64);

/// Element type of the outputs as a function of the compute type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutElem {
    /// The compute type.
    Same,
    /// Boolean.
    Bool,
    /// The compute type; for a complex type, that of its real part.
    Real,
    /// Always this type.
    Fixed(Elem),
}

/// An elementwise operator: its inner loops for every instruction set and compute type.
#[derive(Clone, Copy, Debug)]
pub struct InnerLoops {
    /// The operator's name, as NumPy spells it.
    pub name: &'static str,
    /// Number of outputs.
    pub outs: u8,
    /// Number of inputs.
    pub ins: u8,
    /// Element type of all outputs.
    pub out: OutElem,
    /// Types of those inputs that do not have the compute type: `where`'s condition, `ldexp`'s exponent.
    pub in_elems: [Option<Elem>; 3],
    /// Length of `params`.
    pub params: u8,
    /// Time for one element, in units of one f32 addition; decides whether several threads pay.
    pub cost: u8,
    /// An output may be any of this many first inputs (`x += y`): there are loops for this case. The loops for separate operands would be correct,
    /// but fall back to one element at a time when the compiler's overlap check fails.
    pub in_place: u8,
    /// The inner loop for an instruction set and a compute type. `None` if the operator is not defined on that type.
    pub get: fn(Isa, Elem) -> Option<InnerLoop>,
}

impl InnerLoops {
    /// Whether the operator is defined on `compute`.
    pub fn supports(&self, compute: Elem) -> bool {
        (self.get)(Isa::Baseline, compute).is_some()
    }

    /// Element type of the outputs for a compute type.
    pub const fn out_elem(&self, compute: Elem) -> Elem {
        match (self.out, compute) {
            (OutElem::Same, e) => e,
            (OutElem::Bool, _) => Elem::Bool,
            (OutElem::Real, Elem::C64) => Elem::F32,
            (OutElem::Real, Elem::C128) => Elem::F64,
            (OutElem::Real, e) => e,
            (OutElem::Fixed(e), _) => e,
        }
    }

    /// Element type that the inner loop reads as input `i` for a compute type.
    pub const fn in_elem(&self, i: usize, compute: Elem) -> Elem {
        match self.in_elems[i] {
            Some(e) => e,
            None => compute,
        }
    }
}

/// Whether extra loops for in-place operation pay: the operator is cheap and all of its types are equal.
pub(crate) const fn is_light(cost: u8, out: OutElem) -> bool {
    cost <= 2 && matches!(out, OutElem::Same)
}

/// Complex numbers of two f32.
#[allow(
    non_camel_case_types,
    reason = "element types are written in lower case in the operator tables"
)]
pub(crate) type c64 = num_complex::Complex<f32>;
/// Complex numbers of two f64.
#[allow(
    non_camel_case_types,
    reason = "element types are written in lower case in the operator tables"
)]
pub(crate) type c128 = num_complex::Complex<f64>;

/// A stored boolean. Foreign buffers may hold bytes other than 0 and 1, which Rust's `bool` must never see.
#[allow(
    non_camel_case_types,
    reason = "element types are written in lower case in the operator tables"
)]
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct bit(u8);

impl bit {
    #[inline(always)]
    pub(crate) fn get(self) -> bool {
        self.0 != 0
    }
}

/// The element that a Rust type stores.
pub(crate) trait Stored: Copy {
    const ELEM: Elem;
}

macro_rules! stored {
    ($($t:ty = $e:ident),*) => { $(impl Stored for $t { const ELEM: Elem = Elem::$e; })* };
}
stored!(
    bit = Bool,
    i8 = I8,
    i16 = I16,
    i32 = I32,
    i64 = I64,
    u8 = U8,
    u16 = U16,
    u32 = U32,
    u64 = U64
);
stored!(f32 = F32, f64 = F64, c64 = C64, c128 = C128);

/// CPU features that an inner loop may assume.
pub(crate) trait Level: 'static {
    /// Whether fused multiply-add is one instruction.
    const FMA: bool;
}

/// The features of the build's target.
pub(crate) struct Base;
/// AVX2 and FMA, or higher.
pub(crate) struct Fused;

impl Level for Base {
    const FMA: bool = cfg!(target_arch = "aarch64");
}
impl Level for Fused {
    const FMA: bool = true;
}

/// The operator's parameters, read once per row.
pub(crate) type Params = [f64; 2];

/// A function of one element.
pub(crate) trait Unary<T: Copy> {
    type Out: Copy;
    const PARAMS: usize;
    /// Whether there is a loop in which the output is the input.
    const IN_PLACE: bool = false;
    /// Whether some arguments need a slow path that would keep the loop from vectorising. Their results are corrected in a second pass.
    const HAS_CORRECTION: bool = false;
    /// Whether there is a part of the domain, in which most arguments lie, with a cheaper function. It serves chunks whose arguments all lie in it.
    /// Excludes `HAS_CORRECTION` and `IN_PLACE`.
    const HAS_SUBDOMAIN: bool = false;
    fn apply<L: Level>(x: T, p: Params) -> Self::Out;
    /// Whether [`Unary::apply_in_subdomain`] serves this argument.
    #[inline(always)]
    fn is_in_subdomain(_x: T) -> bool {
        false
    }
    /// The result of `apply`, bit for bit, for an argument in that part of the domain.
    #[inline(always)]
    fn apply_in_subdomain<L: Level>(x: T, p: Params) -> Self::Out {
        Self::apply::<L>(x, p)
    }
    /// Whether the result of `apply` may be wrong for this argument.
    #[inline(always)]
    fn needs_correction(_x: T) -> bool {
        false
    }
    /// The correct result for such an argument, given the result of `apply`.
    fn correct(_x: T, y: Self::Out) -> Self::Out {
        y
    }
}

/// A function of two elements; the second may have another type (`ldexp`).
pub(crate) trait Binary<T: Copy> {
    type Rhs: Copy;
    type Out: Copy;
    const PARAMS: usize;
    /// Whether the function is expensive: then there is one vector loop instead of three, and broadcast operands are first copied into a small tile.
    const HEAVY: bool;
    /// Whether there are loops in which the output is one of the inputs, or both. Not for `HEAVY`.
    const IN_PLACE: bool = false;
    /// Whether there is a part of the domain, in which most arguments lie, with a cheaper function. It serves chunks whose arguments all lie in it.
    /// Requires `HEAVY`.
    const HAS_SUBDOMAIN: bool = false;
    fn apply<L: Level>(a: T, b: Self::Rhs, p: Params) -> Self::Out;
    /// Whether [`Binary::apply_in_subdomain`] serves these arguments.
    #[inline(always)]
    fn is_in_subdomain<L: Level>(_a: T, _b: Self::Rhs) -> bool {
        false
    }
    /// The result of `apply`, bit for bit, for arguments in that part of the domain.
    #[inline(always)]
    fn apply_in_subdomain<L: Level>(a: T, b: Self::Rhs, p: Params) -> Self::Out {
        Self::apply::<L>(a, b, p)
    }
}

/// A function of three elements; the first may have another type (`where`).
pub(crate) trait Ternary<T: Copy> {
    type First: Copy;
    type Out: Copy;
    /// Whether there is a loop in which the output is the first input.
    const IN_PLACE: bool = false;
    fn apply<L: Level>(a: Self::First, b: T, c: T) -> Self::Out;
}

/// A function of two elements with two results.
pub(crate) trait Binary2<T: Copy> {
    fn apply<L: Level>(a: T, b: T) -> (T, T);
}

/// A function of one element with two results.
pub(crate) trait Unary2<T: Copy> {
    fn apply<L: Level>(x: T) -> (T, T);
}
