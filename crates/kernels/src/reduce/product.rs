//! Recomputes products of floats that over- or underflowed. Independent lanes may leave the range of the type although the product in the order of
//! the elements does not.

use super::{Source, Target};
use crate::cast::Cast;
use crate::threads::split;
use crate::{Elem, Threads};

/// Elements converted at once.
const CHUNK: usize = 256;

/// Neighbouring results of one task.
const BLOCK: usize = 64;

/// Real and imaginary part.
type Complex = [f64; 2];

/// One axis: its length and its byte strides in source and result.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    src: isize,
    dst: isize,
}

/// Recomputes every product that is zero, subnormal, infinite or NaN, in the order of the elements and in f64.
///
/// # Safety
/// Same as for [`super::reduce`], which has written the products.
pub(super) unsafe fn recompute(threads: &dyn Threads, src: &Source, axes: &[bool], out: &Target) {
    let Some(lowest) = smallest_normal(out.elem) else {
        return;
    };
    let axis = |i: usize| Axis {
        len: src.shape[i],
        src: src.strides[i],
        dst: out.strides[i],
    };
    let of = |reduced: bool| -> Vec<Axis> {
        (0..axes.len())
            .filter(|&i| axes[i] == reduced)
            .map(axis)
            .collect()
    };
    let (mut kept, reduced) = (of(false), of(true));
    let factors: usize = reduced.iter().map(|axis| axis.len).product();
    if factors < 2 {
        return;
    }
    // Rows of results along the last kept axis.
    let row = kept.pop().unwrap_or(Axis {
        len: 1,
        src: 0,
        dst: 0,
    });
    let rows: usize = kept.iter().map(|axis| axis.len).product();
    let (from, to) = (src.ptr as usize, out.ptr as usize);
    let blocks = row.len.div_ceil(BLOCK);
    split(threads, rows * blocks, rows * row.len, &|number| {
        let (mut at, mut left) = ((0, 0), number / blocks);
        for axis in kept.iter().rev() {
            let i = (left % axis.len) as isize;
            at = (at.0 + i * axis.src, at.1 + i * axis.dst);
            left /= axis.len;
        }
        let start = number % blocks * BLOCK;
        let n = BLOCK.min(row.len - start);
        let target =
            |i: usize| (to as *mut u8).wrapping_offset(at.1 + (start + i) as isize * row.dst);
        let first =
            |i: usize| (from as *const u8).wrapping_offset(at.0 + (start + i) as isize * row.src);
        // SAFETY: results inside the target, which only this task accesses; the factors are only read.
        unsafe {
            let mut doubtful = (0..n).filter(|&i| is_doubtful(target(i), out.elem, lowest));
            let Some(one) = doubtful.next() else { return };
            let mut found = [[0.0; 2]; BLOCK];
            if row.src == src.elem.size() as isize {
                products(first(0), src.elem, &reduced, &mut found[..n]);
            } else {
                for i in [one].into_iter().chain(doubtful.clone()) {
                    found[i] = product(first(i), src.elem, &reduced);
                }
            }
            for i in [one].into_iter().chain(doubtful) {
                write(target(i), out.elem, found[i]);
            }
        }
    });
}

/// Whether `before * part` equals the product of `before` and the elements of `part` one by one, `part` being a product already. True if `part` is in
/// the range of its type, or if it underflowed and the whole product is then 0 as well. Always true for integers.
///
/// # Safety
/// Both point to elements.
pub(crate) unsafe fn multiplies_exactly(before: *const u8, part: *const u8, elem: Elem) -> bool {
    let Some(lowest) = smallest_normal(elem) else {
        return true;
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !is_doubtful(part, elem, lowest) {
            return true;
        }
        let [before, part] = [before, part].map(|ptr| {
            let [re, im] = read(ptr, elem);
            re.abs().max(im.abs()) + 0.0 * (re + im)
        });
        if part < 1.0 { before <= 1.0 } else { false }
    }
}

/// Smallest positive normal number of a float type, or of a complex type's parts.
fn smallest_normal(elem: Elem) -> Option<f64> {
    match elem {
        Elem::F16 => Some(2_f64.powi(-14)),
        Elem::BF16 | Elem::F32 | Elem::C64 => Some(f64::from(f32::MIN_POSITIVE)),
        Elem::F64 | Elem::C128 => Some(f64::MIN_POSITIVE),
        _ => None,
    }
}

fn is_complex(elem: Elem) -> bool {
    matches!(elem, Elem::C64 | Elem::C128)
}

/// # Safety
/// `ptr` points to an element.
unsafe fn is_doubtful(ptr: *const u8, elem: Elem, lowest: f64) -> bool {
    // SAFETY: guaranteed by the caller.
    let parts = unsafe {
        match elem {
            Elem::F32 => [f64::from(*ptr.cast::<f32>()); 2],
            Elem::F64 => [*ptr.cast::<f64>(); 2],
            _ => read(ptr, elem),
        }
    };
    let size = parts[0].abs().max(parts[1].abs());
    !(lowest..f64::INFINITY).contains(&size) || parts[0].is_nan() || parts[1].is_nan()
}

/// # Safety
/// `ptr` points to an element.
unsafe fn read(ptr: *const u8, elem: Elem) -> Complex {
    let mut parts = [0.0; 2];
    let wide = if is_complex(elem) {
        Elem::C128
    } else {
        Elem::F64
    };
    // SAFETY: guaranteed by the caller; there is room for one element.
    unsafe { Cast::new(elem, wide).row(ptr, parts.as_mut_ptr().cast(), 1) };
    parts
}

/// # Safety
/// `ptr` points to an element that may be written.
unsafe fn write(ptr: *mut u8, elem: Elem, parts: Complex) {
    let wide = if is_complex(elem) {
        Elem::C128
    } else {
        Elem::F64
    };
    // SAFETY: guaranteed by the caller.
    unsafe { Cast::new(wide, elem).row(parts.as_ptr().cast(), ptr, 1) };
}

/// The product of all elements along the axes, in their order.
///
/// # Safety
/// The elements can be read.
unsafe fn product(first: *const u8, elem: Elem, axes: &[Axis]) -> Complex {
    let Some((last, outer)) = axes.split_last() else {
        return [1.0, 0.0];
    };
    let complex = is_complex(elem);
    let wide = if complex { Elem::C128 } else { Elem::F64 };
    let cast = Cast::new(elem, wide);
    let step = wide.size() / size_of::<f64>();
    let rows: usize = outer.iter().map(|axis| axis.len).product();
    let mut result = [1.0, 0.0];
    let mut buffer = [0.0_f64; 2 * CHUNK];
    for number in 0..rows {
        let (mut row, mut left) = (first, number);
        for axis in outer.iter().rev() {
            row = row.wrapping_offset((left % axis.len) as isize * axis.src);
            left /= axis.len;
        }
        for start in (0..last.len).step_by(CHUNK) {
            let n = CHUNK.min(last.len - start);
            let at = |i: usize| row.wrapping_offset((start + i) as isize * last.src);
            // SAFETY: elements of the source; the buffer has room for a chunk of any type.
            unsafe {
                if last.src == elem.size() as isize {
                    cast.row(at(0), buffer.as_mut_ptr().cast(), n);
                } else {
                    for i in 0..n {
                        cast.row(at(i), buffer.as_mut_ptr().add(i * step).cast(), 1);
                    }
                }
            }
            for factor in buffer[..n * step].chunks_exact(step) {
                result = match factor {
                    &[re, im] => multiplied(result, re, im),
                    _ => [result[0] * factor[0], 0.0],
                };
            }
        }
    }
    result
}

/// The products of neighbouring columns, as [`product`] gives them.
///
/// # Safety
/// The elements of all columns can be read; there are at most `BLOCK`.
unsafe fn products(first: *const u8, elem: Elem, axes: &[Axis], out: &mut [Complex]) {
    let complex = is_complex(elem);
    let cast = Cast::new(elem, if complex { Elem::C128 } else { Elem::F64 });
    let rows: usize = axes.iter().map(|axis| axis.len).product();
    let mut buffer = [0.0_f64; 2 * BLOCK];
    out.fill([1.0, 0.0]);
    for number in 0..rows {
        let (mut row, mut left) = (first, number);
        for axis in axes.iter().rev() {
            row = row.wrapping_offset((left % axis.len) as isize * axis.src);
            left /= axis.len;
        }
        // SAFETY: elements of the source; the buffer has room for a block of any type.
        unsafe { cast.row(row, buffer.as_mut_ptr().cast(), out.len()) };
        if complex {
            for (result, &[re, im]) in out.iter_mut().zip(buffer.as_chunks().0) {
                *result = multiplied(*result, re, im);
            }
        } else {
            for (result, &factor) in out.iter_mut().zip(&buffer) {
                result[0] *= factor;
            }
        }
    }
}

fn multiplied([re, im]: Complex, x: f64, y: f64) -> Complex {
    [re * x - im * y, re * y + im * x]
}

#[cfg(test)]
mod tests {
    use super::super::{Reduce, reduce};
    use super::*;
    use crate::Serial;

    fn products(values: &[f32], shape: [usize; 2], axes: [bool; 2]) -> Vec<f32> {
        let strides = [4 * shape[1] as isize, 4];
        let outputs = (0..2).map(|i| if axes[i] { 1 } else { shape[i] }).product();
        let mut out = vec![0.0_f32; outputs];
        let steps = if axes[1] { [4, 0] } else { [0, 4] };
        let source = Source {
            ptr: values.as_ptr().cast(),
            elem: Elem::F32,
            shape: &shape,
            strides: &strides,
        };
        let target = Target {
            ptr: out.as_mut_ptr().cast(),
            elem: Elem::F32,
            strides: &steps,
        };
        // SAFETY: both arrays have the given shapes.
        unsafe { reduce(&Serial, Reduce::Prod, &source, &axes, &target) };
        out
    }

    #[test]
    fn overflowing_lanes_are_recomputed() {
        let mut values: Vec<f32> = (0..2400).map(|i| [1e-3, 1e3][i % 2]).collect();
        let found = products(&values, [1, 2400], [true, true])[0];
        assert!((found - 1.0).abs() < 1e-4, "{found}");
        values[7] = 0.0;
        assert_eq!(products(&values, [2, 1200], [false, true])[0], 0.0);
        let growing: Vec<f32> = (0..400).map(|i| i as f32).collect();
        assert_eq!(products(&growing, [400, 1], [true, true])[0], 0.0);
        assert_eq!(products(&growing, [100, 4], [true, false])[0], 0.0);
        assert_eq!(
            products(&growing, [100, 4], [true, false])[1],
            f32::INFINITY
        );
    }

    #[test]
    fn products_that_are_nan_in_order_stay_nan() {
        let values = [f32::MAX, f32::INFINITY, 0.0, 1.0];
        assert!(products(&values, [1, 4], [true, true])[0].is_nan());
    }
}
