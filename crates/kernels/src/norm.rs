//! Batch and layer normalisation, forward and gradients.
