//! Type promotion: the result type of several data types, and the conversions that casting rules allow.
//!
//! Two modes share one algorithm and have different tables of pairs. In both modes Python scalars are weak: their kind matters, not their size.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::{DType, Kind};

/// A set of promotion rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Promotion {
    /// Never float64 unless an operand is: an integer array with a float array gives that float type; a Python float with an integer array gives
    /// float32, and so do int64 with uint64.
    #[default]
    Mx,
    /// The rules of NumPy 2 (NEP 50).
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

/// Sets the process's promotion mode. Returns the previous one.
pub fn set_promotion(mode: Promotion) -> Promotion {
    if PROMOTION.swap(mode as u8, Ordering::Relaxed) == Promotion::Mx as u8 {
        Promotion::Mx
    } else {
        Promotion::NumPy
    }
}

/// Default float type, for Python floats and functions that create floats: float32 in `Mx`, float64 in `NumPy`.
#[inline]
pub fn default_float() -> DType {
    promotion().float()
}

/// Default integer type, for Python integers and functions that count: int64 in both modes.
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

    /// The type of a weak scalar of this kind without other operands.
    pub const fn default_of(self, kind: Kind) -> DType {
        match kind {
            Kind::Bool => DType::Bool,
            Kind::Integer => default_int(),
            Kind::Float => self.float(),
            Kind::Complex => self.float().complex(),
        }
    }
}

/// An operand in type promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// An array's data type.
    Array(DType),
    /// A Python scalar's kind. `Weak(Bool)` counts as a boolean array, as in NumPy.
    Weak(Kind),
}

/// The data type that two arrays promote to.
///
/// `bfloat16`, which NumPy does not have, has 8 significant bits. It stays with `int8`, `uint8` and `bool`; in `NumPy` mode 16-bit integers give
/// float32 and larger ones float64. With float16 it gives float32 in both modes.
#[inline]
pub fn promote(a: DType, b: DType, mode: Promotion) -> DType {
    PAIRS[mode as usize][a as usize][b as usize]
}

/// The data type that operands promote to; bool if there are none.
///
/// Arrays first: each is promoted with the largest type of the highest kind, and the results with each other. So `int16, uint16, float32` give
/// float32 as in NumPy, although `int16, uint16` give int32, which with float32 gives float64. Weak scalars come last.
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

/// Results of all pairs, by mode.
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
    // `low` has the lower kind, or the smaller size within the same kind.
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

/// Promotes two different integer types; the first has at most the size of the second.
const fn integers(low: DType, high: DType, mode: Promotion) -> DType {
    if low.is_signed() == high.is_signed() || (high.is_signed() && low.size() < high.size()) {
        return high;
    }
    // One is signed, and the unsigned one has at least its size: the next larger signed type holds both.
    match high.size() {
        1 => DType::I16,
        2 => DType::I32,
        4 => DType::I64,
        _ => mode.float(),
    }
}

/// The smallest float of at least the size of `float` with as many significant bits as the integer; float64 for 64-bit integers, which no float holds
/// exactly.
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

/// Casting rules, from the strictest to the most permissive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Casting {
    /// Only the same type.
    No,
    /// The same type, in any byte order; here all types have the machine's byte order, so this is `No`.
    Equiv,
    /// Conversions that preserve every value (64-bit integers to float64 count as safe, as in NumPy).
    Safe,
    /// Safe conversions, and conversions within a kind, as float64 to float32; not signed to unsigned.
    SameKind,
    /// All conversions.
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

    /// Parses NumPy's names.
    ///
    /// # Errors
    ///
    /// If the text is not a casting rule.
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

/// A text that is not a casting rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("casting must be one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe'")]
pub struct UnknownCasting;

/// Whether `casting` allows the conversion. Independent of the promotion mode.
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
