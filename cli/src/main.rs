//! The `kgfleet` binary.

fn main() -> std::process::ExitCode {
    cli::main().into()
}
