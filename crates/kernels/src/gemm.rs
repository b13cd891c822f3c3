//! Matrix multiplication, batched, any strides: `C = alpha * A @ B + beta * C`, then optionally bias and ReLU.
//!
//! `f32`, `f64`, `c64` and `c128` run on the `gemm` crate's micro-kernels, one tile of C a task, or one slice of a long inner
//! axis (`slices`); vectors and small matrices have loops of their own (`vector`, `unpacked`). `f16` and `bf16` pass through f32
//! tiles (`half_float`), integers and bool have an exact loop (`int`). A library may compute tiles in place of the micro-kernels
//! (`library`).

mod conjugated;
mod half_float;
mod int;
mod library;
mod padded;
mod slices;
mod unpacked;
mod vector;
mod workspace;

#[cfg(test)]
mod tests;

pub use conjugated::conjugated_dot;
pub use library::{Function, Library, Product, current_library, set_library};

use crate::{Elem, Threads};
use num_complex::Complex;

/// Geometry and factors of a matrix product.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// Element type of A, B and C.
    pub elem: Elem,
    /// Batch axes; empty for one product.
    pub batch: &'a [usize],
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B. If 0, C = beta * C.
    pub k: usize,
    /// Factor of the product. 1 for bool and rounded towards zero for integers.
    pub alpha: f64,
    /// Factor of the old C. If 0, the old C is not read. 0 or 1 for bool.
    pub beta: f64,
}

/// One operand: a batch of matrices. Strides are in bytes and multiples of the element size.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// First element. Only C is written.
    pub ptr: *mut u8,
    /// Bytes from one row to the next.
    pub row_stride: isize,
    /// Bytes from one column to the next.
    pub col_stride: isize,
    /// Bytes from one matrix to the next along each batch axis; 0 broadcasts (not in C).
    pub batch_strides: &'a [isize],
}

/// A vector added to C.
#[derive(Clone, Copy, Debug)]
pub enum Bias {
    /// Nothing.
    None,
    /// One dense element per row of C.
    PerRow(*const u8),
    /// One dense element per column of C.
    PerColumn(*const u8),
}

/// Operations on a finished tile of C while it is in cache. Floating-point element types only; others need [`Epilogue::NONE`].
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    /// Vector added to every matrix of the batch.
    pub bias: Bias,
    /// Whether to apply ReLU with the operator's semantics: negative elements and -0 become 0, NaN stays NaN.
    pub relu: bool,
}

impl Epilogue {
    /// No operation.
    pub const NONE: Epilogue = Epilogue {
        bias: Bias::None,
        relu: false,
    };

    fn is_none(&self) -> bool {
        matches!(self.bias, Bias::None) && !self.relu
    }
}

/// `C = alpha * A @ B + beta * C`, then the epilogue. Matrices of the batch and tiles of a matrix run as tasks. The partition depends only on the
/// problem, so the result does not depend on the number of threads.
///
/// # Safety
/// Every element that shape and strides reach is in bounds; strides are multiples of the element size and pointers aligned to it;
/// C's elements are distinct and overlap neither A, B nor the bias; `batch_strides` is as long as `batch`.
pub unsafe fn gemm(
    threads: &dyn Threads,
    p: &Problem,
    a: &Matrix,
    b: &Matrix,
    c: &Matrix,
    epilogue: &Epilogue,
) {
    debug_assert!(
        [a, b, c]
            .iter()
            .all(|x| x.batch_strides.len() == p.batch.len()),
        "one stride per batch axis"
    );
    debug_assert!(
        matches!(p.elem, Elem::F16 | Elem::BF16 | Elem::F32 | Elem::F64) || epilogue.is_none()
    );
    let batch: usize = p.batch.iter().product();
    if batch * p.m * p.n == 0 {
        return;
    }
    let cut = Cut::of(p, batch);
    let tasks = cut.tasks();
    let job = Job {
        p,
        a,
        b,
        c,
        epilogue,
        threads,
        depth: if tasks == 1 && batch == 1 {
            slices::depth(p)
        } else {
            p.k
        },
    };
    let task = |t: usize| {
        // SAFETY: `t` is a task of the partition, in bounds by the caller's guarantee; tasks write disjoint tiles of C.
        unsafe { job.run(&cut, t) }
    };
    if tasks == 1 {
        task(0)
    } else {
        threads.run(tasks, &task)
    }
}

/// One product with strides in elements, on the calling thread. For callers that already run inside a task, such as convolution and RNN kernels.
///
/// # Safety
/// Same as for [`gemm`], with strides in elements.
#[inline]
pub(crate) unsafe fn dense<T: GemmFloat>(tile: &Tile<T>) {
    // SAFETY: same contract.
    unsafe { T::multiply(tile) }
}

/// One product, or a tile of one; strides are in elements.
#[derive(Clone, Copy)]
pub(crate) struct Tile<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: *const T,
    /// (row, column) strides.
    pub a_strides: (isize, isize),
    pub b: *const T,
    pub b_strides: (isize, isize),
    pub c: *mut T,
    pub c_strides: (isize, isize),
    pub alpha: T,
    pub beta: T,
}

impl<T: unpacked::Scalar> Tile<T> {
    /// Writes `alpha * x + beta * C[i, j]` to C[i, j], which is not read for `beta` 0.
    ///
    /// # Safety
    /// `(i, j)` is inside C.
    #[inline(always)]
    unsafe fn store(&self, i: usize, j: usize, x: T) {
        let at = i as isize * self.c_strides.0 + j as isize * self.c_strides.1;
        let x = self.alpha * x;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let c = self.c.offset(at);
            *c = if self.beta == T::from_real(0.0) {
                x
            } else {
                x + self.beta * *c
            };
        }
    }
}

/// Element types of the micro-kernels.
pub(crate) trait GemmFloat: unpacked::Scalar + library::InLibrary {
    /// # Safety
    /// Same as for [`dense`].
    unsafe fn multiply(tile: &Tile<Self>);
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl GemmFloat for $t {
            unsafe fn multiply(t: &Tile<Self>) {
                // SAFETY: same contract.
                unsafe {
                    if t.m == 1 || t.n == 1 {
                        vector::matvec(t)
                    } else if unpacked::is_preferred(t) {
                        unpacked::multiply(t)
                    } else if !library::multiply(t) && !padded::multiply(t, blocked) {
                        blocked(t)
                    }
                }
            }
        }
    )*};
}
float!(f32, f64, Complex<f32>, Complex<f64>);

/// # Safety
/// Same as for [`dense`].
unsafe fn blocked<T: GemmFloat>(t: &Tile<T>) {
    let _reserved = workspace::reserve::<T>(t.m, t.n, t.k);
    let (zero, par) = (T::from_real(0.0), ::gemm::Parallelism::None);
    let ((ar, ac), (br, bc), (cr, cc)) = (t.a_strides, t.b_strides, t.c_strides);
    // SAFETY: the caller guarantees bounds and disjointness; `T` is one of the four types of the `gemm` crate.
    unsafe {
        ::gemm::gemm(
            t.m,
            t.n,
            t.k,
            t.c,
            cc,
            cr,
            t.beta != zero,
            t.a,
            ac,
            ar,
            t.b,
            bc,
            br,
            t.beta,
            t.alpha,
            false,
            false,
            false,
            par,
        );
    }
}

/// Partition of a problem into tasks: several matrices per task, or several tiles per matrix.
struct Cut {
    batch: usize,
    /// Matrices per task; 1 if matrices are split into tiles.
    group: usize,
    /// Rows and columns of a tile, and the number of tiles along each.
    tile: (usize, usize),
    tiles: (usize, usize),
}

impl Cut {
    /// Multiply-adds that take one core about 20 us: enough to be worth scheduling a task.
    const MIN_TASK_WORK: usize = 1 << 20;
    /// The same for matrix-vector products, which are bound by memory bandwidth.
    const MIN_TASK_WORK_VECTOR: usize = 1 << 17;
    /// Tiles are split further only while their sides stay at least this long.
    const SIDE: usize = 512;

    /// Multiply-adds that are worth a task.
    fn min_task_work(p: &Problem) -> usize {
        if p.m == 1 || p.n == 1 {
            Cut::MIN_TASK_WORK_VECTOR
        } else {
            Cut::MIN_TASK_WORK
        }
    }

    fn of(p: &Problem, batch: usize) -> Cut {
        let worth = Cut::min_task_work(p);
        let work = |m: usize, n: usize| m.saturating_mul(n).saturating_mul(p.k.max(1));
        if work(p.m, p.n) < 2 * worth || batch >= 64 {
            let group = (worth / work(p.m, p.n))
                .max(1)
                .max(batch.div_ceil(1024))
                .min(batch);
            return Cut {
                batch,
                group,
                tile: (p.m, p.n),
                tiles: (1, 1),
            };
        }
        // Halve the longer side until there are enough tiles for many cores, or the tiles become too small to be efficient.
        let (mut tm, mut tn) = (1, 1);
        loop {
            let (m, n) = (p.m.div_ceil(tm), p.n.div_ceil(tn));
            let enough = batch * tm * tn >= 16 && m.max(n) <= Cut::SIDE;
            let too_small = work(m, n) < 2 * worth || m.max(n) < 128;
            if enough || too_small {
                break;
            }
            if m > n { tm *= 2 } else { tn *= 2 }
        }
        // Tile sides are multiples of the micro-kernels' (48 f32 or 24 f64 along the contiguous axis, 8 across).
        let side = |len: usize, parts: usize| {
            if parts == 1 {
                len
            } else {
                len.div_ceil(parts).next_multiple_of(48).min(len)
            }
        };
        let tile = (side(p.m, tm), side(p.n, tn));
        Cut {
            batch,
            group: 1,
            tile,
            tiles: (p.m.div_ceil(tile.0), p.n.div_ceil(tile.1)),
        }
    }

    fn tasks(&self) -> usize {
        self.batch.div_ceil(self.group) * self.tiles.0 * self.tiles.1
    }
}

/// The whole call, shared by its tasks.
struct Job<'a> {
    p: &'a Problem<'a>,
    a: &'a Matrix<'a>,
    b: &'a Matrix<'a>,
    c: &'a Matrix<'a>,
    epilogue: &'a Epilogue,
    threads: &'a dyn Threads,
    /// Length of the slices of k that run as tasks; k if tiles of C do.
    depth: usize,
}

// SAFETY: the pointers are used from several threads only through `run`, whose tasks write disjoint tiles.
unsafe impl Sync for Job<'_> {}

/// One tile of one matrix: untyped pointers to its corner.
struct Block<'a> {
    m: usize,
    n: usize,
    a: *const u8,
    b: *const u8,
    c: *mut u8,
    bias: Bias,
    job: &'a Job<'a>,
}

impl Job<'_> {
    /// # Safety
    /// `t < cut.tasks()`, no other thread runs the same task, and the contract of [`gemm`] holds.
    unsafe fn run(&self, cut: &Cut, t: usize) {
        let per_product = cut.tiles.0 * cut.tiles.1;
        let (group, tile) = (t / per_product, t % per_product);
        let (i, j) = (
            tile / cut.tiles.1 * cut.tile.0,
            tile % cut.tiles.1 * cut.tile.1,
        );
        let (m, n) = (cut.tile.0.min(self.p.m - i), cut.tile.1.min(self.p.n - j));
        let size = self.p.elem.size();
        let bias = match self.epilogue.bias {
            Bias::None => Bias::None,
            Bias::PerRow(ptr) => Bias::PerRow(ptr.wrapping_add(i * size)),
            Bias::PerColumn(ptr) => Bias::PerColumn(ptr.wrapping_add(j * size)),
        };
        let (i, j) = (i as isize, j as isize);
        for product in group * cut.group..((group + 1) * cut.group).min(cut.batch) {
            let corner = |x: &Matrix, i: isize, j: isize| {
                x.ptr.wrapping_offset(
                    offset(product, self.p.batch, x.batch_strides)
                        + i * x.row_stride
                        + j * x.col_stride,
                )
            };
            let block = Block {
                m,
                n,
                a: corner(self.a, i, 0),
                b: corner(self.b, 0, j),
                c: corner(self.c, i, j),
                bias,
                job: self,
            };
            // SAFETY: the block is inside the operands (the caller of `gemm` guarantees it).
            unsafe { block.run() }
        }
    }
}

/// Byte offset of matrix `index` of the batch, last axis fastest.
fn offset(mut index: usize, shape: &[usize], strides: &[isize]) -> isize {
    let mut sum = 0;
    for (&len, &stride) in shape.iter().zip(strides).rev() {
        sum += (index % len) as isize * stride;
        index /= len;
    }
    sum
}

impl Block<'_> {
    /// # Safety
    /// The block is in bounds; see [`gemm`].
    unsafe fn run(&self) {
        // SAFETY: same contract.
        unsafe {
            match self.job.p.elem {
                Elem::F32 => self.real::<f32>(),
                Elem::F64 => self.real::<f64>(),
                Elem::C64 => self.multiply::<Complex<f32>>(&self.typed()),
                Elem::C128 => self.multiply::<Complex<f64>>(&self.typed()),
                Elem::F16 => half_float::multiply::<half::f16>(self),
                Elem::BF16 => half_float::multiply::<half::bf16>(self),
                Elem::I8 | Elem::U8 => int::multiply::<u8>(self),
                Elem::I16 | Elem::U16 => int::multiply::<u16>(self),
                Elem::I32 | Elem::U32 => int::multiply::<u32>(self),
                Elem::I64 | Elem::U64 => int::multiply::<u64>(self),
                Elem::Bool => int::multiply::<bool>(self),
            }
        }
    }

    fn typed<T: unpacked::Scalar>(&self) -> Tile<T> {
        let size = size_of::<T>() as isize;
        let strides = |x: &Matrix| (x.row_stride / size, x.col_stride / size);
        let Job { p, a, b, c, .. } = self.job;
        Tile {
            m: self.m,
            n: self.n,
            k: p.k,
            a: self.a.cast(),
            a_strides: strides(a),
            b: self.b.cast(),
            b_strides: strides(b),
            c: self.c.cast(),
            c_strides: strides(c),
            alpha: T::from_real(p.alpha),
            beta: T::from_real(p.beta),
        }
    }

    /// # Safety
    /// Same as for [`Block::run`], and `tile` is the block.
    unsafe fn multiply<T: GemmFloat>(&self, tile: &Tile<T>) {
        // SAFETY: same contract.
        unsafe {
            if self.job.depth < tile.k {
                slices::multiply(self.job.threads, tile, self.job.depth)
            } else {
                T::multiply(tile)
            }
        }
    }

    /// # Safety
    /// Same as for [`Block::run`], and `T` is the element type.
    unsafe fn real<T: GemmFloat + crate::real::Real>(&self) {
        let tile = self.typed::<T>();
        // SAFETY: same contract.
        unsafe {
            self.multiply(&tile);
            if !self.job.epilogue.is_none() {
                finish(&tile, self.bias, self.job.epilogue.relu);
            }
        }
    }
}

/// Applies bias and ReLU to a tile of C.
///
/// # Safety
/// The tile is in bounds, the bias has one `T` per row or column of it.
unsafe fn finish<T: crate::real::Real>(t: &Tile<T>, bias: Bias, relu: bool) {
    let (cr, cc) = t.c_strides;
    for i in 0..t.m {
        for j in 0..t.n {
            // SAFETY: (i, j) is inside the tile.
            unsafe {
                let c = t.c.offset(i as isize * cr + j as isize * cc);
                let mut x = *c;
                match bias {
                    Bias::None => {}
                    Bias::PerRow(b) => x += *b.cast::<T>().add(i),
                    Bias::PerColumn(b) => x += *b.cast::<T>().add(j),
                }
                *c = if relu && x <= T::ZERO { T::ZERO } else { x };
            }
        }
    }
}
