use super::{Attention, Mask, Pattern, forward};
use crate::{Elem, Serial};

/// Attention of one query row in float64, by the definition.
fn reference(q: &[f64], keys: &[&[f64]], values: &[&[f64]], scale: f64) -> Vec<f64> {
    let scores: Vec<f64> = keys
        .iter()
        .map(|k| scale * q.iter().zip(*k).map(|(a, b)| a * b).sum::<f64>())
        .collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let width = values.first().map_or(0, |v| v.len());
    (0..width)
        .map(|j| {
            weights
                .iter()
                .zip(values)
                .map(|(w, v)| w * v[j])
                .sum::<f64>()
                / sum
        })
        .collect()
}

#[test]
fn attention_matches_the_definition() {
    let (q_offsets, k_offsets) = ([0, 2, 2, 130], [0, 3, 9, 700]);
    let (heads, dim, value_dim) = (2, 5, 3);
    let number = |i: usize| ((i * 7919 % 1000) as f64 - 500.0) / 200.0;
    let q: Vec<f64> = (0..130 * heads * dim).map(number).collect();
    let k: Vec<f64> = (0..700 * heads * dim).map(|i| number(i + 3)).collect();
    let v: Vec<f64> = (0..700 * heads * value_dim)
        .map(|i| number(i + 11))
        .collect();
    for pattern in [Pattern::All, Pattern::Causal] {
        let g = Attention {
            elem: Elem::F64,
            q_offsets: &q_offsets,
            k_offsets: &k_offsets,
            heads,
            dim,
            value_dim,
            scale: 0.5,
            pattern,
        };
        let mut out = vec![f64::NAN; 130 * heads * value_dim];
        let mut lse = vec![f64::NAN; 130 * heads];
        // SAFETY: the sizes match the contract.
        unsafe {
            forward(
                &Serial,
                &g,
                None::<&Mask>,
                q.as_ptr().cast(),
                k.as_ptr().cast(),
                v.as_ptr().cast(),
                out.as_mut_ptr().cast(),
                lse.as_mut_ptr().cast(),
            );
        }
        for s in 0..3 {
            for (i, row) in g.queries(s).enumerate() {
                for h in 0..heads {
                    let num_visible = g.num_visible(i + 1, g.keys(s).len());
                    let rows = g.keys(s).take(num_visible);
                    let key = |r: usize, n: usize| (r * heads + h) * n..(r * heads + h + 1) * n;
                    let keys: Vec<&[f64]> = rows.clone().map(|r| &k[key(r, dim)]).collect();
                    let values: Vec<&[f64]> = rows.map(|r| &v[key(r, value_dim)]).collect();
                    let want = reference(&q[key(row, dim)], &keys, &values, 0.5);
                    for (got, want) in out[key(row, value_dim)].iter().zip(want) {
                        // Weights of up to 700 keys, each to a few ulp.
                        assert!((got - want).abs() < 1e-12, "{got} {want}");
                    }
                }
            }
        }
    }
}
