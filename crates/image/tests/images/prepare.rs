//! The steps to a network's input.

use mxnet_image::{Error, Interpolation, Normalization, Pixels, Step, apply, to_planes};

fn image() -> Pixels {
    Pixels::new(2, 3, 2, (0..12).collect()).expect("the bytes are as many")
}

#[test]
fn planes_hold_one_channel_each() {
    let by = Normalization {
        mean: vec![0.0, 1.0],
        std: vec![1.0 / 255.0],
    };
    let mut planes = [0.0; 12];
    to_planes(&image(), &by, &mut planes).expect("numbers fit");
    for (i, y) in planes.iter().enumerate() {
        let (c, pixel) = (i / 6, i % 6);
        let expected = (2 * pixel + c) as f32 - 255.0 * c as f32;
        // Four roundings of at most half an epsilon, relative to values of at most 255.
        let bound = 4.0 * 0.5 * f32::EPSILON * 255.0;
        assert!((y - expected).abs() <= bound, "{i}: {y} {expected}");
    }
}

#[test]
fn wrong_numbers_of_means_are_refused() {
    let by = Normalization {
        mean: vec![0.0; 3],
        std: vec![1.0],
    };
    assert!(matches!(
        to_planes(&image(), &by, &mut [0.0; 12]),
        Err(Error::Value(_))
    ));
    assert!(matches!(
        to_planes(&image(), &by, &mut [0.0; 11]),
        Err(Error::Value(_))
    ));
}

#[test]
fn resized_and_cropped_images_have_the_size() {
    let interpolation = Interpolation::Bilinear;
    let found = apply(
        image(),
        Step::ResizeShort {
            size: 4,
            interpolation,
        },
    )
    .expect("possible");
    assert_eq!((found.height(), found.width()), (4, 6));
    let step = Step::CenterCrop {
        height: 5,
        width: 1,
        interpolation,
    };
    let found = apply(image(), step).expect("possible");
    assert_eq!((found.height(), found.width()), (5, 1));
}
