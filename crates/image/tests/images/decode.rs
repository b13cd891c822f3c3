//! Files to pixels and back.

use mxnet_image::{Channels, Error, Format, Order, Pixels, decode, encode};

fn image() -> Pixels {
    let data = (0..32 * 24 * 3).map(|i| (i * 7 % 251) as u8).collect();
    Pixels::new(32, 24, 3, data).expect("the bytes are as many")
}

#[test]
fn png_keeps_every_pixel() {
    let file = encode(&image(), Format::Png { level: 3 }).expect("it can be written");
    let read = decode(&file, Channels::Color, Order::Rgb).expect("it can be read");
    assert_eq!(read, image());
}

#[test]
fn every_prefix_of_a_file_is_an_error() {
    for format in [Format::Png { level: 3 }, Format::Jpeg { quality: 90 }] {
        let file = encode(&image(), format).expect("it can be written");
        for len in 0..file.len() - 1 {
            let found = decode(&file[..len], Channels::Color, Order::Rgb);
            // The last 12 bytes of a PNG file are the end marker; the pixels are complete without it.
            let is_whole = matches!(format, Format::Png { .. }) && len >= file.len() - 16;
            assert!(
                found.is_err() || is_whole,
                "{format:?} {len} of {}",
                file.len()
            );
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    for format in [Format::Png { level: 3 }, Format::Jpeg { quality: 90 }] {
        let file = encode(&image(), format).expect("it can be written");
        for at in 0..file.len() {
            for value in [0, 0x7f, 0xff] {
                let mut changed = file.clone();
                changed[at] = value;
                let _ = decode(&changed, Channels::Grey, Order::Bgr);
            }
        }
    }
}

#[test]
fn too_large_images_are_refused_before_allocation() {
    let mut file = encode(&image(), Format::Png { level: 3 }).expect("it can be written");
    // Width and height follow the signature and the name of the first chunk; then comes its checksum.
    file[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    let crc = crc32(&file[12..29]);
    file[29..33].copy_from_slice(&crc.to_be_bytes());
    let found = decode(&file, Channels::Color, Order::Rgb);
    assert!(
        matches!(found, Err(Error::TooLarge { height: 65_535, .. })),
        "{found:?}"
    );
}

/// The checksum of PNG chunks, bit by bit (ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

#[test]
fn other_files_are_refused() {
    let found = decode(b"GIF89a", Channels::Color, Order::Rgb);
    assert_eq!(found, Err(Error::Format { len: 6 }));
}
