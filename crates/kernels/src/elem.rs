//! Element types of the kernels.

/// Element type of a buffer. The variants have the order of the tensor layer's `DType`, so the two convert by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Elem {
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
    /// Upper half of binary32.
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

impl Elem {
    /// Number of element types; tables indexed by `Elem as usize` have this length.
    pub const COUNT: usize = 15;

    /// Every element type, in numeric order.
    pub const ALL: [Elem; Elem::COUNT] = [
        Elem::Bool,
        Elem::I8,
        Elem::I16,
        Elem::I32,
        Elem::I64,
        Elem::U8,
        Elem::U16,
        Elem::U32,
        Elem::U64,
        Elem::F16,
        Elem::BF16,
        Elem::F32,
        Elem::F64,
        Elem::C64,
        Elem::C128,
    ];

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            Elem::Bool | Elem::I8 | Elem::U8 => 1,
            Elem::I16 | Elem::U16 | Elem::F16 | Elem::BF16 => 2,
            Elem::I32 | Elem::U32 | Elem::F32 => 4,
            Elem::I64 | Elem::U64 | Elem::F64 | Elem::C64 => 8,
            Elem::C128 => 16,
        }
    }

    /// The type that kernels compute in: f32 for f16 and bf16, the type itself otherwise.
    #[inline]
    pub const fn compute(self) -> Elem {
        match self {
            Elem::F16 | Elem::BF16 => Elem::F32,
            other => other,
        }
    }

    /// The element type with number `n`, if there is one.
    #[inline]
    pub const fn from_number(n: u8) -> Option<Elem> {
        if (n as usize) < Elem::COUNT {
            Some(Elem::ALL[n as usize])
        } else {
            None
        }
    }
}
