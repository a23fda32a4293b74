//! The `holdfast` binary.

fn main() -> std::process::ExitCode {
    holdfast::main(std::env::args_os())
}
