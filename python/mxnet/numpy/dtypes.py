"""Classes of the dtypes that arrays can have, as NumPy names them. bfloat16, which NumPy does not have, has none.

Examples
--------
>>> isinstance(np.ones(2).dtype, np.dtypes.Float32DType)
True
"""

from numpy.dtypes import (
    BoolDType,
    ByteDType,
    Complex64DType,
    Complex128DType,
    Float16DType,
    Float32DType,
    Float64DType,
    Int8DType,
    Int16DType,
    Int32DType,
    Int64DType,
    IntDType,
    LongDType,
    LongLongDType,
    ShortDType,
    UByteDType,
    UInt8DType,
    UInt16DType,
    UInt32DType,
    UInt64DType,
    UIntDType,
    ULongDType,
    ULongLongDType,
    UShortDType,
)

__all__ = [
    "BoolDType",
    "ByteDType",
    "Complex64DType",
    "Complex128DType",
    "Float16DType",
    "Float32DType",
    "Float64DType",
    "Int8DType",
    "Int16DType",
    "Int32DType",
    "Int64DType",
    "IntDType",
    "LongDType",
    "LongLongDType",
    "ShortDType",
    "UByteDType",
    "UInt8DType",
    "UInt16DType",
    "UInt32DType",
    "UInt64DType",
    "UIntDType",
    "ULongDType",
    "ULongLongDType",
    "UShortDType",
]
