//! Compiles the `.proto` files with protox, so that no `protoc` needs to be installed.

use std::path::PathBuf;

use prost::Message as _;

const FILES: [&str; 3] =
    ["proto/kgfleet/v1/common.proto", "proto/kgfleet/v1/work.proto", "proto/kgfleet/v1/control.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["proto"])?;
    // Kept for the reflection service, which tells tools such as grpcurl what may be called.
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("kgfleet.v1.bin");
    std::fs::write(out, descriptors.encode_to_vec())?;
    // Bytes fields are slices of the message they came in: a record is not copied to be looked at.
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
