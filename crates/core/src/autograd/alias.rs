//! Arrays that share elements, when a recorded operation writes through one of them.

use mxnet_tensor::Layout;
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Value};
use crate::autograd::record_as;
use crate::builtins::builtins;
use crate::error::{Error, Result};
use crate::interp::{self, Scope};
use crate::invoke::{Call, invoke1, only};

/// `part`, a view of `whole` known by where its elements lie, as a recorded view of what `whole` is now.
///
/// # Errors
/// [`Error::Autograd`] if they have no elements in common that a gradient could be sent through: another dtype (the real parts of complex
/// numbers), or a `whole` with gaps between its elements.
pub fn view_again(whole: &Array, part: &Array) -> Result<Array> {
    let _recording = Scope::enter(true, interp::is_training());
    let (ordered, _) = in_order(whole)?;
    let (strides, offset) = window(&ordered, part)?;
    let attrs: Attrs = [Value::from(part.shape()), strides, offset]
        .into_iter()
        .collect();
    invoke1(builtins().window, &[&ordered], &attrs)
}

/// What `whole` and its view are after a recorded operation wrote the view's elements in place; `part` is that operation's result.
///
/// # Errors
/// As [`view_again`].
pub fn written_through(whole: &Array, part: &Array) -> Result<(Array, Array)> {
    let changed = {
        let _recording = Scope::enter(true, interp::is_training());
        // What is known of the whole is what it was before, and that is what the operation starts from.
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
        // The elements are there already.
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

/// Whether a write through a view of `whole` can be recorded; to be asked before it is made.
///
/// # Errors
/// [`Error::Autograd`] if not.
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
    let _paused = Scope::enter(false, interp::is_training());
    let (ordered, _) = in_order(&whole.detach())?;
    window(&ordered, part).map(|_| ())
}

/// The array with its axes in the order they have in memory, and which axes these are.
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

/// Strides and offset of `part` in the C order of `whole`.
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
