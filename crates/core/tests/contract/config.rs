//! Settings.

use mxnet_core::Result;
use mxnet_core::config::{Origin, Setting, key, set};

#[test]
fn values_that_a_setting_does_not_take_are_refused() -> Result<()> {
    let threads = key("num_threads")?;
    let before = threads.value();
    for value in [Setting::Int(0), Setting::Bool(true), Setting::Word("two")] {
        assert!(set("num_threads", value, Origin::Program).is_err());
    }
    assert_eq!(threads.value(), before);
    assert!(set("no_such", Setting::Int(1), Origin::Program).is_err());
    assert!(threads.parse("two").is_err());
    assert_eq!(threads.parse(" 3 ")?, Setting::Int(3));
    assert_eq!(key("plan_cache")?.parse("off")?, Setting::Bool(false));
    assert!(key("engine_mode")?.parse("fast").is_err());
    assert!(key("profiler_filename")?.parse(" ").is_err());
    Ok(())
}
