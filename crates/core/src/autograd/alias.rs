//! Arrays that share elements, when a recorded operation writes through one of them.

use mxnet_tensor::Layout;
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Value};
use crate::autograd::record_as;
use crate::builtins::builtins;
use crate::error::{Error, Result};
use crate::invoke::{Call, invoke1, only};
use crate::mode::{self, Scope};

/// `part`, a view of `whole` that is known only by its layout, as a recorded view of the current `whole`.
///
/// # Errors
/// [`Error::Autograd`] if no gradient can flow between the two: `part` has another dtype (the real parts of complex numbers), or `whole` has gaps
/// between its elements.
pub fn view_again(whole: &Array, part: &Array) -> Result<Array> {
    let _recording = Scope::enter(true, mode::is_training());
    let (ordered, _) = in_order(whole)?;
    let (strides, offset) = window(&ordered, part)?;
    let attrs: Attrs = [Value::from(part.shape()), strides, offset]
        .into_iter()
        .collect();
    invoke1(builtins().window, &[&ordered], &attrs)
}

/// Records that `part` was written in place, where `part` is a view of `whole` and the result of the recorded operation. Returns `whole` and `part`
/// with their new graph entries.
///
/// # Errors
/// As [`view_again`].
pub fn written_through(whole: &Array, part: &Array) -> Result<(Array, Array)> {
    let changed = {
        let _recording = Scope::enter(true, mode::is_training());
        // The entry of `whole` describes the elements before the write, which are the input of the recorded assignment.
        let before = whole.clone().up_to_date();
        let (ordered, axes) = in_order(&before)?;
        let (strides, offset) = window(&ordered, part)?;
        let call = Call {
            op: builtins().window_assign,
            inputs: &[Some(&ordered), Some(part)],
            attrs: &[strides, offset].into_iter().collect(),
            outs: &[],
            dtype: None,
        };
        // The write is done already; only the record is made.
        let outputs = record_as(&call, || Ok(SmallVec::from_iter([ordered.detach()])))?;
        let mut back: SmallVec<[i64; 4]> = SmallVec::from_elem(0, axes.len());
        for (i, &axis) in axes.iter().enumerate() {
            back[axis as usize] = i as i64;
        }
        only(builtins().window_assign, outputs)?.transpose(Some(&back))?
    };
    let part = view_again(&changed, part)?;
    Ok((changed, part))
}

/// Checks that a write through a view of `whole` can be recorded. Call it before the write.
///
/// # Errors
/// [`Error::Autograd`] if it cannot.
pub fn check_writable(whole: &Array, part: &Array) -> Result<()> {
    if whole.is_stale() {
        return Err(super::tape::stale("assignment", "the viewed array"));
    }
    if whole.entry().is_some_and(|(node, _)| node.is_variable()) {
        let problem =
            "cannot write in place to a view of a variable with a gradient while recording";
        return Err(Error::autograd("assignment", problem)
            .with_hint("compute out of place, or write inside `autograd.pause()`"));
    }
    let _paused = Scope::enter(false, mode::is_training());
    let (ordered, _) = in_order(&whole.detach())?;
    window(&ordered, part).map(|_| ())
}

/// The array with its axes permuted to memory order, and the permutation.
fn in_order(whole: &Array) -> Result<(Array, SmallVec<[i64; 4]>)> {
    let strides = whole.layout().strides();
    let mut axes: SmallVec<[i64; 4]> = (0..whole.ndim() as i64).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(strides[axis as usize]));
    let ordered = whole.transpose(Some(&axes))?;
    if !ordered.layout().is_contiguous() {
        let problem =
            "cannot record a write through a view of an array with gaps between its elements";
        return Err(Error::autograd("assignment", problem).with_hint("copy the array first"));
    }
    Ok((ordered, axes))
}

/// Strides and offset of `part` in elements of `whole`, which is in C order.
fn window(whole: &Array, part: &Array) -> Result<(Value, Value)> {
    let (outer, inner): (&Layout, &Layout) = (whole.layout(), part.layout());
    let inside = match (outer.span(), inner.span()) {
        (Some((low, high)), Some((lowest, highest))) => low <= lowest && highest <= high,
        (_, inner) => inner.is_none(),
    };
    if part.dtype() != whole.dtype() || !inside {
        let problem = format!(
            "a view as {} cannot take part in a recorded write to an array of {}",
            part.dtype().name(),
            whole.dtype().name()
        );
        return Err(Error::autograd("assignment", problem).with_hint("copy the view first"));
    }
    let strides: SmallVec<[i64; 4]> = inner.strides().iter().map(|&s| s as i64).collect();
    let offset = inner.offset().saturating_sub(outer.offset()) as i64;
    Ok((Value::from(&strides[..]), Value::Int(offset)))
}
