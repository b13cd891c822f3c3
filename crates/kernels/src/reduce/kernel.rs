//! Inner loops of reductions: fold a contiguous row, fold rows into a row of accumulators, convert rows.

use super::number::{Bit, Complex, Number, with_elem};
use crate::Elem;
use crate::lanes::in_lanes;

/// Defines an `unsafe fn` whose body is compiled once per instruction set; each call selects with `isa()`.
///
/// The two bracketed lists are the generic parameters with and without their bounds.
macro_rules! by_isa {
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident [$($decl:tt)*] [$($use:tt)*]
     ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis unsafe fn $name<$($decl)*>($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            unsafe fn body<$($decl)*>($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe")]
            unsafe fn avx2<$($decl)*>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the same contract as the outer function.
                unsafe { body::<$($use)*>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            unsafe fn avx512<$($decl)*>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the same contract as the outer function.
                unsafe { body::<$($use)*>($($arg),*) }
            }
            // SAFETY: the same contract as the outer function; `isa()` never exceeds the machine's level.
            unsafe {
                match $crate::isa::isa() {
                    #[cfg(target_arch = "x86_64")]
                    $crate::isa::Isa::Avx512 => avx512::<$($use)*>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::isa::Isa::Avx2 => avx2::<$($use)*>($($arg),*),
                    _ => body::<$($use)*>($($arg),*),
                }
            }
        }
    };
}
pub(crate) use by_isa;

/// An accumulator type whose rows are folded in independent lanes, those of floats in 256 bytes: four of the widest registers.
pub(crate) trait Lane: Number {
    /// Folds a row. The result depends on its elements only: floats are folded in an order that the length gives.
    fn fold<S: Copy, O: Fold<Self>, P: Prepare<S, Self>>(row: &[S]) -> Self;
    /// The fold of a row without NaN by [`Fold::apply_numbers`].
    fn fold_numbers<O: Fold<Self>>(row: &[Self]) -> Self;
    /// False only if no element is NaN. May be true without NaN if infinities of both signs occur or arise in a sum.
    fn may_have_nan(row: &[Self]) -> bool;
}

macro_rules! lanes {
    ($($t:ty, $n:tt $half:tt);* $(;)?) => { $(impl Lane for $t {
        #[inline(always)]
        fn fold<S: Copy, O: Fold<Self>, P: Prepare<S, Self>>(row: &[S]) -> Self {
            let (x, n) = (row.as_ptr(), row.len());
            // SAFETY: `i` is below the length.
            in_lanes!($n; O::neutral(), |a, b| O::apply(a, b); i in 0, n, |lane| O::apply(lane, P::of(unsafe { *x.add(i) })))
        }
        #[inline(always)]
        fn fold_numbers<O: Fold<Self>>(row: &[Self]) -> Self {
            let (x, n) = (row.as_ptr(), row.len());
            // Half the lanes: LLVM does not vectorise the halving of more lanes of a selection.
            // SAFETY: `i` is below the length.
            in_lanes!($half; O::neutral(), |a, b| O::apply_numbers(a, b); i in 0, n, |lane| O::apply_numbers(lane, unsafe { *x.add(i) }))
        }
        #[inline(always)]
        fn may_have_nan(row: &[Self]) -> bool {
            let (x, n) = (row.as_ptr(), row.len());
            // SAFETY: `i` is below the length.
            in_lanes!($n; Self::ZERO, |a, b| a.join_nan(b); i in 0, n, |lane| lane.join_nan(unsafe { *x.add(i) })).is_nan()
        }
    })* };
}
lanes!(Bit, 256 128; f32, 64 32; f64, 32 16; Complex<f32>, 32 16; Complex<f64>, 16 16);

/// Integers have the same fold in any order, so the compiler chooses the lanes. Fixed lanes would become one vector each, whose elements LLVM gathers
/// from several blocks of the row.
macro_rules! any_lanes {
    ($($t:ty),*) => { $(impl Lane for $t {
        #[inline(always)]
        fn fold<S: Copy, O: Fold<Self>, P: Prepare<S, Self>>(row: &[S]) -> Self {
            let (x, mut all) = (row.as_ptr(), O::neutral());
            for i in 0..row.len() {
                // SAFETY: `i` is below the length.
                all = O::apply(all, P::of(unsafe { *x.add(i) }));
            }
            all
        }
        #[inline(always)]
        fn fold_numbers<O: Fold<Self>>(row: &[Self]) -> Self {
            let (x, mut all) = (row.as_ptr(), O::neutral());
            for i in 0..row.len() {
                // SAFETY: `i` is below the length.
                all = O::apply_numbers(all, unsafe { *x.add(i) });
            }
            all
        }
        #[inline(always)]
        fn may_have_nan(_: &[Self]) -> bool {
            false
        }
    })* };
}
any_lanes!(i8, u8, i16, u16, i32, u32, i64, u64);

/// An associative operator with its neutral element.
pub(crate) trait Fold<A>: Copy + 'static {
    fn neutral() -> A;
    fn apply(a: A, b: A) -> A;
    /// Whether rows are folded by `apply_numbers`. A NaN result is then the first NaN of the row.
    const LOOKS_FOR_NAN: bool = false;
    /// `apply` of operands that are not NaN: a single instruction for floats, where `apply` takes four.
    #[inline(always)]
    fn apply_numbers(a: A, b: A) -> A {
        Self::apply(a, b)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Sum;
#[derive(Clone, Copy)]
pub(crate) struct Prod;
#[derive(Clone, Copy)]
pub(crate) struct Min;
#[derive(Clone, Copy)]
pub(crate) struct Max;

macro_rules! sum_prod {
    ($($t:ty, $one:expr, |$a:ident, $b:ident| $sum:expr, $prod:expr);*) => { $(
        impl Fold<$t> for Sum {
            #[inline(always)]
            fn neutral() -> $t { <$t>::ZERO }
            #[inline(always)]
            fn apply($a: $t, $b: $t) -> $t { $sum }
        }
        impl Fold<$t> for Prod {
            #[inline(always)]
            fn neutral() -> $t { $one }
            #[inline(always)]
            fn apply($a: $t, $b: $t) -> $t { $prod }
        }
    )* };
}
sum_prod!(
    i64, 1, |a, b| a.wrapping_add(b), a.wrapping_mul(b);
    f32, 1.0, |a, b| a + b, a * b;
    f64, 1.0, |a, b| a + b, a * b;
    Complex<f32>, Complex { re: 1.0, im: 0.0 }, |a, b| Complex { re: a.re + b.re, im: a.im + b.im },
        Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re };
    Complex<f64>, Complex { re: 1.0, im: 0.0 }, |a, b| Complex { re: a.re + b.re, im: a.im + b.im },
        Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
);

// NaN propagates: a NaN accumulator compares false with everything, and a new NaN replaces it. For complex numbers the first NaN must remain, so a
// new NaN replaces only an accumulator that is not NaN.
impl<A: Number> Fold<A> for Min {
    const LOOKS_FOR_NAN: bool = true;
    #[inline(always)]
    fn neutral() -> A {
        A::TOP
    }
    #[inline(always)]
    fn apply(a: A, b: A) -> A {
        if (b < a) | (b.is_nan() & !(A::IS_COMPLEX && a.is_nan())) {
            b
        } else {
            a
        }
    }
    #[inline(always)]
    fn apply_numbers(a: A, b: A) -> A {
        if b < a { b } else { a }
    }
}
impl<A: Number> Fold<A> for Max {
    const LOOKS_FOR_NAN: bool = true;
    #[inline(always)]
    fn neutral() -> A {
        A::BOTTOM
    }
    #[inline(always)]
    fn apply(a: A, b: A) -> A {
        if (b > a) | (b.is_nan() & !(A::IS_COMPLEX && a.is_nan())) {
            b
        } else {
            a
        }
    }
    #[inline(always)]
    fn apply_numbers(a: A, b: A) -> A {
        if b > a { b } else { a }
    }
}

/// [`Min`] that ignores NaN: NaN is the neutral element, so the result is NaN only without other values.
#[derive(Clone, Copy)]
pub(crate) struct NanMin;
/// [`Max`] that ignores NaN.
#[derive(Clone, Copy)]
pub(crate) struct NanMax;

macro_rules! nan_loses {
    ($($t:ty),*) => { $(
        impl Fold<$t> for NanMin {
            #[inline(always)]
            fn neutral() -> $t { <$t>::NAN }
            #[inline(always)]
            fn apply(a: $t, b: $t) -> $t { if (b < a) | a.is_nan() { b } else { a } }
        }
        impl Fold<$t> for NanMax {
            #[inline(always)]
            fn neutral() -> $t { <$t>::NAN }
            #[inline(always)]
            fn apply(a: $t, b: $t) -> $t { if (b > a) | a.is_nan() { b } else { a } }
        }
    )* };
}
nan_loses!(f32, f64);

/// The loops of one operator over one accumulator type, on untyped pointers.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    /// Folds `n` contiguous values into one: `(values, n, result)`.
    pub fold: unsafe fn(*const u8, usize, *mut u8),
    /// Folds `rows` rows of `n` contiguous values, `stride` bytes apart, into `n` accumulators: `(acc, values, stride, rows, n)`.
    pub rows: unsafe fn(*mut u8, *const u8, isize, usize, usize),
    /// Writes the neutral element `n` times.
    pub fill: unsafe fn(*mut u8, usize),
    /// Running folds, in place or not: `(values, results, n, carry)`. Result `i` is the fold of `carry` and the values up to `i`; the last one
    /// becomes
    /// `carry`.
    pub prefix: unsafe fn(*const u8, *mut u8, usize, *mut u8),
    /// Replaces the values of [`CHAINS`] consecutive rows of length `n` by their running folds, with one carry per row: `(values, n, carries)`.
    pub prefixes: unsafe fn(*mut u8, usize, *mut u8),
}

/// Number of rows whose running folds are computed together, because each step of a single row waits for the one before.
pub(crate) const CHAINS: usize = 8;

impl Kernel {
    pub(crate) const fn of<A: Lane, O: Fold<A>>() -> Kernel {
        Kernel {
            fold: fold::<A, O>,
            rows: rows::<A, O>,
            fill: fill::<A, O>,
            prefix: prefix::<A, O>,
            prefixes: prefixes::<A, O>,
        }
    }
}

by_isa! {
    unsafe fn fold [A: Lane, O: Fold<A>] [A, O] (x: *const u8, n: usize, out: *mut u8) {
        // SAFETY: the caller gives `n` readable values and one writable.
        unsafe { *out.cast::<A>() = fold_row::<A, O>(std::slice::from_raw_parts(x.cast::<A>(), n)) }
    }
}

/// Conversion of an element before it is folded. A trait, because a closure might be compiled without the loop's instruction set.
pub(crate) trait Prepare<S, A>: 'static {
    fn of(x: S) -> A;
}

/// Converts the number to the accumulator's type.
pub(crate) struct AsNumber;

impl<S: Number, A: Number> Prepare<S, A> for AsNumber {
    #[inline(always)]
    fn of(x: S) -> A {
        A::from_number(x)
    }
}

by_isa! {
    /// `fold` of elements that are converted on the way. Same lanes, and so the same result, as converting in a separate pass.
    pub(crate) unsafe fn fold_prepared [S: Number, A: Lane, O: Fold<A>, P: Prepare<S, A>] [S, A, O, P] (x: *const u8, n: usize, out: *mut u8) {
        // SAFETY: the caller gives `n` readable elements and one writable value.
        unsafe { *out.cast::<A>() = fold_row_of::<S, A, O, P>(std::slice::from_raw_parts(x.cast::<S>(), n)) }
    }
}

/// Rows with at most this many elements are folded and searched one element at a time.
pub(crate) const SCALAR_LEN: usize = 7;

/// Folds a row, in an order that depends on its length only, not on the instruction set.
#[inline(always)]
pub(crate) fn fold_row<A: Lane, O: Fold<A>>(x: &[A]) -> A {
    if !O::LOOKS_FOR_NAN || x.len() <= SCALAR_LEN {
        return fold_row_of::<A, A, O, Itself>(x);
    }
    if A::may_have_nan(x)
        && let Some(nan) = x.iter().copied().find(|v| v.is_nan())
    {
        return nan;
    }
    A::fold_numbers::<O>(x)
}

/// The unchanged value.
struct Itself;

impl<A> Prepare<A, A> for Itself {
    #[inline(always)]
    fn of(x: A) -> A {
        x
    }
}

#[inline(always)]
fn fold_row_of<S: Copy, A: Lane, O: Fold<A>, P: Prepare<S, A>>(x: &[S]) -> A {
    match x.len() <= SCALAR_LEN {
        true => x.iter().fold(O::neutral(), |a, &b| O::apply(a, P::of(b))),
        false => A::fold::<S, O, P>(x),
    }
}

by_isa! {
    unsafe fn rows [A: Lane, O: Fold<A>] [A, O] (acc: *mut u8, x: *const u8, stride: isize, rows: usize, n: usize) {
        // SAFETY: the caller gives `n` accumulators and `rows` rows of `n` readable values, which do not overlap the accumulators.
        unsafe {
            let acc = std::slice::from_raw_parts_mut(acc.cast::<A>(), n);
            let row = |r: usize| std::slice::from_raw_parts(x.offset(r as isize * stride).cast::<A>(), n);
            let mut r = 0;
            // Four rows per pass, so that the accumulators are read and written a quarter as often.
            while r + 4 <= rows {
                let (a, b, c, d) = (row(r), row(r + 1), row(r + 2), row(r + 3));
                for j in 0..n {
                    acc[j] = O::apply(acc[j], O::apply(O::apply(a[j], b[j]), O::apply(c[j], d[j])));
                }
                r += 4;
            }
            while r < rows {
                for (acc, &v) in acc.iter_mut().zip(row(r)) {
                    *acc = O::apply(*acc, v);
                }
                r += 1;
            }
        }
    }
}

unsafe fn fill<A: Lane, O: Fold<A>>(acc: *mut u8, n: usize) {
    // SAFETY: the caller gives room for `n` accumulators.
    unsafe { std::slice::from_raw_parts_mut(acc.cast::<std::mem::MaybeUninit<A>>(), n) }
        .iter_mut()
        .for_each(|a| _ = a.write(O::neutral()));
}

unsafe fn prefix<A: Lane, O: Fold<A>>(x: *const u8, y: *mut u8, n: usize, carry: *mut u8) {
    let (x, y, carry) = (x.cast::<A>(), y.cast::<A>(), carry.cast::<A>());
    // SAFETY: the caller gives `n` values, room for `n` results (the values themselves or separate memory), and a separate carry.
    unsafe {
        let mut last = *carry;
        for i in 0..n {
            last = O::apply(last, *x.add(i));
            *y.add(i) = last;
        }
        *carry = last;
    }
}

unsafe fn prefixes<A: Lane, O: Fold<A>>(x: *mut u8, n: usize, carries: *mut u8) {
    let (x, carries) = (x.cast::<A>(), carries.cast::<A>());
    // SAFETY: the caller gives `CHAINS` rows of `n` values and `CHAINS` separate carries.
    unsafe {
        let mut last: [A; CHAINS] = std::array::from_fn(|r| *carries.add(r));
        for i in 0..n {
            for (r, last) in last.iter_mut().enumerate() {
                let at = x.add(r * n + i);
                *last = O::apply(*last, *at);
                *at = *last;
            }
        }
        for (r, last) in last.into_iter().enumerate() {
            *carries.add(r) = last;
        }
    }
}

/// Reads `n` strided elements into a contiguous row: `(src, stride, n, dst)`.
pub(crate) type Load = unsafe fn(*const u8, isize, usize, *mut u8);

by_isa! {
    /// Converts a strided row of `S` to a contiguous one of `A`.
    pub(crate) unsafe fn load [S: Number, A: Number] [S, A] (src: *const u8, stride: isize, n: usize, dst: *mut u8) {
        // SAFETY: the caller gives `n` readable elements and room for `n` results.
        unsafe {
            let dst = dst.cast::<A>();
            if stride == size_of::<S>() as isize {
                let src = src.cast::<S>();
                for i in 0..n {
                    *dst.add(i) = A::from_number(*src.add(i));
                }
            } else {
                for i in 0..n {
                    *dst.add(i) = A::from_number(*src.offset(i as isize * stride).cast::<S>());
                }
            }
        }
    }
}

/// Copies a strided row of items to a contiguous one.
pub(crate) unsafe fn gather<T: Copy>(src: *const u8, stride: isize, n: usize, dst: *mut u8) {
    // SAFETY: the caller gives `n` readable items and room for `n`.
    unsafe {
        if stride == size_of::<T>() as isize {
            return crate::copy::copy_row(src, dst, n * size_of::<T>());
        }
        for i in 0..n {
            *dst.cast::<T>().add(i) = *src.offset(i as isize * stride).cast::<T>();
        }
    }
}

/// The gather of items of one element type.
pub(crate) fn gather_of(elem: Elem) -> Load {
    match elem.size() {
        1 => gather::<u8>,
        2 => gather::<u16>,
        4 => gather::<u32>,
        8 => gather::<u64>,
        _ => gather::<[u64; 2]>,
    }
}

/// Conversion from `src` to the accumulator type `acc`, which is `src` itself, I64, F32, F64 or C128.
pub(crate) fn load_of(src: Elem, acc: Elem) -> Load {
    match acc {
        _ if src == acc => gather_of(src),
        Elem::I64 => with_elem!(src, S => load::<S, i64>),
        Elem::F32 => match src {
            Elem::F16 => load::<half::f16, f32>,
            Elem::BF16 => load::<half::bf16, f32>,
            _ => with_elem!(src, S => load_baseline::<S, f32>),
        },
        Elem::F64 => with_elem!(src, S => load::<S, f64>),
        Elem::C64 => with_elem!(src, S => load_baseline::<S, Complex<f32>>),
        Elem::C128 => with_elem!(src, S => load_baseline::<S, Complex<f64>>),
        Elem::U64 => with_elem!(src, S => load_baseline::<S, u64>),
        _ => unreachable!("{acc:?} accumulates only itself, not {src:?}"),
    }
}

/// [`load`] compiled for the baseline only, for pairs of types too rare to be worth three instances.
unsafe fn load_baseline<S: Number, A: Number>(
    src: *const u8,
    stride: isize,
    n: usize,
    dst: *mut u8,
) {
    for i in 0..n {
        // SAFETY: the caller gives `n` readable elements and room for `n` results.
        unsafe {
            *dst.cast::<A>().add(i) = A::from_number(*src.offset(i as isize * stride).cast::<S>())
        };
    }
}

/// Conversion to truth values.
pub(crate) fn truth_of(src: Elem) -> Load {
    with_elem!(src, S => load::<S, Bit>)
}

by_isa! {
    /// Squared magnitudes, or magnitudes if `ROOT`, of complex numbers: from a strided row of `Complex<S>` to a contiguous one of `A`.
    pub(crate) unsafe fn magnitude [S: Number, A: Number, const ROOT: bool] [S, A, ROOT]
        (src: *const u8, stride: isize, n: usize, dst: *mut u8)
    {
        // SAFETY: the caller gives `n` readable elements and room for `n` results.
        unsafe {
            for i in 0..n {
                let z = *src.offset(i as isize * stride).cast::<Complex<S>>();
                let (re, im) = (z.re.to_f64(), z.im.to_f64());
                *dst.cast::<A>().add(i) = A::from_number(if ROOT { hypot(re, im) } else { re * re + im * im });
            }
        }
    }
}

/// Magnitude of (x, y) without intermediate overflow or underflow; infinite if either is, even if the other is NaN.
#[inline(always)]
fn hypot(x: f64, y: f64) -> f64 {
    libm::hypot(x, y)
}

/// Writes a contiguous row of accumulators to strided elements: `(src, dst, stride, n)`.
pub(crate) type Store = unsafe fn(*const u8, *mut u8, isize, usize);

unsafe fn store<A: Number, O: Number>(src: *const u8, dst: *mut u8, stride: isize, n: usize) {
    for i in 0..n {
        // SAFETY: the caller gives `n` values and `n` writable elements.
        unsafe {
            *dst.offset(i as isize * stride).cast::<O>() = O::from_number(*src.cast::<A>().add(i))
        };
    }
}

unsafe fn scatter<T: Copy>(src: *const u8, dst: *mut u8, stride: isize, n: usize) {
    if stride == size_of::<T>() as isize {
        // SAFETY: the caller gives `n` values and `n` writable elements, which do not overlap.
        return unsafe { crate::copy::copy_row(src, dst, n * size_of::<T>()) };
    }
    for i in 0..n {
        // SAFETY: the caller gives `n` values and `n` writable elements.
        unsafe { *dst.offset(i as isize * stride).cast::<T>() = *src.cast::<T>().add(i) };
    }
}

/// Conversion of bytes to truth values: 1 for nonzero.
pub(crate) fn truth_to_store() -> Store {
    store::<Bit, Bit>
}

/// Conversion from accumulators to the output's type. `None` if the pair needs an intermediate F64 or C128.
pub(crate) fn store_of(acc: Elem, out: Elem) -> Option<Store> {
    Some(match acc {
        _ if acc == out => match acc.size() {
            1 => scatter::<u8>,
            2 => scatter::<u16>,
            4 => scatter::<u32>,
            8 => scatter::<u64>,
            _ => scatter::<[u64; 2]>,
        },
        Elem::Bool => with_elem!(out, O => store::<Bit, O>),
        Elem::I64 => with_elem!(out, O => store::<i64, O>),
        Elem::U64 => with_elem!(out, O => store::<u64, O>),
        Elem::F32 => with_elem!(out, O => store::<f32, O>),
        Elem::F64 => with_elem!(out, O => store::<f64, O>),
        Elem::C64 => with_elem!(out, O => store::<Complex<f32>, O>),
        Elem::C128 => with_elem!(out, O => store::<Complex<f64>, O>),
        _ => return None,
    })
}
