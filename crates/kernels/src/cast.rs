//! Conversions between element types, one row at a time.
