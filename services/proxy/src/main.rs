//! The program `headgate-proxy`.

fn main() -> std::process::ExitCode {
    headgate_proxy::run()
}
