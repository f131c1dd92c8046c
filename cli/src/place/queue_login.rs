//! The options for the password of the queue's server.

use std::path::PathBuf;

use models::Secret;

use crate::kit::exit_code::Exit;

/// Environment variable with the password.
const PASSWORD_ENV: &str = "KGFLEET_QUEUE_PASSWORD";

/// The password of Redis, which does not belong into a command line: every user of a machine sees those.
#[derive(Debug, clap::Args)]
pub struct QueueLogin {
    /// File with the password of Redis, for a --queue address without one. Default: the environment variable
    /// KGFLEET_QUEUE_PASSWORD.
    #[arg(long, value_name = "FILE", env = "KGFLEET_QUEUE_PASSWORD_FILE")]
    queue_password_file: Option<PathBuf>,
}

impl QueueLogin {
    /// The address with the password, if one is given. Warns of one in the command line.
    pub fn into_address(&self, address: &str) -> anyhow::Result<String> {
        if std::env::args_os()
            .any(|argument| argument.to_str().is_some_and(|text| shows_password(text, address)))
        {
            eprintln!(
                "warning: the password in --queue is seen by every user of this machine; give it with \
                 --queue-password-file or {PASSWORD_ENV}"
            );
        }
        let password = match &self.queue_password_file {
            Some(path) => Secret::from_file(path).map_err(Exit::usage)?,
            None if std::env::var_os(PASSWORD_ENV).is_some() => {
                Secret::from_env(PASSWORD_ENV).map_err(Exit::usage)?
            }
            None => return Ok(address.to_owned()),
        };
        queue::with_password(address, password.expose()).map_err(Exit::usage)
    }
}

/// Whether an argument of the command line is this address, with a password.
fn shows_password(argument: &str, address: &str) -> bool {
    let login = address.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.rsplit_once('@'));
    let has_password =
        login.is_some_and(|(login, _)| login.split_once(':').is_some_and(|(_, word)| !word.is_empty()));
    has_password && argument.ends_with(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_the_command_line_is_noticed() {
        let secret = "redis://fleet:word@redis:6379/0";
        assert!(shows_password(secret, secret) && shows_password(&format!("--queue={secret}"), secret));
        assert!(!shows_password("coordinator", secret), "it came from the environment");
        for plain in ["redis://redis:6379/0", "redis://fleet@redis", "memory", "redis://fleet:@redis"] {
            assert!(!shows_password(plain, plain), "{plain}");
        }
    }
}
