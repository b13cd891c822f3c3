//! Tests against loops over all products, at every level of instructions.

use super::*;
use crate::Elem;
use crate::isa::Isa;
use crate::pool::{Kind, Pool};
use crate::values::Values;
use crate::{Scoped, Serial};

fn bytes(seed: u64, n: usize) -> Vec<u8> {
    let mut values = Values(seed);
    (0..n)
        .map(|_| (values.next() * 128.0) as i64 as u8)
        .collect()
}

fn value(x: u8, is_signed: bool) -> i32 {
    if is_signed {
        i32::from(x.cast_signed())
    } else {
        i32::from(x)
    }
}

fn levels() -> Vec<Micro> {
    let all = [
        (Isa::Baseline, false),
        (Isa::Avx2, false),
        (Isa::Avx512, false),
        (Isa::Avx512, true),
    ];
    let usable = all
        .iter()
        .filter(|(level, _)| *level <= crate::isa::machine());
    usable
        .map(|&(level, vnni)| micro::kernels_of(level, vnni))
        .collect()
}

/// The sums of a convolution of dense data, channels first.
fn sums(g: &Conv, x: &[u8], is_signed: bool, w: &[u8]) -> Vec<i32> {
    let (ic, oc) = g.group();
    let [id, ih, iw] = g.input;
    let [kd, kh, kw] = g.kernel;
    let mut y = vec![0; g.n * g.out_channels * g.out_len()];
    for (i, y) in y.iter_mut().enumerate() {
        let at = i % g.out_len();
        let (image, o) = (
            i / g.out_len() / g.out_channels,
            i / g.out_len() % g.out_channels,
        );
        let at = [
            at / (g.output[1] * g.output[2]),
            at / g.output[2] % g.output[1],
            at % g.output[2],
        ];
        for c in 0..ic {
            for tap in 0..g.taps() {
                let k = [tap / (kh * kw), tap / kw % kh, tap % kw];
                let from: [Option<usize>; 3] = std::array::from_fn(|a| {
                    let i = (at[a] * g.stride[a] + k[a] * g.dilation[a]).checked_sub(g.pad[a])?;
                    (i < g.input[a]).then_some(i)
                });
                let [Some(d), Some(h), Some(v)] = from else {
                    continue;
                };
                let channel = o / oc * ic + c;
                let x = x[(((image * g.in_channels + channel) * id + d) * ih + h) * iw + v];
                let w = w[((o * ic + c) * kd * kh * kw) + tap];
                *y += value(x, is_signed) * value(w, true);
            }
        }
    }
    y
}

fn conv(
    n: usize,
    channels: (usize, usize),
    groups: usize,
    input: [usize; 3],
    kernel: [usize; 3],
) -> Conv {
    Conv {
        elem: Elem::I8,
        n,
        groups,
        in_channels: channels.0,
        out_channels: channels.1,
        input,
        output: [1; 3],
        kernel,
        stride: [1; 3],
        pad: [0; 3],
        dilation: [1; 3],
    }
}

fn geometries() -> Vec<Conv> {
    let mut all = vec![
        conv(3, (5, 7), 1, [1, 1, 1], [1, 1, 1]),
        conv(130, (64, 33), 1, [1, 1, 1], [1, 1, 1]),
        conv(1, (1100, 40), 1, [1, 1, 1], [1, 1, 1]),
        conv(2, (64, 64), 1, [1, 6, 5], [1, 1, 1]),
        conv(2, (8, 6), 1, [1, 6, 5], [1, 2, 2]),
        conv(1, (0, 3), 1, [1, 4, 4], [1, 1, 1]),
    ];
    let mut padded = conv(2, (3, 34), 1, [1, 9, 8], [1, 3, 3]);
    (padded.pad, padded.stride) = ([0, 1, 2], [1, 2, 1]);
    all.push(padded);
    let mut dilated = conv(1, (4, 5), 1, [1, 9, 9], [1, 3, 2]);
    (dilated.dilation, dilated.pad) = ([1, 2, 3], [0, 0, 1]);
    all.push(dilated);
    let mut deep = conv(1, (2, 3), 1, [4, 5, 6], [2, 3, 2]);
    deep.pad = [1, 1, 0];
    all.push(deep);
    let mut grouped = conv(2, (6, 9), 3, [1, 5, 5], [1, 3, 3]);
    grouped.pad = [0, 1, 1];
    all.push(grouped);
    for channels in [3, 40] {
        let mut each = conv(2, (channels, channels), channels, [1, 7, 6], [1, 3, 3]);
        (each.pad, each.stride) = ([0, 1, 1], [1, 2, 1]);
        all.push(each);
    }
    for g in &mut all {
        for a in 0..3 {
            g.output[a] = crate::conv::output_extent(
                g.input[a],
                g.kernel[a],
                g.stride[a],
                g.pad[a],
                g.dilation[a],
            );
        }
    }
    all
}

/// The same elements with the channels last.
fn channels_last(g: &Conv, x: &[u8]) -> Vec<u8> {
    let (c, len) = (g.in_channels, g.in_len());
    (0..x.len())
        .map(|i| x[(i / (c * len) * c + i % c) * len + i / c % len])
        .collect()
}

fn run_at(micro: &Micro, g: &Conv, x: &Data, w: &[u8], y: &Output, epilogue: &Epilogue) {
    let [kd, kh, kw] = g.kernel;
    let taps = kd * kh * kw;
    let weights = Weights {
        ptr: w.as_ptr().cast(),
        strides: [g.group().0 * taps, taps, kh * kw, kw, 1],
    };
    let mut packed = vec![0u32; Packing::of(g, micro).words];
    // SAFETY: the vectors have the sizes of the geometry.
    unsafe {
        pack_for(micro, &Serial, g, &weights, packed.as_mut_ptr().cast());
        forward_with(micro, &Scoped(2), g, x, packed.as_ptr().cast(), y, epilogue);
    }
}

const NO_EPILOGUE: Epilogue = Epilogue {
    scale: std::ptr::null(),
    data_scale: 1.0,
    bias: std::ptr::null(),
    addend: None,
    addend_scale: 0.0,
    relu: false,
};

/// Data in both orders, with their strides.
fn both_orders(g: &Conv, x: &[u8]) -> [(Vec<u8>, [usize; 5], bool); 2] {
    let [_, h, w] = g.input;
    let (c, len) = (g.in_channels, g.in_len());
    [
        (x.to_vec(), [c * len, len, h * w, w, 1], false),
        (channels_last(g, x), [c * len, 1, h * w * c, w * c, c], true),
    ]
}

#[test]
fn sums_are_those_of_all_products() {
    for g in geometries() {
        let x = bytes(1, g.n * g.in_channels * g.in_len());
        let w = bytes(2, g.weights());
        for is_signed in [false, true] {
            let want = sums(&g, &x, is_signed, &w);
            for (x, strides, channels_last) in both_orders(&g, &x) {
                for micro in levels() {
                    let mut y = vec![0i32; want.len()];
                    let data = Data {
                        ptr: x.as_ptr(),
                        strides,
                        is_signed,
                    };
                    let out = Output {
                        ptr: y.as_mut_ptr().cast(),
                        elem: Elem::I32,
                        channels_last,
                    };
                    run_at(&micro, &g, &data, &w, &out, &NO_EPILOGUE);
                    let sp = g.out_len();
                    for (i, &want) in want.iter().enumerate() {
                        let (image, o, p) =
                            (i / sp / g.out_channels, i / sp % g.out_channels, i % sp);
                        let at = if channels_last {
                            (image * sp + p) * g.out_channels + o
                        } else {
                            i
                        };
                        let (lanes, size) = (micro.lanes, micro.elem_bytes);
                        assert_eq!(
                            y[at], want,
                            "{g:?} {is_signed} {channels_last} {lanes} {size} {i}"
                        );
                    }
                }
            }
        }
    }
}

/// Results with an epilogue are those of float32 operations on the sums.
#[test]
fn epilogues_scale_and_round() {
    for g in geometries() {
        let x = bytes(1, g.n * g.in_channels * g.in_len());
        let w = bytes(2, g.weights());
        let acc = sums(&g, &x, true, &w);
        let sp = g.out_len();
        let mut values = Values(3);
        let scale: Vec<f32> = (0..g.out_channels)
            .map(|_| values.next() as f32 * 0.01)
            .collect();
        let bias: Vec<f32> = (0..g.out_channels)
            .map(|_| values.next() as f32 * 20.0)
            .collect();
        let addend = bytes(4, acc.len());
        for (x, strides, channels_last) in both_orders(&g, &x) {
            for micro in levels() {
                for (elem, relu) in [
                    (Elem::I8, true),
                    (Elem::I8, false),
                    (Elem::U8, false),
                    (Elem::F32, true),
                ] {
                    let size = if elem == Elem::F32 { 4 } else { 1 };
                    let mut y = vec![0u32; (acc.len() * size).div_ceil(4)];
                    let data = Data {
                        ptr: x.as_ptr(),
                        strides,
                        is_signed: true,
                    };
                    let out = Output {
                        ptr: y.as_mut_ptr().cast(),
                        elem,
                        channels_last,
                    };
                    let epilogue = Epilogue {
                        scale: scale.as_ptr(),
                        data_scale: 0.5,
                        bias: bias.as_ptr(),
                        addend: Some((addend.as_ptr(), Elem::U8)),
                        addend_scale: 0.25,
                        relu,
                    };
                    run_at(&micro, &g, &data, &w, &out, &epilogue);
                    for (i, &acc) in acc.iter().enumerate() {
                        let (image, o, p) =
                            (i / sp / g.out_channels, i / sp % g.out_channels, i % sp);
                        let at = if channels_last {
                            (image * sp + p) * g.out_channels + o
                        } else {
                            i
                        };
                        let mut want = acc as f32 * (scale[o] * 0.5) + bias[o];
                        want += f32::from(addend[at]) * 0.25;
                        if relu {
                            want = want.max(0.0);
                        }
                        // SAFETY: an element of the results.
                        let found = unsafe {
                            match elem {
                                Elem::I8 => f32::from(*y.as_ptr().cast::<i8>().add(at)),
                                Elem::U8 => f32::from(*y.as_ptr().cast::<u8>().add(at)),
                                _ => *y.as_ptr().cast::<f32>().add(at),
                            }
                        };
                        let want = match elem {
                            Elem::I8 => want.round_ties_even().clamp(-127.0, 127.0),
                            Elem::U8 => want.round_ties_even().clamp(0.0, 255.0),
                            _ => want,
                        };
                        assert_eq!(found, want, "{g:?} {elem:?} {relu} {channels_last} {i}");
                    }
                }
            }
        }
    }
}

#[test]
fn pooling_is_that_of_every_window() {
    for (kind, channels) in [
        (Kind::Max, 70),
        (Kind::Average, 3),
        (Kind::AverageWithPad, 64),
    ] {
        let p = Pool {
            elem: Elem::I8,
            kind,
            planes: 2,
            input: [1, 5, 6],
            output: [1, 3, 3],
            kernel: [1, 3, 2],
            stride: [1, 2, 2],
            pad: [0, 1, 0],
            pad_end: [0, 1, 0],
        };
        for is_signed in [false, true] {
            let x = bytes(5, 2 * 30 * channels);
            let mut y = vec![0u8; 2 * 9 * channels];
            // SAFETY: the sizes of the geometry.
            unsafe { pool::forward(&Serial, &p, channels, is_signed, x.as_ptr(), y.as_mut_ptr()) };
            for (i, &found) in y.iter().enumerate() {
                let (c, at) = (i % channels, i / channels);
                let (image, r, s) = (at / 9, at / 3 % 3, at % 3);
                let mut window = Vec::new();
                for h in (2 * r).saturating_sub(1)..(2 * r + 2).min(5) {
                    for w in 2 * s..2 * s + 2 {
                        window.push(value(
                            x[((image * 5 + h) * 6 + w) * channels + c],
                            is_signed,
                        ));
                    }
                }
                let sum: i32 = window.iter().sum();
                let want = match kind {
                    Kind::Max => *window.iter().max().expect("a window has elements"),
                    Kind::Average => {
                        (f64::from(sum) / window.len() as f64).round_ties_even() as i32
                    }
                    _ => (f64::from(sum) / 6.0).round_ties_even() as i32,
                };
                assert_eq!(value(found, is_signed), want, "{kind:?} {is_signed} {i}");
            }
        }
    }
}
