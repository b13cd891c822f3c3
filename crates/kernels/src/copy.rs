//! Strided N-d moves by item size: copy, fill, concatenate, flip, pad.
