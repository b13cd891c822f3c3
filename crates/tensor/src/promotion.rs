//! Promotion: the result type of several data types, and which conversions a casting rule allows.
//!
//! Two modes share one algorithm and differ in their pair table. In both, Python scalars are weak: they bring a kind,
//! not a size.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::{DType, Kind};

/// Rules by which data types combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Promotion {
    /// Never silently float64: an integer array with a float array gives that float, a Python float with an integer
    /// array gives float32, and so do int64 and uint64 together.
    #[default]
    Mx,
    /// NumPy 2 (NEP 50) exactly.
    NumPy,
}

static PROMOTION: AtomicU8 = AtomicU8::new(Promotion::Mx as u8);

/// The process's promotion mode.
#[inline]
pub fn promotion() -> Promotion {
    if PROMOTION.load(Ordering::Relaxed) == Promotion::Mx as u8 {
        Promotion::Mx
    } else {
        Promotion::NumPy
    }
}

/// Sets the process's promotion mode; returns the one before.
pub fn set_promotion(mode: Promotion) -> Promotion {
    if PROMOTION.swap(mode as u8, Ordering::Relaxed) == Promotion::Mx as u8 {
        Promotion::Mx
    } else {
        Promotion::NumPy
    }
}

/// The type of Python floats and of functions that make floats: float32 in `Mx`, float64 in `NumPy`.
#[inline]
pub fn default_float() -> DType {
    promotion().float()
}

/// The type of Python integers and of functions that count: int64 in both modes.
#[inline]
pub const fn default_int() -> DType {
    DType::I64
}

impl Promotion {
    /// The mode's default floating-point type.
    #[inline]
    pub const fn float(self) -> DType {
        match self {
            Promotion::Mx => DType::F32,
            Promotion::NumPy => DType::F64,
        }
    }

    /// The type of a lone weak scalar of this kind.
    pub const fn default_of(self, kind: Kind) -> DType {
        match kind {
            Kind::Bool => DType::Bool,
            Kind::Integer => default_int(),
            Kind::Float => self.float(),
            Kind::Complex => self.float().complex(),
        }
    }
}

/// An operand's part in promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// An array's data type.
    Array(DType),
    /// A Python scalar's kind. `Weak(Bool)` counts like a bool array, as in NumPy.
    Weak(Kind),
}

/// The data type that two arrays give together.
///
/// `bfloat16`, which NumPy does not have, holds 8 significant bits: with `int8`, `uint8` and `bool` it stays, in
/// `NumPy` mode wider integers lead to float32 (16 bits) and float64; with float16 it gives float32 in both modes.
#[inline]
pub fn promote(a: DType, b: DType, mode: Promotion) -> DType {
    PAIRS[mode as usize][a as usize][b as usize]
}

/// The data type that operands give together; bool if there are none.
///
/// Arrays first: each is promoted with the widest of the highest kind, and the results with each other. So
/// `int16, uint16, float32` give float32, although `int16, uint16` give int32 and that with float32 float64: what
/// NumPy does. The kinds of weak scalars come last.
pub fn result_type(operands: &[Operand], mode: Promotion) -> DType {
    let mut arrays = operands.iter().filter_map(|operand| match *operand {
        Operand::Array(dtype) => Some(dtype),
        Operand::Weak(Kind::Bool) => Some(DType::Bool),
        Operand::Weak(_) => None,
    });
    let weak = operands
        .iter()
        .filter_map(|operand| match *operand {
            Operand::Weak(kind) => Some(kind),
            Operand::Array(_) => None,
        })
        .max();
    let strong = arrays.next().map(|first| {
        let top = arrays
            .clone()
            .fold(first, |top, d| if rank(d) > rank(top) { d } else { top });
        arrays.fold(promote(top, first, mode), |result, d| {
            promote(result, promote(top, d, mode), mode)
        })
    });
    match (strong, weak) {
        (Some(dtype), Some(kind)) => with_weak(dtype, kind, mode),
        (Some(dtype), None) => dtype,
        (None, Some(kind)) => mode.default_of(kind),
        (None, None) => DType::Bool,
    }
}

/// Result type of an array of type `dtype` and a weak scalar of kind `kind`.
#[inline]
pub fn with_weak(dtype: DType, kind: Kind, mode: Promotion) -> DType {
    if kind <= dtype.kind() {
        dtype
    } else if dtype.is_float() {
        dtype.complex()
    } else {
        mode.default_of(kind)
    }
}

const fn rank(dtype: DType) -> usize {
    dtype.kind() as usize * 32 + dtype.size()
}

/// Result of every pair, by mode.
static PAIRS: [[[DType; DType::COUNT]; DType::COUNT]; 2] =
    [pairs(Promotion::Mx), pairs(Promotion::NumPy)];

const fn pairs(mode: Promotion) -> [[DType; DType::COUNT]; DType::COUNT] {
    let mut table = [[DType::Bool; DType::COUNT]; DType::COUNT];
    let mut i = 0;
    while i < DType::COUNT {
        let mut j = 0;
        while j < DType::COUNT {
            table[i][j] = pair(DType::ALL[i], DType::ALL[j], mode);
            j += 1;
        }
        i += 1;
    }
    table
}

const fn pair(a: DType, b: DType, mode: Promotion) -> DType {
    if a as u8 == b as u8 {
        return a;
    }
    // From here on `low` has the lower kind, or the smaller size within the kind.
    let (low, high) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
    match (low.kind(), high.kind()) {
        (Kind::Bool, _) => high,
        (Kind::Integer, Kind::Integer) => integers(low, high, mode),
        (Kind::Integer, _) if matches!(mode, Promotion::Mx) => high,
        (Kind::Integer, Kind::Float) => float_for(low, high),
        (Kind::Float, Kind::Float) if low.size() == high.size() => DType::F32, // float16 with bfloat16
        (Kind::Float, Kind::Float) => high,
        (Kind::Integer, _) => wider_complex(float_for(low, high.real()), high),
        (Kind::Float, _) => wider_complex(low, high),
        _ => high, // both complex
    }
}

const fn wider_complex(float: DType, complex: DType) -> DType {
    if float.size() > complex.real().size() {
        float.complex()
    } else {
        complex
    }
}

/// Two different integer types, the first not wider than the second.
const fn integers(low: DType, high: DType, mode: Promotion) -> DType {
    if low.is_signed() == high.is_signed() || (high.is_signed() && low.size() < high.size()) {
        return high;
    }
    // One is signed, and the unsigned one is at least as wide: the next wider signed type holds both.
    match high.size() {
        1 => DType::I16,
        2 => DType::I32,
        4 => DType::I64,
        _ => mode.float(),
    }
}

/// The smallest float not smaller than `float` with as many significant bits as the integer; float64 for the 64-bit
/// ones, which no float holds.
const fn float_for(integer: DType, float: DType) -> DType {
    let needed = match integer.size() {
        1 => 2,
        2 => 4,
        _ => 8,
    };
    if float.size() >= needed {
        float
    } else if needed == 4 {
        DType::F32
    } else {
        DType::F64
    }
}

/// Which conversions are allowed, from none to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Casting {
    /// The same type only.
    No,
    /// The same type up to byte order; ours always has the machine's, so this is `No`.
    Equiv,
    /// Every value survives (64-bit integers to float64 count, as in NumPy).
    Safe,
    /// Safe, or down within a kind, as float64 to float32. Signed to unsigned is not.
    SameKind,
    /// Anything.
    Unsafe,
}

impl Casting {
    /// NumPy's name, such as `"same_kind"`.
    pub const fn name(self) -> &'static str {
        match self {
            Casting::No => "no",
            Casting::Equiv => "equiv",
            Casting::Safe => "safe",
            Casting::SameKind => "same_kind",
            Casting::Unsafe => "unsafe",
        }
    }
}

impl fmt::Display for Casting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Casting {
    type Err = UnknownCasting;

    /// Reads NumPy's names.
    ///
    /// # Errors
    ///
    /// When the text is none of them.
    fn from_str(name: &str) -> Result<Casting, UnknownCasting> {
        [
            Casting::No,
            Casting::Equiv,
            Casting::Safe,
            Casting::SameKind,
            Casting::Unsafe,
        ]
        .into_iter()
        .find(|casting| casting.name() == name)
        .ok_or(UnknownCasting)
    }
}

/// A text that is no casting rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("casting must be one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe'")]
pub struct UnknownCasting;

/// Whether `casting` allows conversion from one type to the other. Does not depend on the promotion mode.
pub fn can_cast(from: DType, to: DType, casting: Casting) -> bool {
    match casting {
        Casting::No | Casting::Equiv => from == to,
        Casting::Safe => promote(from, to, Promotion::NumPy) == to,
        Casting::SameKind => {
            let signed_to_unsigned =
                from.is_integer() && to.is_integer() && from.is_signed() && !to.is_signed();
            from.kind() <= to.kind() && !signed_to_unsigned
        }
        Casting::Unsafe => true,
    }
}

#[cfg(test)]
mod tests;
