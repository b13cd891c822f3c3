//! The elements of padded borders.

use smallvec::SmallVec;

/// The element, out of `n`, that padding has at position `at` relative to the first one.
pub fn border_source(mode: &str, at: i64, n: i64) -> i64 {
    match mode {
        "wrap" => at.rem_euclid(n),
        "symmetric" => {
            let at = at.rem_euclid(2 * n);
            at.min(2 * n - 1 - at)
        }
        "reflect" if n > 1 => {
            let at = at.rem_euclid(2 * n - 2);
            at.min(2 * n - 2 - at)
        }
        _ => at.clamp(0, n - 1),
    }
}

/// Part of a border: the elements `to..to + len` are copies of those at `from`, `from + step`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BorderRun {
    /// First element of the part.
    pub to: usize,
    /// The element that it copies.
    pub from: usize,
    /// Distance of the copied elements.
    pub step: isize,
    /// Number of elements.
    pub len: usize,
}

/// The parts of both borders of an axis of `n` elements, for NumPy's padding modes `wrap`, `symmetric`, `reflect` and, for any other word, `edge`.
/// Positions count from the start of the padded axis. `n` is not 0.
pub fn border_runs(mode: &str, before: usize, n: usize, after: usize) -> SmallVec<[BorderRun; 4]> {
    let mut runs: SmallVec<[BorderRun; 4]> = SmallVec::new();
    for to in (0..before).chain(before + n..before + n + after) {
        let at = border_source(mode, to as i64 - before as i64, n as i64);
        let from = before + at as usize;
        if let Some(run) = runs.last_mut()
            && run.to + run.len == to
        {
            let last = run.from as isize + run.step * (run.len as isize - 1);
            let step = from as isize - last;
            if (run.len == 1 && step.abs() <= 1) || (run.len > 1 && step == run.step) {
                run.step = step;
                run.len += 1;
                continue;
            }
        }
        runs.push(BorderRun {
            to,
            from,
            step: 0,
            len: 1,
        });
    }
    runs
}
