//! The central service.
fn main() -> std::process::ExitCode {
    holdfast_coordinator::cli::main(std::env::args_os())
}
