//! Recording, and gradients as arrays.

use mxnet_core::Result;
use mxnet_core::autograd::{self, Retain};
use mxnet_core::mode::{Scope, is_training};

use crate::Array;

/// Runs `body` in training mode and records its calls on this thread.
pub fn record<R>(body: impl FnOnce() -> R) -> R {
    let _scope = Scope::enter_casting(true, true);
    body()
}

/// Runs `body` without recording its calls on this thread.
pub fn without_recording<R>(body: impl FnOnce() -> R) -> R {
    let _scope = Scope::enter_casting(false, is_training());
    body()
}

/// The gradients of the sum of `heads` with respect to `variables`. They are recorded, so that gradients of them can be computed.
///
/// ```
/// use mxnet::{Array, grad, record};
///
/// # fn main() -> mxnet::Result<()> {
/// let mut x = Array::from_slice(&[2.0_f64], &[1])?;
/// x.attach_grad()?;
/// let second = record(|| {
///     let first = grad(&[&x.powf(3.0)?], &[&x])?;
///     grad(&[&first[0]], &[&x])
/// })?;
/// assert_eq!(second[0].to_vec::<f64>()?, [12.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`crate::Error::Autograd`] if a head was not recorded or a variable is not part of the graph.
pub fn grad(heads: &[&Array], variables: &[&Array]) -> Result<Vec<Array>> {
    let heads: Vec<&mxnet_core::Array> = heads.iter().map(|&x| x.as_ref()).collect();
    let variables: Vec<&mxnet_core::Array> = variables.iter().map(|&x| x.as_ref()).collect();
    let ones = vec![None; heads.len()];
    let grads = autograd::grad(&heads, &variables, &ones, Retain::Yes, true, true)?;
    Ok(grads.into_iter().map(Array::from).collect())
}
