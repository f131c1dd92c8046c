//! What `src/generated` holds is what prost and tonic make of the `.proto` file. `KGFLEET_BLESS=1` writes it anew.

use std::path::Path;

use prost::Message as _;

const FILE: &str = "proto/kgfleet/v1/work.proto";

#[test]
fn the_code_of_the_wire_is_that_of_its_file() {
    let member = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile([member.join(FILE)], [member.join("proto")]).unwrap();
    let made = tempfile::tempdir().unwrap();
    std::fs::write(made.path().join("kgfleet.v1.bin"), descriptors.encode_to_vec()).unwrap();
    // Bytes fields are slices of the message they came in: a record is not copied to be looked at.
    tonic_prost_build::configure().bytes(".").out_dir(made.path()).compile_fds(descriptors).unwrap();
    for name in ["kgfleet.v1.bin", "kgfleet.v1.rs"] {
        let (kept, made) = (member.join("src/generated").join(name), made.path().join(name));
        if std::env::var_os("KGFLEET_BLESS").is_some() {
            std::fs::copy(&made, &kept).unwrap();
        }
        let is_same = std::fs::read(&made).unwrap() == std::fs::read(&kept).unwrap();
        assert!(is_same, "{name} is stale: run this test with KGFLEET_BLESS=1");
    }
}
