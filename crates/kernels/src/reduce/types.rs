//! The accumulator type of a reduction, and the loops that load, fold and store it.

use super::fold::Reduce;
use super::kernel::{
    AsNumber, Fold, Kernel, Load, Max, Min, NanMax, NanMin, Prepare, Prod, Store, Sum,
    fold_prepared, load_of, magnitude, store_of, truth_of, truth_to_store,
};
use super::number::{Bit, Complex, Number};
use crate::Elem;

/// Accumulator type with the loops that load, fold and store.
pub(crate) struct Types {
    pub acc: Elem,
    pub load: Load,
    /// A second pass over a loaded block.
    pub polish: Option<unsafe fn(*mut u8, usize)>,
    /// Whether truth values are loaded, which `polish` converts to integers.
    pub counts: bool,
    pub kernel: Kernel,
    /// Folds contiguous source elements directly where loading them first would be an additional pass.
    pub direct_fold: Option<unsafe fn(*const u8, usize, *mut u8)>,
    pub store: Store,
}

impl Types {
    pub(crate) fn new(op: Reduce, src: Elem, out: Elem) -> Types {
        use Elem::*;
        let float = |e| matches!(e, F16 | BF16 | F32 | F64 | C64 | C128);
        let complex = |e| matches!(e, C64 | C128);
        let op = if float(src) { op } else { op.without_nan() };
        let wide = matches!(out, F64 | C128);
        let mut polish = None;
        let sum_acc = match src {
            C64 if !wide => C64,
            C64 | C128 => C128,
            F64 => F64,
            F16 | BF16 | F32 if !wide => F32,
            F16 | BF16 | F32 => F64,
            _ if float(out) || op == Reduce::Mean => F64,
            _ => I64,
        };
        let (acc, load): (Elem, Load) = match op {
            Reduce::Sum | Reduce::Prod | Reduce::Mean => (sum_acc, load_of(src, sum_acc)),
            Reduce::NanSum => {
                polish = Some(match sum_acc {
                    F32 => nan_to_zero::<f32>,
                    F64 => nan_to_zero::<f64>,
                    C64 => nan_to_zero::<Complex<f32>>,
                    _ => nan_to_zero::<Complex<f64>>,
                } as unsafe fn(*mut u8, usize));
                (sum_acc, load_of(src, sum_acc))
            }
            // The maximum (minimum) of the unconverted bytes is nonzero if any (all) are true; `store` converts it to 0 or 1.
            Reduce::Any | Reduce::All if src == Bool => (Bool, load_of(Bool, Bool)),
            Reduce::Any | Reduce::All => (Bool, truth_of(src)),
            Reduce::CountNonzero => (I64, truth_of(src)),
            Reduce::Min | Reduce::Max | Reduce::NanMin | Reduce::NanMax => {
                let acc = match src {
                    F16 | BF16 => F32,
                    I8 | I16 | I32 | U8 | U16 | U32 if out != src => I64,
                    _ => src,
                };
                (
                    acc,
                    if src == Bool {
                        truth_of(src)
                    } else {
                        load_of(src, acc)
                    },
                )
            }
            Reduce::SumSquares | Reduce::SumAbs if complex(src) => {
                let root = op == Reduce::SumAbs;
                match (sum_acc, src) {
                    (C64, _) => (
                        F32,
                        if root {
                            magnitude::<f32, f32, true>
                        } else {
                            magnitude::<f32, f32, false>
                        },
                    ),
                    (_, C64) => (
                        F64,
                        if root {
                            magnitude::<f32, f64, true>
                        } else {
                            magnitude::<f32, f64, false>
                        },
                    ),
                    _ => (
                        F64,
                        if root {
                            magnitude::<f64, f64, true>
                        } else {
                            magnitude::<f64, f64, false>
                        },
                    ),
                }
            }
            Reduce::SumSquares | Reduce::SumAbs => {
                let root = op == Reduce::SumAbs;
                polish = Some(match sum_acc {
                    F32 => {
                        if root {
                            each::<f32, Abs>
                        } else {
                            each::<f32, Square>
                        }
                    }
                    F64 => {
                        if root {
                            each::<f64, Abs>
                        } else {
                            each::<f64, Square>
                        }
                    }
                    _ => {
                        if root {
                            each::<i64, Abs>
                        } else {
                            each::<i64, Square>
                        }
                    }
                } as unsafe fn(*mut u8, usize));
                (sum_acc, load_of(src, sum_acc))
            }
        };
        if op == Reduce::CountNonzero {
            polish = Some(widen_truth);
        }
        let kernel = match op {
            Reduce::Prod => arithmetic::<Prod>(acc),
            Reduce::NanMin => nan_loses::<NanMin>(acc),
            Reduce::NanMax => nan_loses::<NanMax>(acc),
            Reduce::Min | Reduce::All => ordering::<Min>(acc),
            Reduce::Max | Reduce::Any => ordering::<Max>(acc),
            _ => arithmetic::<Sum>(acc),
        };
        // Accumulators smaller than 32 bits are only chosen if the output has the same type.
        let store = match op {
            Reduce::Any | Reduce::All if out == Bool => truth_to_store(),
            _ => store_of(acc, out).expect("a narrow accumulator has its output's type"),
        };
        Types {
            acc,
            load,
            polish,
            counts: op == Reduce::CountNonzero,
            direct_fold: direct_fold(op, src, acc),
            kernel,
            store,
        }
    }
}

/// The direct fold of contiguous elements for common pairs of operator and type that need a conversion.
fn direct_fold(op: Reduce, src: Elem, acc: Elem) -> Option<unsafe fn(*const u8, usize, *mut u8)> {
    macro_rules! sums {
        ($p:ty; $($elem:ident $s:ty, $acc:ident $a:ty);*) => {
            match (src, acc) {
                $((Elem::$elem, Elem::$acc) => Some(fold_prepared::<$s, $a, Sum, $p> as unsafe fn(*const u8, usize, *mut u8)),)*
                _ => None,
            }
        };
    }
    match op {
        Reduce::Sum => {
            sums!(AsNumber; I8 i8, I64 i64; I16 i16, I64 i64; I32 i32, I64 i64; U8 u8, I64 i64; U16 u16, I64 i64; U32 u32, I64 i64)
        }
        Reduce::SumSquares => sums!(Square; F32 f32, F32 f32; F64 f64, F64 f64),
        Reduce::NanSum => sums!(Numbers; F32 f32, F32 f32; F64 f64, F64 f64),
        _ => None,
    }
}

/// Replaces NaN by zero.
struct Numbers;

impl<A: Number> Prepare<A, A> for Numbers {
    #[inline(always)]
    fn of(x: A) -> A {
        if x.is_nan() { A::ZERO } else { x }
    }
}

impl Prepare<f32, f32> for Square {
    #[inline(always)]
    fn of(x: f32) -> f32 {
        x * x
    }
}

impl Prepare<f64, f64> for Square {
    #[inline(always)]
    fn of(x: f64) -> f64 {
        x * x
    }
}

fn arithmetic<O>(acc: Elem) -> Kernel
where
    O: Fold<i64> + Fold<f32> + Fold<f64>,
    O: Fold<Complex<f32>> + Fold<Complex<f64>>,
{
    match acc {
        Elem::F32 => Kernel::of::<f32, O>(),
        Elem::F64 => Kernel::of::<f64, O>(),
        Elem::C64 => Kernel::of::<Complex<f32>, O>(),
        Elem::C128 => Kernel::of::<Complex<f64>, O>(),
        _ => Kernel::of::<i64, O>(),
    }
}

/// The kernel of [`NanMin`] or [`NanMax`] for types with NaN; f16 and bf16 accumulate in f32.
fn nan_loses<O: Fold<f32> + Fold<f64>>(acc: Elem) -> Kernel {
    match acc {
        Elem::F64 => Kernel::of::<f64, O>(),
        _ => Kernel::of::<f32, O>(),
    }
}

/// The kernel of [`Min`] or [`Max`].
fn ordering<O: Extremum>(acc: Elem) -> Kernel {
    O::kernel(acc)
}

trait Extremum {
    fn kernel(acc: Elem) -> Kernel;
}

macro_rules! extremum {
    ($($o:ty),*) => { $(impl Extremum for $o {
        fn kernel(acc: Elem) -> Kernel {
            match acc {
                Elem::Bool => Kernel::of::<Bit, $o>(),
                Elem::I8 => Kernel::of::<i8, $o>(),
                Elem::I16 => Kernel::of::<i16, $o>(),
                Elem::I32 => Kernel::of::<i32, $o>(),
                Elem::I64 => Kernel::of::<i64, $o>(),
                Elem::U8 => Kernel::of::<u8, $o>(),
                Elem::U16 => Kernel::of::<u16, $o>(),
                Elem::U32 => Kernel::of::<u32, $o>(),
                Elem::U64 => Kernel::of::<u64, $o>(),
                Elem::F64 => Kernel::of::<f64, $o>(),
                Elem::C64 => Kernel::of::<Complex<f32>, $o>(),
                Elem::C128 => Kernel::of::<Complex<f64>, $o>(),
                // f16 and bf16 accumulate in f32.
                _ => Kernel::of::<f32, $o>(),
            }
        }
    })* };
}
extremum!(Min, Max);

trait Each<A> {
    fn of(x: A) -> A;
}
struct Square;
struct Abs;
macro_rules! each {
    ($($t:ty, |$x:ident| $square:expr, $abs:expr);*) => { $(
        impl Each<$t> for Square { #[inline(always)] fn of($x: $t) -> $t { $square } }
        impl Each<$t> for Abs { #[inline(always)] fn of($x: $t) -> $t { $abs } }
    )* };
}
each!(i64, |x| x.wrapping_mul(x), x.wrapping_abs(); f32, |x| x * x, x.abs(); f64, |x| x * x, x.abs());

super::kernel::by_isa! {
    unsafe fn each [A: Copy, E: Each<A>] [A, E] (x: *mut u8, n: usize) {
        // SAFETY: the caller gives `n` loaded values.
        unsafe { std::slice::from_raw_parts_mut(x.cast::<A>(), n) }.iter_mut().for_each(|x| *x = E::of(*x));
    }
}

super::kernel::by_isa! {
    unsafe fn nan_to_zero [A: Number] [A] (x: *mut u8, n: usize) {
        // SAFETY: the caller gives `n` loaded values.
        unsafe { std::slice::from_raw_parts_mut(x.cast::<A>(), n) }
            .iter_mut()
            .for_each(|x| *x = Numbers::of(*x));
    }
}

/// Converts the `n` truth values at the start of a block to `n` 64-bit integers, in place.
unsafe fn widen_truth(x: *mut u8, n: usize) {
    for i in (0..n).rev() {
        // SAFETY: the caller's block has room for `n` integers. The loop goes backwards, so no byte is overwritten before it is read.
        unsafe { *x.cast::<i64>().add(i) = *x.add(i) as i64 };
    }
}
