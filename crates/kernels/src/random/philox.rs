//! Philox 4x32-10. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

use super::Stream;
use crate::reduce::by_isa;

/// One block: four words from a counter (`[u64; 2]`, low half first) and a key.
#[inline(always)]
pub fn philox(counter: [u64; 2], key: u64) -> [u32; 4] {
    let mut c = [
        counter[0] as u32,
        (counter[0] >> 32) as u32,
        counter[1] as u32,
        (counter[1] >> 32) as u32,
    ];
    let mut k = [key as u32, (key >> 32) as u32];
    for _ in 0..10 {
        let (a, b) = (c[0] as u64 * 0xD251_1F53, c[2] as u64 * 0xCD9E_8D57);
        c = [
            (b >> 32) as u32 ^ c[1] ^ k[0],
            b as u32,
            (a >> 32) as u32 ^ c[3] ^ k[1],
            a as u32,
        ];
        k = [
            k[0].wrapping_add(0x9E37_79B9),
            k[1].wrapping_add(0xBB67_AE85),
        ];
    }
    c
}

by_isa! {
    /// Computes the words of the counter blocks `first..first + out.len()` of a stream.
    pub(super) unsafe fn words [] [] (stream: Stream, first: u64, out: &mut [[u32; 4]]) {
        let base = stream.offset.wrapping_add(first);
        for (i, block) in out.iter_mut().enumerate() {
            *block = philox([base.wrapping_add(i as u64), 0], stream.seed);
        }
    }
}

by_isa! {
    /// The words of the counter blocks `(base + picked[j], high)`: word w of block j goes to `out[w][j]`.
    pub(super) unsafe fn words_at [const N: usize] [N] (key: u64, base: u64, picked: &[u32], high: u64, out: &mut [[u32; N]; 4]) {
        let n = picked.len().min(N);
        let [a, b, c, d] = out;
        let words = a[..n].iter_mut().zip(&mut b[..n]).zip(&mut c[..n]).zip(&mut d[..n]);
        for ((((a, b), c), d), &i) in words.zip(picked) {
            [*a, *b, *c, *d] = philox([base.wrapping_add(i as u64), high], key);
        }
    }
}
