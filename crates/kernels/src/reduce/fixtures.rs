//! Fixtures for tests: random numbers, strided buffers and a scalar reader of them.

use super::number::{Number, with_elem};
use super::{Source, Target};
use crate::Elem;

/// xorshift64*: enough for test data.
pub(crate) struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) as usize * n) >> 32
    }

    /// Uniform in [-1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// A buffer of elements with a strided view into it.
pub(crate) struct Strided {
    pub elem: Elem,
    pub bytes: Vec<u8>,
    pub offset: isize,
    pub shape: Vec<usize>,
    pub strides: Vec<isize>,
}

impl Strided {
    /// A view of `shape` whose axes are in memory order `order` (outermost first), with every stride multiplied by `steps[axis]` (0 and
    /// negative allowed), filled by `value`.
    pub fn new(
        elem: Elem,
        shape: &[usize],
        order: &[usize],
        steps: &[isize],
        mut value: impl FnMut() -> (f64, f64),
    ) -> Self {
        let (mut strides, mut span, mut offset) = (vec![0; shape.len()], elem.size() as isize, 0);
        for &axis in order.iter().rev() {
            strides[axis] = span * steps[axis];
            let last = strides[axis] * (shape[axis].max(1) as isize - 1);
            offset -= last.min(0);
            span *= steps[axis].abs().max(1) * shape[axis].max(1) as isize;
        }
        let mut bytes = vec![0u8; span as usize];
        for i in 0..bytes.len() / elem.size() {
            put(elem, &mut bytes[i * elem.size()..], value());
        }
        Strided {
            elem,
            bytes,
            offset,
            shape: shape.to_vec(),
            strides,
        }
    }

    pub fn contiguous(elem: Elem, shape: &[usize], value: impl FnMut() -> (f64, f64)) -> Self {
        Strided::new(
            elem,
            shape,
            &(0..shape.len()).collect::<Vec<_>>(),
            &vec![1; shape.len()],
            value,
        )
    }

    pub fn source(&self) -> Source<'_> {
        Source {
            ptr: self.bytes.as_ptr().wrapping_offset(self.offset),
            elem: self.elem,
            shape: &self.shape,
            strides: &self.strides,
        }
    }

    pub fn target(&mut self) -> Target<'_> {
        Target {
            ptr: self.bytes.as_mut_ptr().wrapping_offset(self.offset),
            elem: self.elem,
            strides: &self.strides,
        }
    }

    /// The element at `index`, as (real, imaginary).
    pub fn at(&self, index: &[usize]) -> (f64, f64) {
        let at = self.offset
            + index
                .iter()
                .zip(&self.strides)
                .map(|(&i, s)| i as isize * s)
                .sum::<isize>();
        get(self.elem, &self.bytes[at as usize..])
    }

    /// All elements in C order.
    pub fn values(&self) -> Vec<(f64, f64)> {
        indices(&self.shape).map(|i| self.at(&i)).collect()
    }
}

/// Every index of a shape, in C order.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |mut at| {
        let mut index = vec![0; shape.len()];
        for (i, &n) in index.iter_mut().zip(&shape).rev() {
            *i = at % n;
            at /= n;
        }
        index
    })
}

pub(crate) fn put(elem: Elem, bytes: &mut [u8], (re, im): (f64, f64)) {
    let value = super::number::Complex { re, im };
    with_elem!(elem, T => {
        assert!(bytes.len() >= size_of::<T>());
        // SAFETY: the slice is long enough; the write may be unaligned.
        unsafe { bytes.as_mut_ptr().cast::<T>().write_unaligned(T::from_number(value)) }
    });
}

pub(crate) fn get(elem: Elem, bytes: &[u8]) -> (f64, f64) {
    with_elem!(elem, T => {
        assert!(bytes.len() >= size_of::<T>());
        // SAFETY: the slice is long enough; the read may be unaligned.
        let value = unsafe { bytes.as_ptr().cast::<T>().read_unaligned() };
        (value.to_f64(), value.imag())
    })
}
