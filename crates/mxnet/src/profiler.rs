//! The profiler: when operators run, for how long, on which thread, with how much memory.
//!
//! ```
//! use mxnet::profiler::{self, Span, SpanKind, SummaryOptions};
//! use mxnet::{Array, DType};
//!
//! # fn main() -> mxnet::Result<()> {
//! let path = std::env::temp_dir().join("mxnet-profile-of-doc-test.json");
//! profiler::configure(|settings| {
//!     settings.filename = path.to_string_lossy().into();
//!     settings.profile.memory = true;
//! });
//! profiler::start();
//! let span = Span::new(SpanKind::Task, "example", "product");
//! span.start();
//! let x = Array::ones(&[8, 8], DType::F32)?;
//! let y = (&x * &x)?;
//! span.stop()?;
//! profiler::dump(true)?; // Perfetto and chrome://tracing open the file
//! let table = profiler::summary(&SummaryOptions::default());
//! assert!(table.contains("multiply") && table.contains("product"));
//! # assert_eq!(y.to_vec::<f32>()?, [1.0; 64]);
//! # std::fs::remove_file(path).ok();
//! # Ok(())
//! # }
//! ```
//!
//! Events that the program makes itself: [`Span`], [`Counter`], [`mark`], and [`Scope`], which names the operators inside it.

pub use mxnet_core::profiler::{
    Counter, Format, Instant, Label, Profile, Scope, Settings, SortBy, Span, SpanKind,
    SummaryOptions, clear, configure, current_scope, dump, enter_scope, is_active, is_paused,
    is_running, label, mark, pause, resume, set_scope, settings, start, stop, summary, trace,
};
