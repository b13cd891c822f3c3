//! Optimiser updates fused over one parameter.
