//! Transforms of length 3 with the exact cosine of 2 pi / 3, which is -1/2; a rounded angle gives an error of four units in the last place.

use rustfft::num_complex::Complex;
use rustfft::{Direction, Fft, FftDirection, Length};

use super::plan::Sample;

/// A transform of three numbers in one direction.
pub(super) struct Three(pub FftDirection);

impl Three {
    fn line<T: Sample>(&self, [a, b, c]: [Complex<T>; 3]) -> [Complex<T>; 3] {
        let sine = match self.0 {
            FftDirection::Forward => T::of(-0.866_025_403_784_438_6),
            FftDirection::Inverse => T::of(0.866_025_403_784_438_6),
        };
        let (sum, difference) = (b + c, b - c);
        let middle = a + sum * T::of(-0.5);
        let rotated = Complex::new(-(difference.im * sine), difference.re * sine);
        [a + sum, middle + rotated, middle - rotated]
    }

    fn lines<T: Sample>(&self, from: &[Complex<T>], to: &mut [Complex<T>]) {
        for (x, y) in from.chunks_exact(3).zip(to.chunks_exact_mut(3)) {
            y.copy_from_slice(&self.line([x[0], x[1], x[2]]));
        }
    }
}

impl Length for Three {
    fn len(&self) -> usize {
        3
    }
}

impl Direction for Three {
    fn fft_direction(&self) -> FftDirection {
        self.0
    }
}

impl<T: Sample> Fft<T> for Three {
    fn process_with_scratch(&self, buffer: &mut [Complex<T>], _: &mut [Complex<T>]) {
        for x in buffer.chunks_exact_mut(3) {
            let y = self.line([x[0], x[1], x[2]]);
            x.copy_from_slice(&y);
        }
    }

    fn process_outofplace_with_scratch(
        &self,
        input: &mut [Complex<T>],
        output: &mut [Complex<T>],
        _: &mut [Complex<T>],
    ) {
        self.lines(input, output);
    }

    fn process_immutable_with_scratch(
        &self,
        input: &[Complex<T>],
        output: &mut [Complex<T>],
        _: &mut [Complex<T>],
    ) {
        self.lines(input, output);
    }

    fn get_inplace_scratch_len(&self) -> usize {
        0
    }

    fn get_outofplace_scratch_len(&self) -> usize {
        0
    }

    fn get_immutable_scratch_len(&self) -> usize {
        0
    }
}
