//! Inner loops of elementwise operators: a function of one element, compiled to loops for each instruction set and type.

use std::mem::MaybeUninit;

use crate::elem::Elem;
use crate::isa::Isa;

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
    /// Whether there is a range of arguments, in which most lie, with a cheaper function. It serves chunks whose arguments all lie in it.
    /// Excludes `HAS_CORRECTION` and `IN_PLACE`.
    const HAS_FAST_RANGE: bool = false;
    fn apply<L: Level>(x: T, p: Params) -> Self::Out;
    /// Whether [`Unary::apply_in_fast_range`] serves this argument.
    #[inline(always)]
    fn is_in_fast_range(_x: T) -> bool {
        false
    }
    /// The result of `apply`, bit for bit, for an argument in that range.
    #[inline(always)]
    fn apply_in_fast_range<L: Level>(x: T, p: Params) -> Self::Out {
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
    /// Whether there is a range of arguments, in which most lie, with a cheaper function. It serves chunks whose arguments all lie in it.
    /// Requires `HEAVY`.
    const HAS_FAST_RANGE: bool = false;
    fn apply<L: Level>(a: T, b: Self::Rhs, p: Params) -> Self::Out;
    /// Whether [`Binary::apply_in_fast_range`] serves these arguments.
    #[inline(always)]
    fn is_in_fast_range(_a: T, _b: Self::Rhs) -> bool {
        false
    }
    /// The result of `apply`, bit for bit, for arguments in that range.
    #[inline(always)]
    fn apply_in_fast_range<L: Level>(a: T, b: Self::Rhs, p: Params) -> Self::Out {
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

/// # Safety
/// `params` holds `count` numbers.
#[inline(always)]
unsafe fn load_params(params: *const f64, count: usize) -> Params {
    let mut p = [0.0; 2];
    for (i, slot) in p.iter_mut().enumerate().take(count) {
        // SAFETY: i < count, and the caller passes `count` numbers.
        *slot = unsafe { *params.add(i) };
    }
    p
}

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn unary_body<L: Level, T: Copy, O: Unary<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: two pointers, two strides, `O::PARAMS` numbers; n elements at each pointer, or one if its stride is 0.
    unsafe {
        let p = load_params(params, O::PARAMS);
        let y = (*ptrs).cast::<O::Out>();
        let x = (*ptrs.add(1)).cast::<T>().cast_const();
        if *strides.add(1) == 0 {
            let value = O::apply::<L>(*x, p);
            let value = if O::HAS_CORRECTION && O::needs_correction(*x) {
                O::correct(*x, value)
            } else {
                value
            };
            for i in 0..n {
                *y.add(i) = value;
            }
        } else if O::IN_PLACE && y.cast::<T>().cast_const() == x {
            let x = x.cast_mut();
            for i in 0..n {
                x.add(i).cast::<O::Out>().write(O::apply::<L>(*x.add(i), p));
            }
        } else if O::HAS_FAST_RANGE {
            for at in (0..n).step_by(SPREAD) {
                let m = SPREAD.min(n - at);
                let (x, y) = (x.add(at), y.add(at));
                let mut all_in_range = true;
                for i in 0..m {
                    all_in_range &= O::is_in_fast_range(*x.add(i));
                }
                if all_in_range {
                    for i in 0..m {
                        *y.add(i) = O::apply_in_fast_range::<L>(*x.add(i), p);
                    }
                } else {
                    for i in 0..m {
                        *y.add(i) = O::apply::<L>(*x.add(i), p);
                    }
                }
            }
        } else {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*x.add(i), p);
            }
            if O::HAS_CORRECTION {
                let mut any = false;
                for i in 0..n {
                    any |= O::needs_correction(*x.add(i));
                }
                if any {
                    correct_row::<T, O>(y, x, n);
                }
            }
        }
    }
}

/// Second pass: replaces the results of arguments that need `correct`.
///
/// # Safety
/// `y` and `x` are valid for `n` elements.
#[cold]
#[inline(never)]
unsafe fn correct_row<T: Copy, O: Unary<T>>(y: *mut O::Out, x: *const T, n: usize) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe {
            if O::needs_correction(*x.add(i)) {
                *y.add(i) = O::correct(*x.add(i), *y.add(i));
            }
        }
    }
}

/// Elements in a tile for a broadcast operand, and in a chunk that is checked for lying in the fast range.
const SPREAD: usize = 256;

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn binary_body<L: Level, T: Copy, O: Binary<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: three pointers and strides, n elements at each pointer, one if the stride is 0.
    // The tiles are filled up to the length that is read from them.
    unsafe {
        let p = load_params(params, O::PARAMS);
        let y = (*ptrs).cast::<O::Out>();
        let a = (*ptrs.add(1)).cast::<T>().cast_const();
        let b = (*ptrs.add(2)).cast::<O::Rhs>().cast_const();
        let (one_a, one_b) = (*strides.add(1) == 0, *strides.add(2) == 0);
        if one_a && one_b {
            let value = O::apply::<L>(*a, *b, p);
            for i in 0..n {
                *y.add(i) = value;
            }
        } else if O::IN_PLACE
            && (!one_a && y.cast_const().cast() == a || !one_b && y.cast_const().cast() == b)
        {
            binary_in_place::<L, T, O>(y, a, b, [one_a, one_b], n, p);
        } else if O::HEAVY {
            let mut tile_a = [MaybeUninit::<T>::uninit(); SPREAD];
            let mut tile_b = [MaybeUninit::<O::Rhs>::uninit(); SPREAD];
            if one_a {
                tile_a.fill(MaybeUninit::new(*a));
            }
            if one_b {
                tile_b.fill(MaybeUninit::new(*b));
            }
            let step = if one_a || one_b || O::HAS_FAST_RANGE {
                SPREAD
            } else {
                n
            };
            let mut at = 0;
            while at < n {
                let m = step.min(n - at);
                let a = if one_a {
                    tile_a.as_ptr().cast::<T>()
                } else {
                    a.add(at)
                };
                let b = if one_b {
                    tile_b.as_ptr().cast::<O::Rhs>()
                } else {
                    b.add(at)
                };
                let y = y.add(at);
                at += m;
                if O::HAS_FAST_RANGE {
                    let mut all_in_range = true;
                    for i in 0..m {
                        all_in_range &= O::is_in_fast_range(*a.add(i), *b.add(i));
                    }
                    if all_in_range && one_a {
                        // Lets the compiler hoist what depends only on this operand.
                        let a = *a;
                        for i in 0..m {
                            *y.add(i) = O::apply_in_fast_range::<L>(a, *b.add(i), p);
                        }
                        continue;
                    }
                    if all_in_range {
                        for i in 0..m {
                            *y.add(i) = O::apply_in_fast_range::<L>(*a.add(i), *b.add(i), p);
                        }
                        continue;
                    }
                }
                for i in 0..m {
                    *y.add(i) = O::apply::<L>(*a.add(i), *b.add(i), p);
                }
            }
        } else if one_a {
            let a = *a;
            for i in 0..n {
                *y.add(i) = O::apply::<L>(a, *b.add(i), p);
            }
        } else if one_b {
            let b = *b;
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*a.add(i), b, p);
            }
        } else {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*a.add(i), *b.add(i), p);
            }
        }
    }
}

/// The loops of [`binary_body`] in which the output `y` is one of the inputs, or both. All of the operator's types are equal.
///
/// # Safety
/// Same as for [`InnerLoop`]; `one` says which inputs are single values, not both; an input that is none is the output.
#[inline(always)]
unsafe fn binary_in_place<L: Level, T: Copy, O: Binary<T>>(
    y: *mut O::Out,
    a: *const T,
    b: *const O::Rhs,
    one: [bool; 2],
    n: usize,
    p: Params,
) {
    let is_a = !one[0] && y.cast_const().cast() == a;
    let is_b = !one[1] && y.cast_const().cast() == b;
    // SAFETY: guaranteed by the caller; an element is read before it is written, through the pointer that writes it.
    unsafe {
        let (ya, yb) = (y.cast::<T>(), y.cast::<O::Rhs>());
        if one[0] {
            let a = *a;
            for i in 0..n {
                *y.add(i) = O::apply::<L>(a, *yb.add(i), p);
            }
        } else if one[1] {
            let b = *b;
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*ya.add(i), b, p);
            }
        } else if is_a && is_b {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*ya.add(i), *yb.add(i), p);
            }
        } else if is_a {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*ya.add(i), *b.add(i), p);
            }
        } else {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*a.add(i), *yb.add(i), p);
            }
        }
    }
}

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn ternary_body<L: Level, T: Copy, O: Ternary<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    _params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: four pointers and strides, n elements at each pointer, one if the stride is 0.
    // The tiles are filled up to the length that is read from them.
    unsafe {
        let y = (*ptrs).cast::<O::Out>();
        let a = (*ptrs.add(1)).cast::<O::First>().cast_const();
        let b = (*ptrs.add(2)).cast::<T>().cast_const();
        let c = (*ptrs.add(3)).cast::<T>().cast_const();
        let (one_a, one_b, one_c) = (
            *strides.add(1) == 0,
            *strides.add(2) == 0,
            *strides.add(3) == 0,
        );
        if one_b && one_c && !one_a {
            // The usual case (clip bounds): both stay in registers.
            let (b, c) = (*b, *c);
            if O::IN_PLACE && y.cast_const().cast() == a {
                let a = y.cast::<O::First>();
                for i in 0..n {
                    *y.add(i) = O::apply::<L>(*a.add(i), b, c);
                }
                return;
            }
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*a.add(i), b, c);
            }
            return;
        }
        let mut tile_a = [MaybeUninit::<O::First>::uninit(); SPREAD];
        let mut tile_b = [MaybeUninit::<T>::uninit(); SPREAD];
        let mut tile_c = [MaybeUninit::<T>::uninit(); SPREAD];
        let fill = n.min(SPREAD);
        if one_a {
            tile_a[..fill].fill(MaybeUninit::new(*a));
        }
        if one_b {
            tile_b[..fill].fill(MaybeUninit::new(*b));
        }
        if one_c {
            tile_c[..fill].fill(MaybeUninit::new(*c));
        }
        let step = if one_a || one_b || one_c { SPREAD } else { n };
        let mut at = 0;
        while at < n {
            let m = step.min(n - at);
            let a = if one_a {
                tile_a.as_ptr().cast::<O::First>()
            } else {
                a.add(at)
            };
            let b = if one_b {
                tile_b.as_ptr().cast::<T>()
            } else {
                b.add(at)
            };
            let c = if one_c {
                tile_c.as_ptr().cast::<T>()
            } else {
                c.add(at)
            };
            let y = y.add(at);
            at += m;
            if O::IN_PLACE && y.cast_const().cast() == a {
                let a = y.cast::<O::First>();
                for i in 0..m {
                    *y.add(i) = O::apply::<L>(*a.add(i), *b.add(i), *c.add(i));
                }
                continue;
            }
            for i in 0..m {
                *y.add(i) = O::apply::<L>(*a.add(i), *b.add(i), *c.add(i));
            }
        }
    }
}

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn binary2_body<L: Level, T: Copy, O: Binary2<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    _params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: four pointers and strides, n elements at each pointer, one if the stride is 0.
    unsafe {
        let q = (*ptrs).cast::<T>();
        let r = (*ptrs.add(1)).cast::<T>();
        let a = (*ptrs.add(2)).cast::<T>().cast_const();
        let b = (*ptrs.add(3)).cast::<T>().cast_const();
        let step_a = usize::from(*strides.add(2) != 0);
        let step_b = usize::from(*strides.add(3) != 0);
        for i in 0..n {
            (*q.add(i), *r.add(i)) = O::apply::<L>(*a.add(i * step_a), *b.add(i * step_b));
        }
    }
}

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn unary2_body<L: Level, T: Copy, O: Unary2<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    _params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: three pointers and strides, n elements at each pointer, one if the stride is 0.
    unsafe {
        let first = (*ptrs).cast::<T>();
        let second = (*ptrs.add(1)).cast::<T>();
        let x = (*ptrs.add(2)).cast::<T>().cast_const();
        let step = usize::from(*strides.add(2) != 0);
        for i in 0..n {
            (*first.add(i), *second.add(i)) = O::apply::<L>(*x.add(i * step));
        }
    }
}

/// Defines for one loop body: a function per instruction set, and the two functions that choose among them.
macro_rules! dispatch {
    ($all:ident, $one:ident, $body:ident, $op:ident, $base:ident, $avx2:ident, $avx512:ident) => {
        /// # Safety
        /// Same as for [`InnerLoop`].
        unsafe fn $base<T: Copy, O: $op<T>>(ptrs: *const *mut u8, strides: *const isize, n: usize, params: *const f64) {
            // SAFETY: same contract.
            unsafe { $body::<Base, T, O>(ptrs, strides, n, params) }
        }

        /// # Safety
        /// Same as for [`InnerLoop`].
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
        unsafe fn $avx2<T: Copy, O: $op<T>>(ptrs: *const *mut u8, strides: *const isize, n: usize, params: *const f64) {
            // SAFETY: same contract.
            unsafe { $body::<Fused, T, O>(ptrs, strides, n, params) }
        }

        /// # Safety
        /// Same as for [`InnerLoop`].
        #[cfg(target_arch = "x86_64")]
        #[target_feature(
            enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
        )]
        unsafe fn $avx512<T: Copy, O: $op<T>>(ptrs: *const *mut u8, strides: *const isize, n: usize, params: *const f64) {
            // SAFETY: same contract.
            unsafe { $body::<Fused, T, O>(ptrs, strides, n, params) }
        }

        /// The inner loop for an instruction set.
        #[cfg(target_arch = "x86_64")]
        pub(crate) fn $all<T: Copy, O: $op<T>>(isa: Isa) -> InnerLoop {
            match isa {
                Isa::Baseline => $base::<T, O>,
                Isa::Avx2 => $avx2::<T, O>,
                Isa::Avx512 => $avx512::<T, O>,
            }
        }

        /// The inner loop for an instruction set.
        #[cfg(not(target_arch = "x86_64"))]
        pub(crate) fn $all<T: Copy, O: $op<T>>(_: Isa) -> InnerLoop {
            $base::<T, O>
        }

        /// The same inner loop for every instruction set, for functions that do not vectorise.
        #[allow(dead_code, reason = "not every shape of operator has scalar-only members")]
        pub(crate) fn $one<T: Copy, O: $op<T>>(_: Isa) -> InnerLoop {
            $base::<T, O>
        }
    };
}
dispatch!(
    unary,
    unary_one,
    unary_body,
    Unary,
    unary_base,
    unary_avx2,
    unary_avx512
);
dispatch!(
    binary,
    binary_one,
    binary_body,
    Binary,
    binary_base,
    binary_avx2,
    binary_avx512
);
dispatch!(
    ternary,
    ternary_one,
    ternary_body,
    Ternary,
    ternary_base,
    ternary_avx2,
    ternary_avx512
);
dispatch!(
    unary2,
    unary2_one,
    unary2_body,
    Unary2,
    unary2_base,
    unary2_avx2,
    unary2_avx512
);
dispatch!(
    binary2,
    binary2_one,
    binary2_body,
    Binary2,
    binary2_base,
    binary2_avx2,
    binary2_avx512
);

/// Declares unary operators: `NAME "name" -> out, cost, params, chooser { [types] |x| -> Type { expression } ... }`.
/// In the expressions `T` is the element type and `L` the CPU [`Level`].
macro_rules! unary_rows {
    ($($(#[$doc:meta])* $name:ident $text:literal, $out:expr, cost $cost:literal, params $np:literal, $pick:ident {
        $([$($t:ident)*] |$x:ident, $p:pat_param| -> $r:ty $e:block)*
    })*) => { $(
        $(#[$doc])*
        pub static $name: $crate::map::InnerLoops = {
            struct Op;
            $($(const _: () = {
                #[allow(dead_code, reason = "not every expression names its element type")]
                type T = $t;
                impl $crate::map::row::Unary<T> for Op {
                    type Out = $r;
                    const PARAMS: usize = $np;
                    const IN_PLACE: bool = $crate::map::row::is_light($cost, $out);
                    #[inline(always)]
                    fn apply<L: $crate::map::row::Level>($x: T, $p: $crate::map::row::Params) -> $r {
                        $e
                    }
                }
            };)*)*
            fn get(isa: $crate::isa::Isa, elem: $crate::Elem) -> Option<$crate::map::InnerLoop> {
                $($(if elem == <$t as $crate::map::row::Stored>::ELEM {
                    return Some($crate::map::row::$pick::<$t, Op>(isa));
                })*)*
                None
            }
            $crate::map::InnerLoops {
                name: $text, outs: 1, ins: 1, out: $out, in_elems: [None; 3], params: $np, cost: $cost,
                in_place: $crate::map::row::is_light($cost, $out) as u8, get,
            }
        };
    )* };
}

/// Declares binary operators like [`unary_rows`], with `heavy true` for expensive functions (see [`Binary::HEAVY`]).
macro_rules! binary_rows {
    ($($(#[$doc:meta])* $name:ident $text:literal, $out:expr, cost $cost:literal, params $np:literal, heavy $heavy:literal,
        $pick:ident {
        $([$($t:ident)*] |$a:ident, $b:ident, $p:pat_param| -> $r:ty $e:block)*
    })*) => { $(
        $(#[$doc])*
        pub static $name: $crate::map::InnerLoops = {
            struct Op;
            $($(const _: () = {
                #[allow(dead_code, reason = "not every expression names its element type")]
                type T = $t;
                impl $crate::map::row::Binary<T> for Op {
                    type Rhs = T;
                    type Out = $r;
                    const PARAMS: usize = $np;
                    const HEAVY: bool = $heavy;
                    const IN_PLACE: bool = !$heavy && $crate::map::row::is_light($cost, $out);
                    #[inline(always)]
                    fn apply<L: $crate::map::row::Level>($a: T, $b: T, $p: $crate::map::row::Params) -> $r {
                        $e
                    }
                }
            };)*)*
            fn get(isa: $crate::isa::Isa, elem: $crate::Elem) -> Option<$crate::map::InnerLoop> {
                $($(if elem == <$t as $crate::map::row::Stored>::ELEM {
                    return Some($crate::map::row::$pick::<$t, Op>(isa));
                })*)*
                None
            }
            $crate::map::InnerLoops {
                name: $text, outs: 1, ins: 2, out: $out, in_elems: [None; 3], params: $np, cost: $cost,
                in_place: if $heavy { 0 } else { 2 * $crate::map::row::is_light($cost, $out) as u8 }, get,
            }
        };
    )* };
}

/// Declares operators on three elements of one type.
macro_rules! ternary_rows {
    ($($(#[$doc:meta])* $name:ident $text:literal, cost $cost:literal {
        $([$($t:ident)*] |$a:ident, $b:ident, $c:ident| $e:block)*
    })*) => { $(
        $(#[$doc])*
        pub static $name: $crate::map::InnerLoops = {
            struct Op;
            $($(impl $crate::map::row::Ternary<$t> for Op {
                type First = $t;
                type Out = $t;
                const IN_PLACE: bool = true;
                #[inline(always)]
                fn apply<L: $crate::map::row::Level>($a: $t, $b: $t, $c: $t) -> $t $e
            })*)*
            fn get(isa: $crate::isa::Isa, elem: $crate::Elem) -> Option<$crate::map::InnerLoop> {
                $($(if elem == <$t as $crate::map::row::Stored>::ELEM {
                    return Some($crate::map::row::ternary::<$t, Op>(isa));
                })*)*
                None
            }
            $crate::map::InnerLoops {
                name: $text, outs: 1, ins: 3, out: $crate::map::OutElem::Same, in_elems: [None; 3], params: 0, cost: $cost,
                in_place: 1, get,
            }
        };
    )* };
}

pub(crate) use {binary_rows, ternary_rows, unary_rows};
