//! Other sizes.

use mxnet_image::{Error, Interpolation, Pixels, resize};

const ALL: [Interpolation; 5] = [
    Interpolation::Nearest,
    Interpolation::Bilinear,
    Interpolation::Cubic,
    Interpolation::Area,
    Interpolation::Lanczos,
];

#[test]
fn one_color_stays_one_color() {
    let image = Pixels::new(7, 5, 3, vec![200; 105]).expect("the bytes are as many");
    for interpolation in ALL {
        for (height, width) in [(3, 2), (14, 10), (3, 20), (1, 1)] {
            let found = resize(&image, height, width, interpolation).expect("the size is possible");
            assert!(
                found.data().iter().all(|&x| x == 200),
                "{interpolation:?} {height} {width}"
            );
        }
    }
}

#[test]
fn halving_an_image_averages_four_pixels() {
    let image = Pixels::new(2, 2, 1, vec![0, 100, 20, 40]).expect("the bytes are as many");
    for interpolation in [Interpolation::Bilinear, Interpolation::Area] {
        let found = resize(&image, 1, 1, interpolation).expect("the size is possible");
        assert_eq!(found.data(), [40]);
    }
}

#[test]
fn sizes_without_pixels_are_refused() {
    let image = Pixels::new(1, 1, 1, vec![0]).expect("the bytes are as many");
    for (height, width) in [(0, 1), (1, 0), (usize::MAX, 2)] {
        let found = resize(&image, height, width, Interpolation::Bilinear);
        assert!(matches!(found, Err(Error::Value(_))));
    }
}
