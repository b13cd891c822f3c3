//! Philox 4x32-10 and the samplers on top of it.
