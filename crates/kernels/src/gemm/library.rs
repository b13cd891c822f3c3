//! Products by a library that is chosen while the program runs, in place of the blocked micro-kernels. The library computes one tile on the calling
//! thread; batches, tiles, threads, vectors and products of a few elements stay here.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use num_complex::Complex;

use super::Tile;

/// `C = alpha * A @ B + beta * C` in the form of BLAS: row-major matrices, each with one stride.
#[derive(Clone, Copy, Debug)]
pub struct Product<T> {
    /// Rows of A and C.
    pub m: i32,
    /// Columns of B and C.
    pub n: i32,
    /// Columns of A, rows of B.
    pub k: i32,
    /// Factor of the product.
    pub alpha: T,
    /// Factor of the old C. With 0 the old C is not read.
    pub beta: T,
    /// (m, k), or (k, m) if `a_is_transposed`.
    pub a: *const T,
    /// Elements from one row in memory to the next.
    pub a_stride: i32,
    /// Whether the transpose of A is in memory.
    pub a_is_transposed: bool,
    /// (k, n), or (n, k) if `b_is_transposed`.
    pub b: *const T,
    /// Elements from one row in memory to the next.
    pub b_stride: i32,
    /// Whether the transpose of B is in memory.
    pub b_is_transposed: bool,
    /// (m, n).
    pub c: *mut T,
    /// Elements from one row in memory to the next.
    pub c_stride: i32,
}

/// Computes a product on the calling thread, or returns false and leaves C unchanged. The caller guarantees that all elements of the three matrices
/// are in bounds and that C overlaps neither A nor B.
pub type Function<T> = unsafe fn(&Product<T>) -> bool;

/// What a library computes, by element type. Types without a function stay with the built-in kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Library {
    /// Products of f32, and of f16 and bf16, which pass through f32.
    pub f32: Option<Function<f32>>,
    /// Products of f64.
    pub f64: Option<Function<f64>>,
    /// Products of complex numbers of two f32.
    pub c64: Option<Function<Complex<f32>>>,
    /// Products of complex numbers of two f64.
    pub c128: Option<Function<Complex<f64>>>,
}

/// Null for the built-in kernels.
static CURRENT: AtomicPtr<Library> = AtomicPtr::new(ptr::null_mut());

/// Chooses the library for products that begin after this call; `None` selects the built-in kernels.
pub fn set_library(library: Option<&'static Library>) {
    let chosen = library.map_or(ptr::null_mut(), |library| ptr::from_ref(library).cast_mut());
    CURRENT.store(chosen, Ordering::Release);
}

/// The library that computes products; `None` for the built-in kernels.
pub fn current_library() -> Option<&'static Library> {
    // SAFETY: null, or a reference with static lifetime that `set_library` received.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Element types of products that a library may compute.
pub(crate) trait InLibrary: Sized {
    /// The function for this type.
    fn function(library: &Library) -> Option<Function<Self>>;
}

macro_rules! in_library {
    ($($t:ty: $field:ident),*) => {$(
        impl InLibrary for $t {
            fn function(library: &Library) -> Option<Function<Self>> {
                library.$field
            }
        }
    )*};
}
in_library!(f32: f32, f64: f64, Complex<f32>: c64, Complex<f64>: c128);

/// Computes the product with the chosen library. Returns false, and leaves C unchanged, if there is none or if it does not support this product.
///
/// # Safety
/// As `dense`'s.
#[inline]
pub(super) unsafe fn multiply<T: InLibrary + Copy>(t: &Tile<T>) -> bool {
    let Some(function) = current_library().and_then(T::function) else {
        return false;
    };
    match product(t) {
        // SAFETY: the product reaches the elements of the tile, which the caller proved.
        Some(product) => unsafe { function(&product) },
        None => false,
    }
}

/// A tile in the form of BLAS. `None` if a matrix has no contiguous axis, or if a size does not fit in an i32. A column-major C is computed as its
/// transpose: `C.T = B.T @ A.T`.
fn product<T: Copy>(t: &Tile<T>) -> Option<Product<T>> {
    let swap = |(rows, columns): (isize, isize)| (columns, rows);
    let computes_transpose =
        stride_of(t.m, t.n, t.c_strides).is_none_or(|(_, is_transposed)| is_transposed);
    let t = match computes_transpose {
        false => *t,
        true => Tile {
            m: t.n,
            n: t.m,
            a: t.b,
            a_strides: swap(t.b_strides),
            b: t.a,
            b_strides: swap(t.a_strides),
            c_strides: swap(t.c_strides),
            ..*t
        },
    };
    let (a_stride, a_is_transposed) = stride_of(t.m, t.k, t.a_strides)?;
    let (b_stride, b_is_transposed) = stride_of(t.k, t.n, t.b_strides)?;
    let (c_stride, false) = stride_of(t.m, t.n, t.c_strides)? else {
        return None;
    };
    Some(Product {
        m: i32::try_from(t.m).ok()?,
        n: i32::try_from(t.n).ok()?,
        k: i32::try_from(t.k).ok()?,
        alpha: t.alpha,
        beta: t.beta,
        a: t.a,
        a_stride,
        a_is_transposed,
        b: t.b,
        b_stride,
        b_is_transposed,
        c: t.c,
        c_stride,
    })
}

/// The stride of a (rows, columns) matrix, and whether it is column-major.
fn stride_of(rows: usize, columns: usize, strides: (isize, isize)) -> Option<(i32, bool)> {
    let fits = |along: isize, across: isize, len: usize| {
        (along == 1 && across >= len as isize).then(|| i32::try_from(across).ok())?
    };
    let by_rows = fits(strides.1, strides.0, columns).map(|stride| (stride, false));
    by_rows.or_else(|| fits(strides.0, strides.1, rows).map(|stride| (stride, true)))
}

#[cfg(test)]
mod tests {
    use super::{Product, Tile, product, stride_of};

    #[test]
    fn matrices_without_neighbours_or_with_overlaps_are_left_alone() {
        assert_eq!(stride_of(3, 4, (4, 1)), Some((4, false)));
        assert_eq!(stride_of(3, 4, (9, 1)), Some((9, false)));
        assert_eq!(stride_of(3, 4, (1, 3)), Some((3, true)));
        for strides in [
            (8, 2),
            (-4, 1),
            (3, 1),
            (0, 1),
            (1, 0),
            (1, 2),
            (1 << 40, 1),
        ] {
            assert_eq!(stride_of(3, 4, strides), None, "{strides:?}");
        }
    }

    #[test]
    fn a_c_of_columns_is_computed_as_its_transpose() {
        let (a, b, mut c) = ([0.0_f64; 6], [0.0_f64; 12], [0.0_f64; 8]);
        let tile = Tile {
            m: 2,
            n: 4,
            k: 3,
            a: a.as_ptr(),
            a_strides: (3, 1),
            b: b.as_ptr(),
            b_strides: (1, 3),
            c: c.as_mut_ptr(),
            c_strides: (1, 2),
            alpha: 1.0,
            beta: 0.0,
        };
        let Some(found) = product(&tile) else {
            panic!("BLAS has this product");
        };
        let Product { m, n, k, .. } = found;
        assert_eq!((m, n, k), (4, 2, 3));
        assert_eq!(
            (found.a, found.a_stride, found.a_is_transposed),
            (b.as_ptr(), 3, false)
        );
        assert_eq!(
            (found.b, found.b_stride, found.b_is_transposed),
            (a.as_ptr(), 3, true)
        );
        assert_eq!(found.c_stride, 2);
    }
}
