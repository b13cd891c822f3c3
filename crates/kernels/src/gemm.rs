//! Matrix multiplication, batched, any strides.
