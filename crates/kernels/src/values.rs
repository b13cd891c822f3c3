//! Input data for this crate's tests.

/// Reproducible values in [-1, 1) with 20 bits, so that products of two are exact in f64.
pub(crate) struct Values(pub u64);

impl Values {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 44) as f64 / (1u64 << 19) as f64 - 1.0
    }

    /// Integers from -4 to 4, whose sums and products are exact in any order.
    pub(crate) fn integers<T: FromF64>(&mut self, n: usize) -> Vec<T> {
        (0..n)
            .map(|_| T::from_f64((self.next() * 4.0).round()))
            .collect()
    }

    pub(crate) fn take<T: FromF64>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::from_f64(self.next())).collect()
    }
}

/// Conversion of an `f64` for tests.
pub(crate) trait FromF64 {
    fn from_f64(x: f64) -> Self;
}

impl<T: crate::real::Real> FromF64 for T {
    fn from_f64(x: f64) -> Self {
        <T as crate::real::Real>::from_f64(x)
    }
}

/// Fails at the first element whose error exceeds `tolerance * (1 + |want|)`.
pub(crate) fn close<T: crate::real::Real>(what: &str, got: &[T], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let g = g.to_f64();
        assert!(
            g == w || (g - w).abs() <= tolerance * (1.0 + w.abs()),
            "{what}[{i}]: got {g}, want {w}"
        );
    }
}
