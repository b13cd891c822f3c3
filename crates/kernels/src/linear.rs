//! Fully connected layers of few rows, `y = x @ w.T + bias`, with packed weights (`panels`). For many rows, `gemm` packs both operands by blocks.

use crate::copy::copy_elements;
use crate::panels::{MAX_POSITIONS, Panels, Part, SLAB, TASK_WORK, finish, multiply};
use crate::real::{Shared, with_real};
use crate::scratch;
use crate::{Elem, Serial, Threads};

/// A fully connected layer.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// Element type of all operands: `F32` or `F64`.
    pub elem: Elem,
    /// Rows of the data and of the result.
    pub rows: usize,
    /// Columns of the result, rows of the weights.
    pub outputs: usize,
    /// Columns of the data and of the weights.
    pub inputs: usize,
}

/// With more rows general products are as fast, and need no packed weights.
const MAX_DATA_ROWS: usize = 160;
/// Smallest number of multiply-adds.
const MIN_WORK: usize = 1 << 14;

/// `inputs` split into slabs.
fn parts(inputs: usize) -> Vec<Vec<Part>> {
    let mut all = Vec::new();
    scratch::reserve(&mut all, inputs.div_ceil(SLAB));
    for step in (0..inputs).step_by(SLAB) {
        let steps = SLAB.min(inputs - step);
        all.push(vec![Part {
            data: step,
            step,
            steps,
        }]);
    }
    all
}

impl Linear {
    /// Whether [`Linear::run`] is faster than a general product.
    pub fn fits(&self) -> bool {
        matches!(self.elem, Elem::F32 | Elem::F64)
            && (2..=MAX_DATA_ROWS).contains(&self.rows)
            && self.rows * self.outputs * self.inputs >= MIN_WORK
            && self.outputs * 4 >= self.outputs.next_multiple_of(self.lanes()) * 3
    }

    /// Outputs in a panel.
    ///
    /// # Panics
    /// If `elem` is neither `F32` nor `F64`.
    pub fn lanes(&self) -> usize {
        with_real!(self.elem, T => T::kernels().lanes)
    }

    /// Bytes of packed weights.
    ///
    /// # Panics
    /// If `elem` is neither `F32` nor `F64`.
    pub fn packed_bytes(&self) -> usize {
        self.outputs.next_multiple_of(self.lanes()) * self.inputs * self.elem.size()
    }

    /// Packs weights as `[panel][input][lane]`. Strides in elements.
    ///
    /// # Panics
    /// If `elem` is neither `F32` nor `F64`.
    ///
    /// # Safety
    /// `w` has the weights, aligned; `to` has [`Linear::packed_bytes`], aligned.
    pub unsafe fn pack(
        &self,
        threads: &dyn Threads,
        w: *const u8,
        strides: (usize, usize),
        to: *mut u8,
    ) {
        // SAFETY: same contract.
        with_real!(self.elem, T => unsafe {
            self.pack_of::<T>(threads, Shared(w.cast_mut().cast()), strides, Shared(to.cast()))
        })
    }

    unsafe fn pack_of<T: Panels>(
        &self,
        threads: &dyn Threads,
        w: Shared<T>,
        strides: (usize, usize),
        to: Shared<T>,
    ) {
        let lanes = T::kernels().lanes;
        threads.run(self.outputs.div_ceil(lanes), &|panel| {
            let count = lanes.min(self.outputs - panel * lanes);
            let to = to.at(panel * lanes * self.inputs);
            // SAFETY: the panel is this task's own; its rows are inside the weights.
            unsafe {
                if count < lanes {
                    std::slice::from_raw_parts_mut(to, lanes * self.inputs).fill(T::ZERO);
                }
                copy_elements(
                    &Serial,
                    [self.inputs, count],
                    to,
                    [lanes, 1],
                    w.at(panel * lanes * strides.0).cast_const(),
                    [strides.1, strides.0],
                );
            }
        });
    }

    /// Computes `y`, of dense rows. `x` has dense rows `stride` elements apart; `bias` may be null. With `relu`, negative results become 0.
    ///
    /// # Panics
    /// If `elem` is neither `F32` nor `F64`.
    ///
    /// # Safety
    /// All operands are aligned and of the sizes that the fields say; `packed` comes from [`Linear::pack`]; `y` overlaps none.
    #[allow(clippy::too_many_arguments, reason = "the operands of one operation")]
    pub unsafe fn run(
        &self,
        threads: &dyn Threads,
        x: *const u8,
        stride: usize,
        packed: *const u8,
        bias: *const u8,
        y: *mut u8,
        relu: bool,
    ) {
        // SAFETY: same contract.
        with_real!(self.elem, T => unsafe {
            let [x, packed, bias, y] = [x.cast_mut(), packed.cast_mut(), bias.cast_mut(), y]
                .map(|p| Shared(p.cast::<T>()));
            self.run_of::<T>(threads, x, stride, packed, bias, y, relu)
        })
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of one operation")]
    unsafe fn run_of<T: Panels>(
        &self,
        threads: &dyn Threads,
        x: Shared<T>,
        stride: usize,
        packed: Shared<T>,
        bias: Shared<T>,
        y: Shared<T>,
        relu: bool,
    ) {
        let micro = T::kernels();
        let lanes = micro.lanes;
        let parts = parts(self.inputs);
        let wanted = (TASK_WORK / (self.inputs * lanes)).next_multiple_of(micro.rows());
        let chunk = wanted.clamp(micro.rows(), MAX_POSITIONS);
        let chunks = self.rows.div_ceil(chunk);
        threads.run(self.outputs.div_ceil(lanes) * chunks, &|task| {
            let (first, o) = (task % chunks * chunk, task / chunks * lanes);
            let (len, count) = (chunk.min(self.rows - first), lanes.min(self.outputs - o));
            let mut rows = [0; MAX_POSITIONS];
            for (r, row) in rows[..len].iter_mut().enumerate() {
                *row = (first + r) * stride;
            }
            let bias = match bias.is_null() {
                true => std::ptr::null(),
                false => bias.at(o).cast_const(),
            };
            let panel = packed.at(o * self.inputs);
            scratch::with::<T, _>(len * lanes, |out| {
                // SAFETY: the panel has all steps and the rows of the data all inputs; `out` holds `len` rows; these results are the task's own.
                unsafe {
                    multiply(&micro, &parts, x.at(0), panel, &rows[..len], out);
                    finish(out, len, lanes, bias, None, count, relu);
                    for r in 0..len {
                        let to = y.at((first + r) * self.outputs + o);
                        std::ptr::copy_nonoverlapping(out.add(r * lanes), to, count);
                    }
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Scoped;
    use crate::values::{Values, close};

    fn check<T: Panels>(tolerance: f64) {
        for (rows, outputs, inputs) in [(2, 40, 7), (13, 64, 300), (130, 25, 513), (1, 32, 1)] {
            let layer = Linear {
                elem: T::ELEM,
                rows,
                outputs,
                inputs,
            };
            let mut values = Values(rows as u64);
            let stride = inputs + 3;
            let (x, w, b): (Vec<T>, Vec<T>, Vec<T>) = (
                values.take(rows * stride),
                values.take(outputs * inputs),
                values.take(outputs),
            );
            let bytes = |x: &[T]| x.as_ptr().cast::<u8>();
            for (has_bias, relu, transposed) in [
                (false, false, false),
                (true, true, false),
                (true, false, true),
            ] {
                let strides = match transposed {
                    true => (1, outputs),
                    false => (inputs, 1),
                };
                let mut want = Vec::new();
                for r in 0..rows {
                    for o in 0..outputs {
                        let mut sum = if has_bias { b[o].to_f64() } else { 0.0 };
                        for i in 0..inputs {
                            let w = w[o * strides.0 + i * strides.1].to_f64();
                            sum += x[r * stride + i].to_f64() * w;
                        }
                        want.push(if relu { sum.max(0.0) } else { sum });
                    }
                }
                let mut results = Vec::new();
                for threads in [&Serial as &dyn Threads, &Scoped(3)] {
                    let mut packed = vec![T::ZERO; layer.packed_bytes() / size_of::<T>()];
                    let mut y = vec![T::from_f64(f64::NAN); rows * outputs];
                    let bias = match has_bias {
                        true => bytes(&b),
                        false => std::ptr::null(),
                    };
                    // SAFETY: vectors of the layer's sizes.
                    unsafe {
                        layer.pack(threads, bytes(&w), strides, packed.as_mut_ptr().cast());
                        let to = y.as_mut_ptr().cast();
                        layer.run(threads, bytes(&x), stride, bytes(&packed), bias, to, relu);
                    }
                    // The products, and the additions of a chain and of its slabs.
                    close(
                        &format!("{layer:?}"),
                        &y,
                        &want,
                        tolerance * (inputs + 2) as f64,
                    );
                    results.push(y);
                }
                assert!(results[0] == results[1], "thread count changes {layer:?}");
            }
        }
    }

    #[test]
    fn f32_matches_reference_loops() {
        check::<f32>(2.0 * f64::from(f32::EPSILON));
    }

    #[test]
    fn f64_matches_reference_loops() {
        check::<f64>(2.0 * f64::EPSILON);
    }

    #[test]
    fn chosen_for_few_rows_of_full_panels() {
        let layer = |rows, outputs, inputs| Linear {
            elem: Elem::F32,
            rows,
            outputs,
            inputs,
        };
        assert!(layer(64, 128, 128).fits());
        for (rows, outputs, inputs) in [(1, 128, 128), (1000, 128, 128), (64, 3, 1000), (2, 32, 2)]
        {
            assert!(!layer(rows, outputs, inputs).fits());
        }
    }
}
