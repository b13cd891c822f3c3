//! Common parts of kernel sources: the prelude, functions of one element, and the names of types.

use mxnet_tensor::DType;

/// Types and functions that all kernels share. Prepended to every kernel source.
pub const PRELUDE: &str = include_str!("text/prelude.cuh");

/// Functions of one element, for kernels that compute; these include it explicitly.
pub(crate) const MATH: &str = include_str!("text/math.cuh");

/// Incomplete gamma and beta functions, for expressions that name `incomplete::`. Needs [`MATH`].
pub(crate) const INCOMPLETE: &str = include_str!("text/incomplete.cuh");

/// The C++ element type of a dtype, in `namespace mx`.
pub(crate) const fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "boolean",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U8 => "u8",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::U64 => "u64",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::C64 => "c64",
        DType::C128 => "c128",
    }
}
