//! Parts of images.

use mxnet_image::{Error, Pixels};

fn image() -> Pixels {
    Pixels::new(2, 3, 2, (0..12).collect()).expect("it has 2 * 3 * 2 bytes")
}

#[test]
fn a_rectangle_is_the_rows_and_columns_named() {
    let part = image().crop(1, 1, 2, 1).expect("it lies inside");
    assert_eq!(part.data(), [8, 9, 10, 11]);
}

#[test]
fn a_rectangle_outside_is_refused() {
    for (x, y, width, height) in [
        (0, 0, 4, 1),
        (3, 0, 1, 1),
        (0, 0, 0, 1),
        (usize::MAX, 0, 2, 1),
    ] {
        assert!(matches!(
            image().crop(x, y, width, height),
            Err(Error::Value(_))
        ));
    }
}

#[test]
fn flips_move_whole_pixels() {
    let mut x = image();
    x.flip_left_right();
    assert_eq!(x.data(), [4, 5, 2, 3, 0, 1, 10, 11, 8, 9, 6, 7]);
    x.flip_top_bottom();
    assert_eq!(x.data(), [10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1]);
}

#[test]
fn bytes_that_are_not_the_shape_are_refused() {
    assert!(matches!(
        Pixels::new(2, 2, 3, vec![0; 11]),
        Err(Error::Value(_))
    ));
    assert!(matches!(
        Pixels::new(usize::MAX, 2, 3, Vec::new()),
        Err(Error::Value(_))
    ));
}
