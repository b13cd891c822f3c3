//! Data types: names, sizes, kinds. Promotion is in `promotion.rs`.

use std::fmt;
use std::str::FromStr;

use crate::error::{DTypeError, TensorError};

/// Type of one element.
///
/// The numbers equal those of the kernels' element type, so that the two convert by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool = 0,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of binary32.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Pair of binary32: real, imaginary.
    C64,
    /// Pair of binary64: real, imaginary.
    C128,
}

/// Kind of number that a data type holds. The order is that of promotion: later kinds win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Booleans.
    Bool,
    /// Signed and unsigned integers.
    Integer,
    /// Binary floating point.
    Float,
    /// Complex floating point.
    Complex,
}

impl DType {
    /// Number of data types; tables indexed by `DType as usize` have this length.
    pub const COUNT: usize = 15;

    /// Every data type, in numeric order.
    pub const ALL: [DType; DType::COUNT] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Alignment of an element in bytes; for complex numbers that of their parts.
    #[inline]
    pub const fn alignment(self) -> usize {
        match self {
            DType::C64 => 4,
            DType::C128 => 8,
            other => other.size(),
        }
    }

    /// NumPy's name, such as `"float32"`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// Kind of number that the type holds.
    #[inline]
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => Kind::Integer,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Kind::Float,
            DType::C64 | DType::C128 => Kind::Complex,
        }
    }

    /// Whether it is a real floating-point type.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether it is a signed or unsigned integer; `bool` is not.
    #[inline]
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Integer)
    }

    /// Whether it is a complex type.
    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// Whether it is real or complex floating point: a type with rounding.
    #[inline]
    pub const fn is_inexact(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Complex)
    }

    /// Whether it has negative values.
    #[inline]
    pub const fn is_signed(self) -> bool {
        !matches!(
            self,
            DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64
        )
    }

    /// The type of the real part: `float32` for `complex64`; other types are returned unchanged.
    #[inline]
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex type whose real part holds the values: `complex64` for `float32` and the 16-bit floats; complex types are returned unchanged;
    /// `complex128` for all others.
    #[inline]
    pub const fn complex(self) -> DType {
        match self {
            DType::F16 | DType::BF16 | DType::F32 | DType::C64 => DType::C64,
            _ => DType::C128,
        }
    }

    /// The data type with number `n`; `None` if there is none.
    #[inline]
    pub const fn from_number(n: u8) -> Option<DType> {
        if (n as usize) < DType::COUNT {
            Some(DType::ALL[n as usize])
        } else {
            None
        }
    }

    /// The data type for one of NumPy's names: a full name (`"float32"`), a kind and size (`"f4"`), a character (`"d"`), or a C or Python name
    /// (`"int"`, `"double"`), each with an optional prefix for the machine's byte order (`"<f4"`, `"=f4"`, `"|u1"`). Types of one byte allow any byte
    /// order.
    ///
    /// Names that depend on the platform in NumPy are 64 bits here: `"l"`, `"int"`, `"p"`.
    pub fn from_name(name: &str) -> Option<DType> {
        if let Some(dtype) = DType::ALL.into_iter().find(|dtype| dtype.name() == name) {
            return Some(dtype);
        }
        let native = if cfg!(target_endian = "little") {
            '<'
        } else {
            '>'
        };
        let (order, code) = match name.chars().next()? {
            order @ ('<' | '>' | '=' | '|') => (Some(order), &name[1..]),
            _ => (None, name),
        };
        let dtype = match code {
            "?" | "b1" => DType::Bool,
            "b" | "i1" => DType::I8,
            "h" | "i2" => DType::I16,
            "i" | "i4" => DType::I32,
            "l" | "q" | "p" | "i8" => DType::I64,
            "B" | "u1" => DType::U8,
            "H" | "u2" => DType::U16,
            "I" | "u4" => DType::U32,
            "L" | "Q" | "P" | "u8" => DType::U64,
            "e" | "f2" => DType::F16,
            "f" | "f4" => DType::F32,
            "d" | "f8" => DType::F64,
            "F" | "c8" => DType::C64,
            "D" | "c16" => DType::C128,
            _ if order.is_some() => return None,
            "bool_" => DType::Bool,
            "byte" => DType::I8,
            "short" => DType::I16,
            "intc" => DType::I32,
            "int" | "int_" | "intp" | "long" | "longlong" => DType::I64,
            "ubyte" => DType::U8,
            "ushort" => DType::U16,
            "uintc" => DType::U32,
            "uint" | "uintp" | "ulong" | "ulonglong" => DType::U64,
            "half" => DType::F16,
            "single" => DType::F32,
            "float" | "double" => DType::F64,
            "csingle" => DType::C64,
            "complex" | "cdouble" => DType::C128,
            _ => return None,
        };
        let swapped = order.is_some_and(|order| order != native && order != '=' && order != '|');
        (!swapped || dtype.size() == 1).then_some(dtype)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = TensorError;

    /// As [`DType::from_name`], with an error.
    ///
    /// # Errors
    ///
    /// `DType` when no data type has this name.
    fn from_str(name: &str) -> Result<DType, TensorError> {
        DType::from_name(name).ok_or_else(|| DTypeError::Name { name: name.into() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_sizes_agree() {
        for (number, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(dtype as usize, number);
            assert_eq!(DType::from_number(number as u8), Some(dtype));
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            let bits: String = dtype.name().chars().filter(char::is_ascii_digit).collect();
            let bits: usize = if bits.is_empty() {
                8
            } else {
                bits.parse().expect("digits only")
            };
            assert_eq!(dtype.size() * 8, bits, "{dtype}");
        }
        assert_eq!(DType::from_number(DType::COUNT as u8), None);
    }

    #[test]
    fn names_are_read_as_numpy_reads_them() {
        for (name, dtype) in [
            ("f4", DType::F32),
            ("=f8", DType::F64),
            ("|u1", DType::U8),
            (">i1", DType::I8),
            ("?", DType::Bool),
            ("|b1", DType::Bool),
            ("bool_", DType::Bool),
            ("c16", DType::C128),
            ("e", DType::F16),
            ("int", DType::I64),
            ("float", DType::F64),
            ("bfloat16", DType::BF16),
        ] {
            assert_eq!(DType::from_name(name), Some(dtype), "{name}");
        }
        let swapped = if cfg!(target_endian = "little") {
            ">f4"
        } else {
            "<f4"
        };
        for name in ["", "f3", "float128", swapped, "<int", "<", "Float32", "é4"] {
            assert_eq!(DType::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn parts_of_complex_types() {
        assert_eq!(DType::C64.real(), DType::F32);
        assert_eq!(DType::BF16.real(), DType::BF16);
        assert_eq!(DType::F32.complex(), DType::C64);
        assert_eq!(DType::I8.complex(), DType::C128);
        assert!(
            Kind::Bool < Kind::Integer
                && Kind::Integer < Kind::Float
                && Kind::Float < Kind::Complex
        );
    }
}
