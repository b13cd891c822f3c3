//! The number of threads this process should use. `MXNET_NUM_THREADS` is read only here.

/// Number of threads: `MXNET_NUM_THREADS` if it is a positive number, otherwise the number of processors that this process may use, which is the
/// smaller of its affinity mask and its cgroup quota (v1 or v2, as `std::thread::available_parallelism` reads them).
pub fn default_threads() -> usize {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    match std::env::var("MXNET_NUM_THREADS") {
        Ok(text) => parse(&text).unwrap_or_else(|| {
            eprintln!("mxnet: MXNET_NUM_THREADS is {text:?}, required is a number from 1 to {MAX}; using {available}");
            available
        }),
        Err(_) => available,
    }
}

/// A larger number is taken for a typing error.
pub(crate) const MAX: usize = 4096;

fn parse(text: &str) -> Option<usize> {
    text.trim()
        .parse()
        .ok()
        .filter(|count| (1..=MAX).contains(count))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_positive_numbers_are_thread_counts() {
        assert_eq!(parse("3"), Some(3));
        assert_eq!(parse(" 16 "), Some(16));
        for text in ["0", "-1", "", "two", "1.5", "4097"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
