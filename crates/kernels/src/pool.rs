//! Max and average pooling, forward and gradients.
