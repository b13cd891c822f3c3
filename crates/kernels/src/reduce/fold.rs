//! Reductions with one associative operator.

use smallvec::SmallVec;

use super::blocks::Plan;
use super::count::count_dense;
use super::elements::Memory;
use super::kernel::by_isa;
use super::plan::{Axes, Axis, count, normalise, offsets};
use super::{Source, Target};
use crate::threads::split;
use crate::{Elem, Serial, Threads};

/// What a reduction computes of the elements `x` of each output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Sum; 0 if there are no elements.
    Sum,
    /// Product; 1 if there are no elements.
    Prod,
    /// Minimum, NaN if any element is NaN; the type's maximum if there are no elements. Complex numbers compare by real, then imaginary part.
    Min,
    /// Maximum, NaN if any element is NaN; the type's minimum if there are no elements. Complex numbers compare by real, then imaginary part.
    Max,
    /// Whether any element is nonzero (NaN is nonzero).
    Any,
    /// Whether all elements are nonzero.
    All,
    /// Sum divided by the number of elements; NaN if there are no elements.
    Mean,
    /// Sum of |x|^2; real for complex x.
    SumSquares,
    /// Sum of |x|; real for complex x.
    SumAbs,
    /// Number of nonzero elements.
    CountNonzero,
    /// Sum of the elements that are not NaN; 0 if there are none.
    NanSum,
    /// Minimum of the real elements that are not NaN; NaN if all are NaN; an integer type's maximum if there are no elements.
    NanMin,
    /// Maximum of the real elements that are not NaN; NaN if all are NaN; an integer type's minimum if there are no elements.
    NanMax,
}

impl Reduce {
    /// The reduction that gives the same result if no element is NaN.
    pub(super) fn without_nan(self) -> Reduce {
        match self {
            Reduce::NanSum => Reduce::Sum,
            Reduce::NanMin => Reduce::Min,
            Reduce::NanMax => Reduce::Max,
            op => op,
        }
    }
}

/// Number of elements that `any` and `all` check first, before they scan the whole array.
const HEAD: usize = 4096;

/// [`super::reduce`] without the correction of products that leave the range of their type.
///
/// # Safety
/// Same as for [`super::reduce`].
pub unsafe fn reduce(threads: &dyn Threads, op: Reduce, src: &Source, axes: &[bool], out: &Target) {
    debug_assert!(
        src.shape.len() == axes.len()
            && src.strides.len() == axes.len()
            && out.strides.len() == axes.len()
    );
    let (mut from, mut to) = (src.ptr, out.ptr);
    let (mut keep, mut red) = (Axes::new(), Axes::new());
    for (i, &len) in src.shape.iter().enumerate() {
        let axis = Axis {
            len,
            src: src.strides[i],
            dst: if axes[i] { 0 } else { out.strides[i] },
        };
        if axes[i] {
            red.push(axis)
        } else {
            keep.push(axis)
        }
    }
    let (outputs, n) = (count(&keep), count(&red));
    if outputs == 0 {
        return;
    }
    normalise(&mut keep, &mut from, &mut to);
    if n == 0 {
        red = SmallVec::from_elem(
            Axis {
                len: 0,
                src: 0,
                dst: 0,
            },
            1,
        );
    } else {
        normalise(&mut red, &mut from, &mut std::ptr::null_mut());
    }
    let dense = red.len() == 1 && red[0].src == src.elem.size() as isize;
    if outputs == 1
        && dense
        && n > 2 * HEAD
        && out.elem == Elem::Bool
        && matches!(op, Reduce::Any | Reduce::All)
    {
        // The first elements often decide the result.
        let size = src.elem.size() as isize;
        let head = Source {
            ptr: from,
            elem: src.elem,
            shape: &[HEAD],
            strides: &[size],
        };
        let first = Target {
            ptr: to,
            elem: Elem::Bool,
            strides: &[0],
        };
        // SAFETY: the head is part of the source; the output is one boolean.
        unsafe {
            reduce(&Serial, op, &head, &[true], &first);
            if (*to != 0) == (op == Reduce::Any) {
                return;
            }
        }
    }
    let counts = op == Reduce::CountNonzero || (op == Reduce::Sum && src.elem == Elem::Bool);
    if outputs == 1 && dense && counts && out.elem == Elem::I64 {
        // SAFETY: `from` has `n` elements; the output is one integer.
        unsafe { *to.cast::<i64>() = count_dense(threads, src.elem, from, n) as i64 };
        return;
    }
    if dense
        && src.elem == Elem::Bool
        && out.elem == Elem::Bool
        && matches!(op, Reduce::Any | Reduce::All)
    {
        let wanted = op == Reduce::Any;
        let (from, to) = (from as usize, to as usize);
        return split(threads, outputs, outputs * n.min(HEAD) / 8, &|i| {
            let (src, dst) = offsets(&keep, i);
            // SAFETY: row `i` lies inside the source, its result inside the output.
            unsafe {
                let row = (from as *const u8).offset(src);
                *(to as *mut u8).offset(dst) = u8::from(has(row, n, wanted) == wanted);
            }
        });
    }
    let plan = Plan::new(op, src.elem, out.elem, keep, red);
    // SAFETY: guaranteed by the caller; `from` and `to` are at the first elements of the reversed axes.
    unsafe { plan.run(threads, &Memory(from), to) }
}

by_isa! {
    /// Whether one of `n` bytes is nonzero (`wanted`), or is zero (not `wanted`). Stops after the first chunk that contains one.
    ///
    /// # Safety
    /// `bytes` has `n` bytes.
    unsafe fn has [] [] (bytes: *const u8, n: usize, wanted: bool) -> bool {
        const CHUNK: usize = 512;
        let mut at = 0;
        while at < n {
            // The first chunk is short, because the first elements often decide.
            let end = n.min(at + if at == 0 { 64 } else { CHUNK });
            let mut found = false;
            for i in at..end {
                // SAFETY: `i` is below `n`.
                found |= (unsafe { *bytes.add(i) } != 0) == wanted;
            }
            if found {
                return true;
            }
            at = end;
        }
        false
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
