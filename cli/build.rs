//! Asks the linker to fold functions of equal code into one, which makes the program 2 % smaller. Only a release build for the
//! target whose linker is known to be LLD: that which comes with Rust (the default there since Rust 1.90), unless somebody names
//! another.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_release = variable("PROFILE") == "release";
    let target = variable("TARGET");
    let is_chosen =
        !variable("RUSTC_LINKER").is_empty() || variable("CARGO_ENCODED_RUSTFLAGS").contains("link");
    if is_release
        && target == "x86_64-unknown-linux-gnu"
        && !is_chosen
        && brings_lld(&variable("RUSTC"), &target)
    {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// Whether this compiler has a linker of its own, as those of rustup have; distributions build theirs without.
fn brings_lld(rustc: &str, target: &str) -> bool {
    let Ok(told) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = String::from_utf8_lossy(&told.stdout);
    Path::new(sysroot.trim()).join(format!("lib/rustlib/{target}/bin/gcc-ld/ld.lld")).exists()
}
