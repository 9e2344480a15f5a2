//! The `oncesink` binary: the bundled connectors, nothing more.

fn main() -> std::process::ExitCode {
    oncesink_cli::Command::bundled().main()
}
