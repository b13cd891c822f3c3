//! Checks that `include/mxnet.h` is what cbindgen generates. `MXNET_WRITE_HEADER=1 cargo test -p mxnet-c --test header` writes it.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_generated_from_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("it is valid");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in [
        "status", "handles", "array", "dlpack", "invoke", "autograd", "graph", "files", "settings",
        "profiler", "runtime",
    ] {
        builder = builder.with_src(root.join(format!("src/{name}.rs")));
    }
    let mut written = Vec::new();
    builder
        .generate()
        .expect("the sources are valid")
        .write(&mut written);
    let written = String::from_utf8(written).expect("sources are UTF-8");
    let path = root.join("include/mxnet.h");
    if std::env::var_os("MXNET_WRITE_HEADER").is_some() {
        fs::write(&path, &written).expect("the folder can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == written,
        "include/mxnet.h is not what cbindgen writes: run MXNET_WRITE_HEADER=1 cargo test -p mxnet-c --test header"
    );
}
